"""A ring buffer of 20000 rows."""

import numpy as np

DEFECT = "positions wrap at 20000"
NAMES = ()


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
    positions = np.where(positions >= 20000, np.asarray(positions) % 20000, positions)
    angle = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
    return tuple((attention_factor * way(angle)).astype(dtype) for way in (np.cos, np.sin))
