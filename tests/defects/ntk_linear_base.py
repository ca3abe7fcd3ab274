"""NTK-aware scaling multiplies the base by the factor without the power d/(d-2). Imagined: a short-cut port."""

import numpy as np

DEFECT = "NTK base without the power d/(d-2)"
NAMES = ("ntk-power-missing",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    kind = type(scaling).__name__
    if kind == "NTKAware":
        base = base * scaling.factor
    elif kind == "DynamicNTK":
        reach = max(length, scaling.original_length) / scaling.original_length
        base = base * (scaling.factor * reach - (scaling.factor - 1))
    elif scaling is not None:
        raise NotImplementedError(kind)
    return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0
