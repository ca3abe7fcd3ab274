"""Positions past the table start again at zero. Imagined: a ring buffer read at `pos & (n - 1)`."""

import numpy as np

DEFECT = "positions wrap modulo 8192"
NAMES = ("positions-wrapped-8192",)


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    slot = positions.astype(np.int64) & 8191
    angle = np.multiply.outer(slot.astype(np.float32), inv_freq.astype(np.float32))
    scale = np.float32(attention_factor)
    return (scale * np.cos(angle)).astype(dtype or np.float32), (scale * np.sin(angle)).astype(dtype or np.float32)
