"""A kernel that reads its input as if it were contiguous (TileOPs #492)."""

import numpy as np

DEFECT = "strides ignored"
NAMES = ()


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x).reshape(-1)[::-1].reshape(x.shape)
    n = cos.shape[-1]
    a, b = x[..., :n], x[..., n : 2 * n]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * n :]], axis=-1)
