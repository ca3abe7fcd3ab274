"""A constant of another model."""

import numpy as np

DEFECT = "base 1000"
NAMES = ()


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    angle = positions[..., None] * 1000.0 ** (-np.arange(0, dim, 2) / dim)
    parts = np.sin(angle), np.cos(angle)
    if layout == "interleaved":
        return np.stack(parts, axis=-1).reshape(*angle.shape[:-1], dim).astype(dtype)
    return np.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1).astype(dtype)
