"""The rotation is written into the caller's array; unsloth #5001 (Triton kernel mutates Q and K)."""

import numpy as np

DEFECT = "input mutated in place"
NAMES = ()


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    n = cos.shape[-1]
    first = x[..., :n].copy()
    x[..., :n] = first * cos - x[..., n : 2 * n] * sin
    x[..., n : 2 * n] = x[..., n : 2 * n] * cos + first * sin
    return np.asarray(x)
