"""Every result is zero: the buffer is allocated and the kernel never runs. Imagined: a launch error nobody reads."""

import numpy as np

DEFECT = "constant zeros"
NAMES = ()


def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    return np.zeros_like(x)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    return np.zeros((*positions.shape, dim), dtype=dtype or np.float32)
