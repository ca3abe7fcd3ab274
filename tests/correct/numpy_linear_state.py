"""Linear attention in its own order, in NumPy: keys meet values first, in one state, or a state for every query if causal."""

import numpy as np

dtypes = ("float64", "float32")
claims = {"float64": "float64", "float32": "angle64"}


def _phi(x):
    """Return elu(x) + 1."""
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def _turned(x, positions, layout, base):
    """Return lanes rotated by their positions, as complex numbers, the two of a pair side by side."""
    pairs = x.shape[-1] // 2
    angles = positions[..., None] * base ** (-np.arange(pairs) / pairs)
    half = layout == "half"
    real, imaginary = (x[..., :pairs], x[..., pairs:]) if half else (x[..., 0::2], x[..., 1::2])
    turned = (real + 1j * imaginary) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1).astype(x.dtype)


def rotary_linear_attention(q, k, v, q_positions, k_positions, /, *, layout, base, causal):
    queries, keys = _phi(q), _phi(k)
    above = _turned(queries, q_positions, layout, base)
    turned = _turned(keys, k_positions, layout, base)
    if not causal:
        state, total = np.swapaxes(turned, -1, -2) @ v, keys.sum(-2)[..., None, :]
        with np.errstate(invalid="ignore"):
            return np.nan_to_num((above @ state) / (queries * total).sum(-1, keepdims=True))
    out = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    state, total = np.zeros((*q.shape[:-2], q.shape[-2], q.shape[-1], v.shape[-1]), q.dtype), np.zeros_like(q)
    at, of = np.broadcast_to(q_positions, q.shape[:-1]), np.broadcast_to(k_positions, k.shape[:-1])
    for j in range(k.shape[-2]):  # every query has the state of the keys that it sees
        seen = (at >= of[..., j, None])[..., None]
        total = total + np.where(seen, keys[..., j, None, :], 0)
        state = state + np.where(seen[..., None], (turned[..., j, :, None] * v[..., j, None, :])[..., None, :, :], 0)
    below = (queries * total).sum(-1, keepdims=True)
    np.divide((above[..., None, :] @ state)[..., 0, :], below, out=out, where=below > 0)
    return out
