"""Seven operations in other ways than their formulas: other orders of sums, whole numbers, one key at a time."""

import numpy as np


def rms_norm(x, weight, /, *, eps, weight_offset):
    """Squares of x divided by a power of two, summed in two steps."""
    z = x.astype(np.float32)
    size = np.max(np.abs(z), axis=-1, keepdims=True, initial=0)
    scale = np.float32(2) ** np.floor(np.log2(np.where(size > 0, size, 1))).astype(np.float32)
    u, half = z / scale, z.shape[-1] // 2
    squares = sum(np.einsum("...i,...i->...", part, part) for part in (u[..., :half], u[..., half:]))
    root = np.sqrt(squares[..., None] / np.float32(z.shape[-1]) + np.float32(eps) / scale / scale)
    return ((u / root) * (weight.astype(np.float32) + np.float32(weight_offset))).astype(x.dtype)


def cope(q, logits, table, mask, /):
    """Gates from the left, taken from the sum of all; the lerp form of the interpolation."""
    gates = np.where(mask, 1 / (1 + np.exp(-np.clip(logits.astype(np.float32), -80, None))), np.float32(0))
    before = np.cumsum(gates, -1, dtype=np.float64) - gates
    place = np.minimum(gates.sum(-1, keepdims=True, dtype=np.float64) - before, len(table) - 1)
    low = np.floor(place).astype(int)
    scores = np.matmul(q.astype(np.float32), table.astype(np.float32).T)
    scores = np.broadcast_to(scores, (*np.broadcast_shapes(scores.shape[:-1], low.shape[:-1]), scores.shape[-1]))
    rows = (np.broadcast_to(i, (*scores.shape[:-1], i.shape[-1])) for i in (low, np.minimum(low + 1, len(table) - 1)))
    a, b = (np.take_along_axis(scores, i, -1) for i in rows)
    return (a + (b - a) * (place - low)).astype(q.dtype)


def sandwich(q_positions, k_positions, /, *, heads, dim, base=10000.0, dtype=None):
    """The product of two sinusoidal vectors, as the paper derives it."""
    waves = np.float64(base) ** (-2 * np.arange(1, dim // 2 + 1) / dim)
    q, k = (p[..., None] * waves for p in (q_positions, k_positions))
    q, k = (np.concatenate([np.sin(a), np.cos(a)], -1) for a in (q, k))
    products = np.einsum("...qi,...ki->...qk", q, k) - dim / 2
    return (heads / (8.0 * np.arange(1, heads + 1))[:, None, None] * products[..., None, :, :]).astype(dtype)


def continuous_position_bias(w1, b1, w2, /, *, b2=None, height, width, form, pretrained_height=None, pretrained_width=None):
    """Each pair of cells by itself, without a table; the sigmoid as a hyperbolic tangent."""
    if form != "swin":
        raise NotImplementedError(form)
    y, x = np.divmod(np.arange(height * width), width)
    spans = ((pretrained_height or height) - 1 or 1, (pretrained_width or width) - 1 or 1)
    t = np.stack([(y[:, None] - y) * 8.0 / spans[0], (x[:, None] - x) * 8.0 / spans[1]], -1)
    t = np.sign(t) * np.log1p(np.abs(t)) / np.log(8)
    hidden = np.maximum(np.einsum("qkc,jc->qkj", t, w1.astype(np.float64)) + b1, 0)
    out = np.einsum("qkj,hj->hqk", hidden, w2.astype(np.float64))
    out = out if b2 is None else out + b2.astype(np.float64)[:, None, None]
    return (8 + 8 * np.tanh(out / 2)).astype(w1.dtype)


def decomposed_rows(q_positions, k_positions, /, *, q_size, k_size):
    """In whole numbers."""
    offsets = q_positions[..., :, None] * k_size - k_positions[..., None, :] * q_size
    return (offsets + (k_size - 1) * q_size) // min(q_size, k_size)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, scale=1.0, dtype=None):
    """Cosines as sines a quarter of a turn on."""
    if dim % 2 or layout == "cos_sin":
        raise NotImplementedError(layout)
    pairs = dim // 2
    waves = (1 / np.float64(base)) ** (np.arange(pairs) / (pairs - 1 if endpoint else pairs))
    angles = positions[..., None].astype(np.float64) * np.append(waves, waves) + np.repeat([0, np.pi / 2], pairs)
    out = np.sin(angles) * scale
    if layout == "interleaved":
        out = np.swapaxes(out.reshape(*positions.shape, 2, pairs), -1, -2).reshape(*positions.shape, dim)
    return out.astype(dtype)


def stick_breaking(logits, mask, /):
    """One key after another, from the last one."""
    z = logits.astype(np.float64)
    there = np.broadcast_to(mask, z.shape)
    rest, out = np.zeros(z.shape[:-1]), np.zeros_like(z)
    for j in reversed(range(z.shape[-1])):
        out[..., j] = np.where(there[..., j], np.exp(rest - np.logaddexp(0, -z[..., j])), 0)
        rest = rest - np.where(there[..., j], np.logaddexp(0, z[..., j]), 0)
    return out.astype(logits.dtype), np.exp(rest).astype(logits.dtype)
