"""RoPE and sinusoids with angles in float64 and the rest in float32: one rounding of cos and sin; ALiBi's slopes in float64."""

import numpy as np

claims = {"float32": "angle64"}


def phases(positions, dim, base, exponent_of):
    angle = positions.astype(np.float64)[..., None] * float(base) ** -(np.arange(dim // 2) / exponent_of)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    d = x.shape[-1] if rotary_dim is None else rotary_dim
    cos, sin = phases(positions, d, base, d // 2)
    if inverse:
        sin = -sin
    if layout == "half":
        a, b = x[..., : d // 2], x[..., d // 2 : d]
        turned = [a * cos - b * sin, a * sin + b * cos]
    elif layout == "interleaved":
        a, b = x[..., 0:d:2], x[..., 1:d:2]
        turned = [np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(*x.shape[:-1], d)]
    else:
        raise NotImplementedError(layout)
    return np.concatenate([*turned, x[..., d:]], axis=-1)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    cos, sin = phases(positions, dim, base, dim // 2 - 1 if endpoint else dim // 2)
    if layout == "interleaved":
        out = np.stack([sin, cos], axis=-1).reshape(*positions.shape, dim)
    else:
        out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
    return out.astype(dtype or np.float32)


def alibi_slopes(heads, /, *, max_bias=8):
    below = 1 << (heads.bit_length() - 1)
    steps = np.append(np.arange(1, below + 1), np.arange(heads - below) + 0.5)
    return np.exp(-max_bias * np.log(2) / below * steps)
