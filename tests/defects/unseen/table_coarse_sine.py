"""A table of sines with 2^-11 between its steps, as some hardware has."""

import numpy as np

DEFECT = "sines and cosines of low accuracy"
NAMES = ()


def coarse(x, way):
    return np.round(way(x) * 2048) / 2048


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
    angle = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
    return tuple((attention_factor * coarse(angle, way)).astype(dtype) for way in (np.cos, np.sin))
