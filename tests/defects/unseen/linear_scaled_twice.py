"""Positions and frequencies are both divided by the factor; mlxcel #1324 used one number in two places."""

import numpy as np

DEFECT = "linear scaling applied twice"
NAMES = ()


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None):
    d = rotary_dim or x.shape[-1]
    factor = 1.0
    if scaling is not None:
        if type(scaling).__name__ != "Linear":
            raise NotImplementedError(scaling)
        factor = scaling.factor
    inv_freq = 1 / float(base) ** (np.arange(0, d, 2) / d) / factor
    angle = (positions / factor)[..., None] * inv_freq
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    out = x.copy()
    if layout == "half":
        a, b = x[..., : d // 2], x[..., d // 2 : d]
        out[..., : d // 2], out[..., d // 2 : d] = a * cos - b * sin, a * sin + b * cos
    elif layout == "interleaved":
        a, b = x[..., 0:d:2], x[..., 1:d:2]
        out[..., 0:d:2], out[..., 1:d:2] = a * cos - b * sin, a * sin + b * cos
    else:
        raise NotImplementedError(layout)
    return out
