"""NTK-aware scaling divides every frequency by the factor, which is linear scaling; keras-hub's 'dynamic'."""

import numpy as np

DEFECT = "NTK divides all frequencies"
NAMES = ("ntk-as-linear",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    inv_freq = np.float32(base) ** (-np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))
    if scaling is None:
        return inv_freq, 1.0
    if type(scaling).__name__ not in ("Linear", "NTKAware"):
        raise NotImplementedError(scaling)
    return inv_freq / np.float32(scaling.factor), 1.0
