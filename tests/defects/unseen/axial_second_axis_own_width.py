"""The frequencies of every axis have the exponents of the first axis's width: one ladder is built and reused.

Should be said: unexplained; the channel pairs of the later axes are wrong, where their widths differ. Imagined.
"""

import numpy as np

DEFECT = "the ladder of the first axis for all axes"
NAMES = ()


def axial_frequencies(dims, /, *, base, allocation, unit="radians"):
    if allocation != "own" or unit != "radians":
        raise NotImplementedError(allocation)
    return np.concatenate([float(base) ** (-2 * np.arange(dim // 2) / dims[0]) for dim in dims])
