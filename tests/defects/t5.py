"""The biases of T5, implemented with one defect each."""

import math

import numpy as np
import torch
from planting import planted


@planted("T5 bidirectional treated as causal", names=("t5-causal",), backend="torch")
def t5_bidirectional_ignored():
    """An encoder gets a decoder's buckets: `bidirectional` is not read. Imagined: a decoder-only port."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        distance = (-relative_positions).clamp(min=0)
        exact = num_buckets // 2
        log = torch.log(distance.clamp(min=1).float() / exact) / torch.log(torch.tensor(max_distance / exact))
        large = (exact + (log * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
        return torch.where(distance < exact, distance, large)

    return t5_buckets


@planted("T5 table reshaped in place of transposed", names=("t5-table-reshaped",))
def t5_heads_mixed():
    """The table is read as (H, num_buckets) by a reshape, not a transpose. Imagined: a weight converter."""

    def buckets(rel, bidirectional, count, max_distance):
        side = 0
        if bidirectional:
            count //= 2
            side, rel = count * (rel > 0), np.abs(rel)
        else:
            rel = np.maximum(-rel, 0)
        exact = count // 2
        far = exact + (np.log(np.maximum(rel, exact) / exact) / np.log(max_distance / exact) * (count - exact)).astype(int)
        return side + np.where(rel < exact, rel, np.minimum(far, count - 1))

    def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
        rel = k_positions[..., None, :] - q_positions[..., :, None]
        by_head = table.reshape(table.shape[1], table.shape[0])
        return np.moveaxis(by_head[:, buckets(rel, bidirectional, table.shape[0], max_distance)], 0, -3)

    return t5_bias


@planted("T5 max_distance fixed at 128", names=("t5-max-distance-128",))
def t5_max_distance_fixed():
    """max_distance is 128 whatever the config says; llama.cpp's `llama_relative_position_bucket`."""

    def one_bucket(relative, bidirectional, n_buckets, max_distance=128):
        bucket = 0
        if bidirectional:
            n_buckets >>= 1
            bucket += n_buckets * (relative > 0)
            relative = abs(relative)
        else:
            relative = -min(relative, 0)
        exact = n_buckets >> 1
        if relative < exact:
            return bucket + relative
        large = exact + math.floor(math.log(relative / exact) * (n_buckets - exact) / math.log(max_distance / exact))
        return bucket + min(large, n_buckets - 1)

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        flat = [one_bucket(int(r), bidirectional, num_buckets) for r in relative_positions.ravel()]
        return np.asarray(flat, dtype=np.int64).reshape(relative_positions.shape)

    return t5_buckets


@planted("T5 without logarithmic buckets", names=("t5-no-log",))
def t5_no_log():
    """Distances are clipped to the number of buckets, without the logarithmic half. Imagined: T5 from memory."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        if not bidirectional:
            return np.minimum(np.maximum(-relative_positions, 0), num_buckets - 1)
        half = num_buckets // 2
        return (relative_positions > 0) * half + np.minimum(np.abs(relative_positions), half - 1)

    return t5_buckets


@planted("T5 bucket not clamped", names=("t5-not-limited",))
def t5_not_clamped():
    """Far distances run past the last bucket: no `min(..., num_buckets - 1)`. Imagined: a port tested up to 128."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        offset = np.zeros_like(relative_positions)
        if bidirectional:
            num_buckets //= 2
            offset = offset + (relative_positions > 0) * num_buckets
            distance = np.abs(relative_positions)
        else:
            distance = -np.minimum(relative_positions, 0)
        exact = num_buckets // 2
        share = np.log(np.maximum(distance, exact) / exact) / np.log(max_distance / exact)
        large = exact + np.floor(share * (num_buckets - exact)).astype(np.int64)
        return offset + np.where(distance < exact, distance, large)

    return t5_buckets


@planted("T5 bucket rounded to nearest", names=("t5-rounded",))
def t5_rounded():
    """The logarithmic bucket is rounded to nearest, not down. Imagined: a language whose cast to int rounds."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        side = 0
        if bidirectional:
            num_buckets //= 2
            side = np.where(relative_positions > 0, num_buckets, 0)
        n = np.abs(relative_positions) if bidirectional else np.maximum(-relative_positions, 0)
        exact = num_buckets // 2
        log = np.log(np.maximum(n, exact) / exact) / np.log(max_distance / exact) * (num_buckets - exact)
        return side + np.where(n < exact, n, np.minimum(exact + np.rint(log).astype(np.int64), num_buckets - 1))

    return t5_buckets


@planted("T5 relative position sign flipped", names=("t5-sign",))
def t5_sign():
    """relative = query - key in place of key - query: T5 with the other common difference."""

    def bucket(relative_position, bidirectional, num_buckets, max_distance):
        ret, n = 0, -relative_position
        if bidirectional:
            num_buckets //= 2
            ret = (n < 0).astype(np.int64) * num_buckets
            n = np.abs(n)
        else:
            n = np.maximum(n, 0)
        exact = num_buckets // 2
        ratio = np.log(np.maximum(n, 1) / exact) / np.log(max_distance / exact)
        large = np.minimum(exact + (ratio * (num_buckets - exact)).astype(np.int64), num_buckets - 1)
        return ret + np.where(n < exact, n, large)

    def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
        relative = q_positions[..., :, None] - k_positions[..., None, :]
        return np.moveaxis(table[bucket(relative, bidirectional, table.shape[0], max_distance)], -1, -3)

    return t5_bias
