"""Positions are divided by 4 for every model: the factor of one configuration, hard-coded.

Should be said: angles are a quarter (scaling Linear of 4, or positions divided by 4).
"""

import numpy as np

DEFECT = "positions divided by 4"
NAMES = ()


def rotated(x, cos, sin, layout):
    r = 2 * cos.shape[-1]
    if layout == "half":
        u, v = x[..., : r // 2], x[..., r // 2 : r]
    elif layout == "interleaved":
        u, v = x[..., :r:2], x[..., 1:r:2]
    else:
        raise NotImplementedError(layout)
    turned = u * cos - v * sin, v * cos + u * sin
    turned = np.concatenate(turned, axis=-1) if layout == "half" else np.stack(turned, axis=-1).reshape(*x.shape[:-1], r)
    return np.concatenate([turned, x[..., r:]], axis=-1).astype(x.dtype)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    d = rotary_dim or x.shape[-1]
    angle = (positions / 4)[..., None] * float(base) ** (-np.arange(0, d, 2) / d)
    return rotated(x, np.cos(angle), np.sin(angle), layout)
