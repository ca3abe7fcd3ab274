"""Biases and relative tables, with one or several mistakes."""

import jax.numpy as jnp
import numpy as np
import torch
from planting import only, planted


def apart(q_positions, k_positions):
    return np.asarray(q_positions)[..., :, None] - np.asarray(k_positions)[..., None, :]


@planted("ALiBi sign flipped", names=("alibi-sign",))
def alibi_sign():
    """The bias is +m|i-j|: far keys are favoured; a sign slip of the kind of x-transformers 4ed4d0a."""

    def slopes(heads):
        below = 1 << (heads.bit_length() - 1)
        first = 2.0 ** (-8 / below * np.arange(1, below + 1))
        extra = 2.0 ** (-4 / below * np.arange(1, 2 * (heads - below), 2))
        return np.concatenate([first, extra]).astype(np.float32)

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form == "key":
            raise NotImplementedError(form)
        gap = q_positions[..., :, None] - k_positions[..., None, :]
        if form == "distance":
            gap = np.abs(gap)
        return (slopes(heads)[:, None, None] * gap[..., None, :, :].astype(np.float32)).astype(dtype or np.float32)

    return alibi


@planted(
    "slopes held in bfloat16, and distances one too large", names=(("slopes-bfloat16", "alibi-off-by-one"),), backend="jax"
)
def alibi_bfloat16_slopes_off_by_one():
    """A bfloat16 slope buffer and an off-by-one distance: Falcon's dtype together with vLLM #945."""

    def alibi_slopes(heads, /):
        n = 2 ** (heads.bit_length() - 1)
        exponent = [8 * (h + 1) / n for h in range(n)] + [4 * (2 * h + 1) / n for h in range(heads - n)]
        return jnp.asarray([2.0**-e for e in exponent], dtype=jnp.bfloat16).astype(jnp.float32)

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        m = alibi_slopes(heads)[:, None, None]
        k = k_positions[..., None, None, :].astype(jnp.float32)
        if form == "key":
            return (m * k).astype(dtype or jnp.float32)
        gap = q_positions[..., None, :, None].astype(jnp.float32) + 1 - k
        return (-m * (jnp.abs(gap) if form == "distance" else gap)).astype(dtype or jnp.float32)

    return alibi_slopes, alibi


@planted(
    "slopes 2^(-8h/H) for every H, and a signed distance where its size is asked for",
    op="alibi",
    names=(("slopes-closed-form", "alibi-abs-missing"),),
)
def alibi_closed_form_signed(q_positions, k_positions, /, *, heads, form, dtype=None):
    """Slopes in closed form and no absolute value: Baichuan2 #225 meets x-transformers 4ed4d0a."""
    m = (2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)).astype(np.float32)[:, None, None]
    keys = k_positions.astype(np.float32)[..., None, None, :]
    if form == "key":
        return (m * keys).astype(dtype or np.float32)
    return (m * (keys - q_positions.astype(np.float32)[..., None, :, None])).astype(dtype or np.float32)


@planted("the bias is m*j in every form, which only a causal softmax forgives", names=(), backend="torch")
def alibi_column_bias():
    """A row of key positions stands for every form; llm-foundry #186, Baichuan-13B #172 ask why it is not the paper's."""

    def slopes(n):
        below = 2 ** (n.bit_length() - 1)
        first = [2 ** (-8 * (h + 1) / below) for h in range(below)]
        return first + [2 ** (-4 * (2 * h + 1) / below) for h in range(n - below)]

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        m = torch.tensor(slopes(heads), dtype=torch.float32)
        bias = m.view(-1, 1, 1) * k_positions[..., None, None, :].to(torch.float32)
        if form != "key":
            bias = bias.expand(*bias.shape[:-2], q_positions.shape[-1], bias.shape[-1])
        return bias.to(dtype or torch.float32)

    return alibi


