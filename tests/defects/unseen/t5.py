"""The biases of T5, implemented with defects reported after the registry was written."""

import numpy as np
import torch
from planting import planted


@planted("the halves of the buckets are exchanged", names=("t5-halves-exchanged", "t5-sign"), backend="torch")
def t5_before_and_after_exchanged():
    """`< 0` for `> 0`: keys before the query take the second half. A port that read the TensorFlow code's `n = -relative`."""

    def bucket(relative, bidirectional, count, limit):
        offset = torch.zeros_like(relative)
        if bidirectional:
            count = count // 2
            offset = (relative < 0).long() * count
            relative = relative.abs()
        else:
            relative = (-relative).clamp(min=0)
        exact = count // 2
        ratio = torch.log(relative.clamp(min=1).double() / exact) / torch.log(torch.tensor(limit / exact, dtype=torch.float64))
        large = (exact + (ratio * (count - exact) + 1e-9).floor().long()).clamp(max=count - 1)
        return offset + torch.where(relative < exact, relative, large)

    def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
        relative = (k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)).long()
        values = table[bucket(relative, bidirectional, table.shape[0], max_distance)]
        return values.permute(*range(values.ndim - 3), -1, -3, -2)

    return t5_bias


@planted("bucket logarithm in bfloat16", names=(), backend="torch")
def t5_log_bfloat16():
    """The logarithm is taken in bfloat16, so some far keys fall into the neighbouring bucket."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        if bidirectional:
            num_buckets = num_buckets // 2
            side, n = (relative_positions > 0).long() * num_buckets, relative_positions.abs()
        else:
            side, n = 0, (-relative_positions).clamp(min=0)
        exact = num_buckets // 2
        top = torch.log(torch.tensor(max_distance / exact, dtype=torch.bfloat16))
        log = torch.log(n.clamp(min=1).to(torch.bfloat16) / exact) / top * (num_buckets - exact)
        return side + torch.where(n < exact, n, (exact + log.long()).clamp(max=num_buckets - 1))

    return t5_buckets


@planted("the logarithm is rounded to the nearest, and distance 0 counts as after", names=(("t5-rounded", "t5-zero-after"),))
def t5_rounded_wrong_half():
    """Rounding to the nearest, and the own position in the second half: two slips in one rewrite of T5's buckets."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        r = np.asarray(relative_positions, dtype=np.int64)
        n, count = (np.abs(r), num_buckets // 2) if bidirectional else (np.maximum(0, -r), num_buckets)
        small = count // 2
        spread = np.log(np.maximum(n, small) / small) / np.log(max_distance / small)
        far = np.minimum(small + np.rint(spread * (count - small) + 1e-12).astype(np.int64), count - 1)
        return np.where(n < small, n, far) + (count * (r >= 0) if bidirectional else 0)

    return t5_buckets


@planted(
    "relative positions negated, and max_distance fixed at 128", names=(("t5-sign", "t5-max-distance-128"),), backend="torch"
)
def t5_sign_and_max_distance():
    """Query minus key, and a maximal distance that is not a parameter, as in llama.cpp."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        x = -relative_positions.long()
        offset = 0
        if bidirectional:
            num_buckets = num_buckets // 2
            offset = num_buckets * (x > 0).long()
            x = x.abs()
        else:
            x = torch.relu(-x)
        exact = num_buckets // 2
        scale = (num_buckets - exact) / torch.log(torch.tensor(128.0 / exact, dtype=torch.float64))
        large = exact + torch.floor(torch.log(x.clamp(min=exact).double() / exact) * scale + 1e-9).long()
        return offset + torch.where(x < exact, x, large.clamp(max=num_buckets - 1))

    return t5_buckets


@planted("the distance 0 uses the half of the keys that come after", names=("t5-zero-after",))
def t5_zero_counts_as_after():
    """`>=` for `>`: a token's own position takes the second half of the buckets. A slip in the first line of T5's formula."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        r = relative_positions.astype(np.int64)
        start = np.zeros_like(r)
        if bidirectional:
            num_buckets //= 2
            start = np.where(r >= 0, num_buckets, 0)
            n = np.abs(r)
        else:
            n = np.maximum(-r, 0)
        exact = num_buckets // 2
        with np.errstate(divide="ignore"):
            log = np.log(n / exact) / np.log(max_distance / exact) * (num_buckets - exact)
        far = np.minimum(exact + np.floor(np.maximum(log, 0) + 1e-9).astype(np.int64), num_buckets - 1)
        return start + np.where(n < exact, n, far)

    return t5_buckets


@planted("columns of the table modulo 8", names=())
def t5_heads_modulo_8():
    """
    A kernel made for eight heads reads column h mod 8 of the table. Imagined.

    Should be said: unexplained; heads from 8 on.
    """

    def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
        relative = k_positions.astype(np.int64)[..., None, :] - q_positions.astype(np.int64)[..., :, None]
        count = len(table)
        bucket = np.zeros(relative.shape, dtype=np.int64)
        if bidirectional:
            count //= 2
            bucket += (relative > 0) * count
            distance = abs(relative)
        else:
            distance = np.maximum(-relative, 0)
        exact = count // 2
        ratio = np.log(np.maximum(distance, 1) / exact) / np.log(max_distance / exact)
        far = np.minimum(exact + np.floor(ratio * (count - exact) + 1e-9).astype(np.int64), count - 1)
        bucket += np.where(distance < exact, distance, far)
        return np.moveaxis(table[:, np.arange(table.shape[1]) % 8][bucket], -1, -3)

    return t5_bias
