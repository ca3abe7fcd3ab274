"""DeepSeek's mixed layout is written back interleaved. Imagined: the de-interleaving view was lost."""

import numpy as np

DEFECT = "interleaved_to_half written interleaved"
NAMES = ("writes-interleaved",)


def apply_rope(x, cos, sin, /, *, layout):
    if layout == "half":
        d = cos.shape[-1]
        a, b, tail = x[..., :d], x[..., d : 2 * d], x[..., 2 * d :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, tail], axis=-1)
    out = x.copy()
    d = 2 * cos.shape[-1]
    a, b = x[..., 0:d:2], x[..., 1:d:2]
    out[..., 0:d:2] = a * cos - b * sin
    out[..., 1:d:2] = b * cos + a * sin
    return out
