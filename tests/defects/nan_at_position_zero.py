"""Angles are exp(log p + log f) and the sign is p/|p|: NaN at position 0. Imagined: log-domain angles."""

import numpy as np

DEFECT = "NaN at position 0"
NAMES = ()


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    p = positions.astype(np.float64)[..., None]
    with np.errstate(all="ignore"):
        angle = p / np.abs(p) * np.exp(np.log(np.abs(p)) - np.arange(n) / n * np.log(base))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    return np.concatenate([x[..., :n] * cos - x[..., n:] * sin, x[..., n:] * cos + x[..., :n] * sin], axis=-1)