@planted("distances beyond 1023 are clamped", op="alibi", names=())
def alibi_distance_capped(q_positions, k_positions, /, *, heads, form, dtype=None):
    """Distances saturate at 1023, the length of training. Imagined: a bias table of a fixed size, indexed with a clamp."""
    only(form, "distance")
    p = 1 << (heads.bit_length() - 1)
    e = np.concatenate([np.arange(1, p + 1), np.arange(0.5, heads - p)]) / p
    far = np.minimum(np.abs(q_positions[..., :, None] - k_positions[..., None, :]), 1023)
    return (-(2.0 ** (-8 * e)).astype(np.float32)[:, None, None] * far[..., None, :, :].astype(np.float32)).astype(np.float32)


@planted("distances in float16", names=(), said="at distances from 4095 on")
def alibi_far_distance_float16():
    """
    Distances are held in float16 and lose their last bits from 2049 on, as positions do elsewhere.

    Should be said: unexplained or a rounding of distances; distances beyond 2048.
    """

    def slopes(heads):
        below = 1 << (heads.bit_length() - 1)
        first = 2.0 ** (-8 / below * np.arange(1, below + 1))
        return np.concatenate([first, 2.0 ** (-4 / below * np.arange(1, 2 * (heads - below), 2))])

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form == "key":
            raise NotImplementedError(form)
        gap = q_positions.astype(np.float64)[..., :, None] - k_positions[..., None, :]
        gap = (abs(gap) if form == "distance" else gap).astype(np.float16).astype(np.float64)
        return (-slopes(heads)[:, None, None] * gap[..., None, :, :]).astype(np.float32)

    return alibi


@planted("the last row is read for row 0", op="shaw_scores", names=())
def shaw_last_row_for_first(q, k, table, q_positions, k_positions, /, *, left, right, order):
    """Row -1 is read for row 0: an index that is one too small, where it may not be."""
    table = np.concatenate([table[-1:], table[1:]])
    apart = k_positions[..., None, :] - q_positions[..., :, None]
    apart = apart if order == "key_minus_query" else -apart
    rows = table[np.clip(apart, -left, right) + left]
    return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)


@planted("differences negated, and rows taken one further on", names=(("shaw-other-order", "shaw-row-plus-1"),))
def shaw_reversed_and_shifted():
    """The difference the other way, and a table whose first row is padding: two habits of ports of music transformers."""

    def lookup(table, q_positions, k_positions, left, right, order):
        gap = q_positions[..., :, None] - k_positions[..., None, :]
        index = np.clip(gap if order == "key_minus_query" else -gap, -left, right) + left + 1
        return table[np.minimum(index, table.shape[0] - 1)]

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        a = lookup(key_table, q_positions, k_positions, left, right, order)
        return np.matmul(q, np.swapaxes(k, -1, -2)) + np.sum(q[..., :, None, :] * a, axis=-1, dtype=np.float32)

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        a = lookup(value_table, q_positions, k_positions, left, right, order)
        return np.matmul(weights, v) + np.sum(weights[..., None] * a, axis=-2, dtype=np.float32)

    return shaw_scores, shaw_values


