"""Frequencies grow rather than fall: the minus of the exponent is lost, as in the text that labml #313 corrects."""

import numpy as np

DEFECT = "base^(2i/d) in place of base^(-2i/d)"
NAMES = ()


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    angle = positions[..., None] * float(base) ** (np.arange(n) / n)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    a, b = x[..., :n], x[..., n:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
