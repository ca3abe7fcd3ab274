"""The base goes through float16, whose largest number is 65504. A parameter kept with the weights.

Should be said: the base is 65504 where it is larger.
"""

import numpy as np

DEFECT = "the base is at most 65504"
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
    angle = positions[..., None] * min(float(base), 65504.0) ** (-np.arange(0, d, 2) / d)
    return rotated(x, np.cos(angle), np.sin(angle), layout)
