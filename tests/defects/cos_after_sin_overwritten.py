"""sin is written into the array of angles before cos is read from it; transformers #11725 (`np.sin` in place)."""

import numpy as np

DEFECT = "cos of the sine"
NAMES = ("cos-of-sine",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    angle = np.asarray(positions[..., None].astype(np.float32) * inv_freq.astype(np.float32))
    sin = np.sin(angle, out=angle)
    cos = np.cos(angle)
    dtype = dtype or np.float32
    return (cos * attention_factor).astype(dtype), (sin * attention_factor).astype(dtype)
