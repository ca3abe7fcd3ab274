"""`inverse` is not used: the backward rotates forward again; a gradient bug of flash-attention #569's family."""

import numpy as np

DEFECT = "inverse ignored"
NAMES = ("inverse-ignored",)


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    d = 2 * cos.shape[-1]
    shape = {"half": (2, d // 2), "interleaved": (d // 2, 2)}.get(layout)
    if shape is None:
        raise NotImplementedError(layout)
    axis = -2 if layout == "half" else -1
    a, b = np.moveaxis(x[..., :d].reshape(*x.shape[:-1], *shape), axis, 0)
    turned = np.stack([a * cos - b * sin, a * sin + b * cos], axis=axis).reshape(*x.shape[:-1], d)
    return np.concatenate([turned, x[..., d:]], axis=-1)
