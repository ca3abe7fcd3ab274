"""Only heads after the first are rotated. Imagined: a loop from 1 (transformers #47403 rotates head 0 alone)."""

import numpy as np

DEFECT = "head 0 is not rotated"
NAMES = ("head-zero-unrotated",)


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    n = cos.shape[-1]
    cos, sin = np.broadcast_to(cos, (*x.shape[:-1], n)), np.broadcast_to(sin, (*x.shape[:-1], n))
    out = x.copy()
    heads = [(...,)] if x.ndim < 3 else [(..., h, slice(None), slice(None)) for h in range(1, x.shape[-3])]
    for h in heads:
        a, b = x[h][..., :n], x[h][..., n : 2 * n]
        out[h][..., :n] = a * cos[h] - b * sin[h]
        out[h][..., n : 2 * n] = b * cos[h] + a * sin[h]
    return out
