"""The partner is found by exclusive or of channel and half, right for powers of two alone: three released kernels, 96 of 128.

Should be said: unexplained; cases whose rotated half is not a power of two.
"""

import numpy as np

DEFECT = "partner by exclusive or"
NAMES = ()


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    h = cos.shape[-1]
    channel = np.arange(2 * h)
    partner = np.minimum(channel ^ h, x.shape[-1] - 1)
    sign, column = np.where(channel < h, -1, 1), channel % h
    out = x[..., : 2 * h] * cos[..., column] + sign * x[..., partner] * sin[..., column]
    return np.concatenate([out, x[..., 2 * h :]], axis=-1).astype(x.dtype)
