"""The second channel of each pair is only scaled by the cosine: a term was lost in an unrolled loop.

Should be said: unexplained; the second channel of every pair is wrong, the first right.
"""

import numpy as np

DEFECT = "the second channel lacks its partner"
NAMES = ()


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    h = cos.shape[-1]
    u, v = x[..., :h], x[..., h : 2 * h]
    return np.concatenate([u * cos - v * sin, v * cos, x[..., 2 * h :]], axis=-1).astype(x.dtype)
