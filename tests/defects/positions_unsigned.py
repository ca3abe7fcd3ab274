"""Negative positions lose their sign. Imagined: a kernel with unsigned offsets, used to shift a cache back."""

import numpy as np

DEFECT = "absolute value of positions"
NAMES = ("positions-absolute",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    theta = np.abs(positions).astype(np.float32)[..., None] / base ** (np.arange(n, dtype=np.float32) / n)
    c, s = np.cos(theta), np.sin(theta)
    lo, hi = x[..., :n], x[..., n:]
    return np.concatenate([c * lo - s * hi, s * lo + c * hi], axis=-1)
