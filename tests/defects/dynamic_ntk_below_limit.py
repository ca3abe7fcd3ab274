"""Dynamic NTK is applied below the original length too, where it must be the identity; mlxcel #1389."""

import numpy as np

DEFECT = "dynamic NTK applied to short sequences"
NAMES = ("dynamic-below-limit",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    if type(scaling).__name__ == "DynamicNTK":
        ratio = (scaling.factor * length / scaling.original_length) - (scaling.factor - 1)
        base = base * abs(ratio) ** (dim / (dim - 2)) if ratio else base
    elif scaling is not None:
        raise NotImplementedError(scaling)
    return np.power(np.float32(base), -np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0
