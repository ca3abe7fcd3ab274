"""Sixteen channels are rotated whatever is asked: a kernel's template parameter.

Should be said: 16 channels are rotated.
"""

import numpy as np

DEFECT = "16 channels rotated, always"
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
    d = min(16, x.shape[-1])
    angle = positions[..., None] * float(base) ** (-np.arange(0, d, 2) / d)
    return rotated(x, np.cos(angle), np.sin(angle), layout)
