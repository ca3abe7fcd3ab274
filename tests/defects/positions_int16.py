"""Positions are packed in 16 signed bits and 32768 becomes -32768. Imagined: a quantised index buffer."""

import numpy as np

DEFECT = "positions overflow int16"
NAMES = ("positions-int16",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    index = positions.astype(np.int64).astype(np.int16)
    theta = index[..., None] * (1.0 / base ** (np.arange(n, dtype=np.float32) / n))
    c, s = np.cos(theta), np.sin(theta)
    return np.concatenate([c * x[..., :n] - s * x[..., n:], s * x[..., :n] + c * x[..., n:]], axis=-1)
