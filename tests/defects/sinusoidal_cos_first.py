"""cos comes where sin should: cat([cos, sin]); flashinfer #3819 (timestep halves swapped), diffusers #1369."""

import numpy as np

DEFECT = "sin and cos in the other order"
NAMES = ("sin-cos-exchanged",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    half = dim // 2
    args = positions[..., None].astype(np.float32) * np.exp(-np.log(base) * np.arange(half) / half).astype(np.float32)
    if layout == "interleaved":
        out = np.stack([np.cos(args), np.sin(args)], axis=-1).reshape(*positions.shape, dim)
    elif layout == "sin_cos":
        out = np.concatenate([np.cos(args), np.sin(args)], axis=-1)
    else:
        raise NotImplementedError(layout)
    return out.astype(dtype or np.float32)
