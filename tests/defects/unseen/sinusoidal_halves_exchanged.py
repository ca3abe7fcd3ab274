"""Sines and cosines are exchanged where they are halves (flashinfer #3819)."""

import numpy as np

DEFECT = "halves exchanged"
NAMES = ("sinusoid-halves-exchanged",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    angle = positions[..., None] * float(base) ** (-np.arange(0, dim, 2) / dim)
    parts = np.cos(angle), np.sin(angle)
    if layout == "interleaved":
        return np.stack(parts[::-1], axis=-1).reshape(*angle.shape[:-1], dim).astype(dtype)
    return np.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1).astype(dtype)
