"""Positions are counted from one; fairseq's padding offset carried over to RoPE."""

import numpy as np

DEFECT = "positions off by one"
NAMES = ("positions-plus-1",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    half = x.shape[-1] // 2
    inv_freq = base ** (-np.arange(half, dtype=np.float32) / half)
    angle = (1 + positions)[..., None].astype(np.float32) * inv_freq
    x1, x2 = np.split(x, 2, axis=-1)
    return np.concatenate([x1 * np.cos(angle) - x2 * np.sin(angle), x2 * np.cos(angle) + x1 * np.sin(angle)], axis=-1)
