"""Times are multiplied by two tokens a second for images too; a still image's temporal id, transformers #45325.

Should be said: unexplained; the pairs of the first coordinate are wrong (or: the first coordinate is doubled).
"""

import numpy as np

DEFECT = "the first coordinate doubled"
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


def mrope(x, positions, /, *, sections, arrangement, layout, base):
    if arrangement != "chunked":
        raise NotImplementedError(arrangement)
    axes = np.repeat(np.arange(len(sections)), sections)
    positions = positions * np.asarray([2, *[1] * (len(sections) - 1)]).reshape(-1, *[1] * (positions.ndim - 1))
    inv_freq = float(base) ** (-np.arange(len(axes)) / len(axes))
    angle = np.moveaxis(positions[axes], 0, -1) * inv_freq
    return rotated(x, np.cos(angle), np.sin(angle), layout)
