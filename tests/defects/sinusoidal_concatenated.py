"""Sines then cosines where they should alternate; multidim-positional-encoding #20 (concat in place of interleave)."""

import numpy as np

DEFECT = "interleaved layout concatenated"
NAMES = ("sinusoid-concatenated",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    if layout not in ("interleaved", "sin_cos"):
        raise NotImplementedError(layout)
    inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    sin_inp = np.einsum("...,j->...j", positions.astype(np.float32), inv_freq)
    return np.concatenate((np.sin(sin_inp), np.cos(sin_inp)), axis=-1).astype(dtype or np.float32)
