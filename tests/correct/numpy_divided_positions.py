"""Linear scaling by dividing positions by the factor, as the paper on position interpolation and llama.cpp write it."""

import numpy as np


def rope(x, positions, /, *, layout, base, scaling=None):
    if layout != "half" or type(scaling).__name__ not in ("NoneType", "Linear"):
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    t = positions.astype(np.float32)
    if scaling is not None:
        t = t / np.float32(scaling.factor)
    angle = np.einsum("...,j->...j", t, base ** (-np.arange(n, dtype=np.float32) / n))
    c, s = np.cos(angle), np.sin(angle)
    x1, x2 = np.split(x, 2, axis=-1)
    return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1)
