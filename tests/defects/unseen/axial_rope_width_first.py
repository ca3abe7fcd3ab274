"""Rows and columns are exchanged, which no square grid shows; the xy order of torchtitan #4244.

Should be said: the first two coordinates are exchanged; of two axes the last two are these, of three they are not.
"""

import numpy as np

DEFECT = "the first two coordinates exchanged"
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


def axial_rope(x, positions, /, *, dims, base, allocation, arrangement, layout):
    if allocation != "own" or arrangement != "chunked":
        raise NotImplementedError(allocation)
    order = [1, 0, *range(2, len(dims))]
    ladders = [float(base) ** (-2 * np.arange(dim // 2) / dim) for dim in dims]
    angles = [positions[axis][..., None] * ladder for axis, ladder in zip(order, ladders, strict=True)]
    angle = np.concatenate(angles, axis=-1)
    return rotated(x, np.cos(angle), np.sin(angle), layout)
