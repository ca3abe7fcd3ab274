"""One layout and one base for everybody, the base not the usual one: a port of one model's inference code."""

import numpy as np

DEFECT = "layout fixed at interleaved, and base fixed at 500000"
NAMES = ()


def rope(x, positions, /, *, layout, base):
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float64) * 500000.0 ** (-np.arange(n) / n)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 1::2] * cos + x[..., 0::2] * sin
    return out