@planted("bucket logarithm in bfloat16", op="t5_buckets", names=(), backend="torch")
def t5_log_bfloat16(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    """The logarithm is taken in bfloat16, so some far keys fall into the neighbouring bucket."""
    if bidirectional:
        num_buckets = num_buckets // 2
        side, n = (relative_positions > 0).long() * num_buckets, relative_positions.abs()
    else:
        side, n = 0, (-relative_positions).clamp(min=0)
    exact = num_buckets // 2
    top = torch.log(torch.tensor(max_distance / exact, dtype=torch.bfloat16))
    log = torch.log(n.clamp(min=1).to(torch.bfloat16) / exact) / top * (num_buckets - exact)
    return side + torch.where(n < exact, n, (exact + log.long()).clamp(max=num_buckets - 1))


@planted(
    "the logarithm is rounded to the nearest, and distance 0 counts as after",
    op="t5_buckets",
    names=(("t5-rounded", "t5-zero-after"),),
)
def t5_rounded_wrong_half(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    """Rounding to the nearest, and the own position in the second half: two slips in one rewrite of T5's buckets."""
    r = np.asarray(relative_positions, dtype=np.int64)
    n, count = (np.abs(r), num_buckets // 2) if bidirectional else (np.maximum(0, -r), num_buckets)
    small = count // 2
    spread = np.log(np.maximum(n, small) / small) / np.log(max_distance / small)
    far = np.minimum(small + np.rint(spread * (count - small) + 1e-12).astype(np.int64), count - 1)
    return np.where(n < small, n, far) + (count * (r >= 0) if bidirectional else 0)


@planted(
    "relative positions negated, and max_distance fixed at 128",
    op="t5_buckets",
    names=(("t5-sign", "t5-max-distance-128"),),
    backend="torch",
)
def t5_sign_and_max_distance(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    """Query minus key, and a maximal distance that is not a parameter, as in llama.cpp."""
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


@planted("columns of the table modulo 8", op="t5_bias", names=())
def t5_heads_modulo_8(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    """
    A kernel made for eight heads reads column h mod 8 of the table. Imagined.

    Should be said: unexplained; heads from 8 on.
    """
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


@planted("the bias of the last query is 0", op="alibi", names=(), said="nly the last query")
def alibi_last_query_zero(q_positions, k_positions, /, *, heads, form, dtype=None):
    """The last row of the bias is never written."""
    if form != "distance" or heads & (heads - 1):
        raise NotImplementedError("distance, and a power of two")
    m = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    out = -m[:, None, None] * np.abs(apart(q_positions, k_positions))[..., None, :, :]
    if out.shape[-2] > 1:
        out[..., -1, :] = 0
    return out.astype(dtype or np.float32)


@planted("distances in int8", op="alibi", names=())
def alibi_int8(q_positions, k_positions, /, *, heads, form, dtype=None):
    """Distances wrap at 128."""
    d = apart(q_positions, k_positions)
    if form != "distance" or heads & (heads - 1) or d.dtype.kind == "f":
        raise NotImplementedError("distance, integers, and a power of two")
    m = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    return (-m[:, None, None] * np.abs(d.astype(np.int8).astype(float))[..., None, :, :]).astype(dtype or np.float32)


@planted("the hidden layer has GELU", op="fire", names=())
def fire_gelu(q_positions, k_positions, w1, b1, w2, b2, c, threshold, /, *, eps=1e-6):
    """GELU where ReLU belongs."""
    w1, b1, wide, b2, c, threshold = (np.asarray(v, np.float64) for v in (w1, b1, w2, b2, c, threshold))
    d = np.abs(apart(q_positions, k_positions)).astype(np.float64)
    below = np.maximum(np.asarray(q_positions, np.float64), threshold)[..., :, None]
    x = np.log(np.abs(c * d) + 1) / (np.log(np.abs(c * below) + 1) + eps)
    z = torch.from_numpy(np.ascontiguousarray(x[..., None] * w1 + b1))
    hidden = torch.nn.functional.gelu(z).numpy()
    return np.moveaxis(hidden @ wide.T + b2, -1, -3).astype(w2.dtype)


@planted("distances to the right are clipped with the limit of the left", op="shaw_scores", names=())
def shaw_clip_symmetric(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    """clip(d, -left, left) on both sides."""
    only(order, "key_minus_query")
    d = np.clip(-apart(q_positions, k_positions), -left, min(left, right))
    rows = np.asarray(key_table, np.float64)[d + left]
    q64 = np.asarray(q, np.float64)
    return (q64 @ np.swapaxes(np.asarray(k, np.float64), -1, -2) + np.einsum("...ld,...lrd->...lr", q64, rows)).astype(q.dtype)


@planted(
    "each row is rolled, without the column of padding", op="relative_shift", names=(), said="Wrong with 2 queries or more"
)
def relative_shift_by_roll(x, /):
    """np.roll of each row, without the padding's column."""
    n = x.shape[-2]
    rows = [np.roll(x[..., i, :], i + 1 - n, axis=-1) for i in range(n)]
    return np.stack(rows, axis=-2) if rows else x
