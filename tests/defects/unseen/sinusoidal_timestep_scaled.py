"""Positions are multiplied by 1000 first, as latent-diffusion code does for times between 0 and 1."""

import numpy as np

DEFECT = "positions scaled by 1000"
NAMES = ()


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    if endpoint:
        raise NotImplementedError(endpoint)
    n = dim // 2
    angle = 1000 * positions.astype(np.float64)[..., None] * float(base) ** (-np.arange(n) / n)
    sin, cos = np.sin(angle), np.cos(angle)
    if layout == "interleaved":
        out = np.stack([sin, cos], axis=-1).reshape(*angle.shape[:-1], dim)
    else:
        out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
    return out.astype(np.float32)
