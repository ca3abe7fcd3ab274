"""Coordinates are clamped to the box from -1 to 1 first, as scene bounds are. Imagined, after NeRF's normalised scenes.

Should be said: unexplained; coordinates beyond 1 are wrong, the others right.
"""

import numpy as np

DEFECT = "coordinates clamped to [-1, 1]"
NAMES = ()


def random_fourier(x, matrix, /, *, layout):
    turns = np.clip(x.astype(np.float64), -1, 1) @ np.asarray(matrix, dtype=np.float64)
    sin, cos = np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)
    if layout == "interleaved":
        out = np.stack([sin, cos], axis=-1).reshape(*turns.shape[:-1], -1)
    else:
        out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
    return out.astype(np.float32)
