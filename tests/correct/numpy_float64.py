"""Every operation in float64 NumPy, with pairs turned by explicit 2x2 matrices."""

import math

import numpy as np

dtypes = ("float64",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    out = np.empty((*positions.shape, dim))
    for i in range(dim // 2):
        angle = positions.astype(np.float64) / base ** (i / (dim // 2 - 1 if endpoint else dim // 2))
        at_sin, at_cos = {"interleaved": (2 * i, 2 * i + 1), "sin_cos": (i, dim // 2 + i)}.get(layout, (dim // 2 + i, i))
        out[..., at_sin], out[..., at_cos] = np.sin(angle), np.cos(angle)
    return out.astype(dtype or np.float64)


def learned(positions, table, /, *, offset=0):
    return table[positions + offset].copy()


def yarn_mix(dim, base, s):
    corners = [dim * math.log(s.original_length / (b * 2 * math.pi)) / (2 * math.log(base)) for b in (s.beta_fast, s.beta_slow)]
    if s.truncate:
        corners = [math.floor(corners[0]), math.ceil(corners[1])]
    low, high = max(corners[0], 0), min(corners[1], dim - 1)
    width = 0.001 if low == high else high - low
    return np.array([min(max((i - low) / width, 0.0), 1.0) for i in range(dim // 2)])


def yarn_gain(s):
    def g(m):
        return m * math.log(s.factor) / 10 + 1 if s.factor > 1 else 1.0

    if s.attention_factor is not None:
        return float(s.attention_factor)
    return g(1) if s.mscale is None or s.mscale_all_dim is None else g(s.mscale) / g(s.mscale_all_dim)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    s, kind = scaling, type(scaling).__name__
    if kind in ("NTKAware", "DynamicNTK"):
        grow = s.factor
        if kind == "DynamicNTK":
            grow = s.factor * max(length, s.original_length) / s.original_length - (s.factor - 1)
        base = base * grow ** (dim / (dim - 2))
    inv_freq = np.array([base ** (-2 * i / dim) for i in range(dim // 2)])
    if kind == "Linear":
        inv_freq = inv_freq / s.factor
    if kind == "Llama3":
        turns = s.original_length * inv_freq / (2 * math.pi)
        smooth = np.clip((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0, 1)
        inv_freq = (1 - smooth) * inv_freq / s.factor + smooth * inv_freq
    if kind == "YaRN":
        mix = yarn_mix(dim, base, s)
        return inv_freq * (1 - mix) + inv_freq / s.factor * mix, yarn_gain(s)
    return inv_freq, 1.0


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    angle = np.multiply.outer(positions.astype(np.float64), np.asarray(inv_freq, dtype=np.float64))
    return (attention_factor * np.cos(angle)).astype(dtype or np.float64), (attention_factor * np.sin(angle)).astype(
        dtype or np.float64
    )


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    d = 2 * cos.shape[-1]
    halves, pairs = np.arange(d).reshape(2, d // 2), np.arange(d).reshape(d // 2, 2).T
    read, write = (halves if layout == "half" else pairs), (pairs if layout == "interleaved" else halves)
    turn = np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)
    if inverse:
        read, write, turn = write, read, np.swapaxes(turn, -1, -2)
    vectors = np.stack([x[..., read[0]], x[..., read[1]]], axis=-1)
    turned = np.einsum("...ij,...j->...i", turn, vectors)
    out = x.copy()
    out[..., write[0]], out[..., write[1]] = turned[..., 0], turned[..., 1]
    return out


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None, inverse=False):
    inv_freq, gain = rope_frequencies(rotary_dim or x.shape[-1], base=base, scaling=scaling, length=length)
    return apply_rope(x, *rope_table(positions, inv_freq, attention_factor=gain), layout=layout, inverse=inverse)


def rotation_matrix(position, dim, /, *, layout, base, scaling=None, length=None, dtype=None):
    one = np.asarray(position)
    columns = [rope(e, one, layout=layout, base=base, scaling=scaling, length=length) for e in np.eye(dim)]
    return np.stack(columns, axis=-1).astype(dtype or np.float64)


def alibi_slopes(heads, /, *, max_bias=8):
    below = 2 ** math.floor(math.log2(heads))
    rate = -max_bias * math.log(2) / below
    return np.exp(np.array([rate * h for h in range(1, below + 1)] + [rate * (h + 0.5) for h in range(heads - below)]))


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    q, k = q_positions[..., None, :, None].astype(np.float64), k_positions[..., None, None, :].astype(np.float64)
    away = {"key": k, "causal": k - q, "distance": -np.abs(k - q)}[form]
    return (alibi_slopes(heads)[:, None, None] * away).astype(dtype or np.float64)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    count = num_buckets // 2 if bidirectional else num_buckets
    n = np.abs(relative_positions) if bidirectional else np.maximum(-relative_positions, 0)
    exact = count // 2
    ratio = np.log(np.maximum(n, exact) / exact) / math.log(max_distance / exact)
    far = np.minimum(exact + np.floor(ratio * (count - exact) + 1e-9).astype(np.int64), count - 1)
    return np.where(n < exact, n, far) + (count * (relative_positions > 0) if bidirectional else 0)


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = np.expand_dims(k_positions, -2) - np.expand_dims(q_positions, -1)
    buckets = t5_buckets(relative, bidirectional=bidirectional, num_buckets=len(table), max_distance=max_distance)
    return np.moveaxis(table[buckets], -1, -3)


def rows(q_positions, k_positions, left, right, order):
    difference = np.expand_dims(k_positions, -2) - np.expand_dims(q_positions, -1)
    return np.clip(difference if order == "key_minus_query" else -difference, -left, right) + left


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    keys = np.expand_dims(k, -3) + key_table[rows(q_positions, k_positions, left, right, order)]
    return np.sum(np.expand_dims(q, -2) * keys, axis=-1)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    values = np.expand_dims(v, -3) + value_table[rows(q_positions, k_positions, left, right, order)]
    return np.sum(np.expand_dims(weights, -1) * values, axis=-2)


def repeat(q, k):
    grouped = min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]
    return np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if grouped else k


def attention_logits(q, k, /, *, bias=None, scale=None):
    logits = np.matmul(q, np.swapaxes(repeat(q, k), -1, -2)) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    return logits if bias is None else logits + bias


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = attention_logits(q, k, bias=bias, scale=scale)
    logits = logits if mask is None else np.where(mask, logits, -np.inf)
    top = np.maximum(logits.max(axis=-1, keepdims=True), np.finfo(np.float64).min)
    weights = np.exp(logits - top)
    return np.matmul(weights, repeat(q, v)) / np.maximum(weights.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
