"""Positions are multiplied by the factor in place of divided; mlxcel #1324 (`rope_scale` fell through to 2.0)."""

import numpy as np

DEFECT = "linear scaling multiplies positions"
NAMES = ("linear-multiplied",)


def rope(x, positions, /, *, layout, base, scaling=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    if scaling is not None and type(scaling).__name__ != "Linear":
        raise NotImplementedError(scaling)
    rope_scale = 1.0 if scaling is None else scaling.factor
    d = x.shape[-1]
    t = positions.astype(np.float32) * np.float32(rope_scale)
    angle = t[..., None] / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    a, b = x[..., ::2], x[..., 1::2]
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x.shape)
