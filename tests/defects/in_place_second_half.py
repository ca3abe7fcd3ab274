"""The second half reads the first after it was overwritten. Imagined: a loop in C without its temporary."""

import numpy as np

DEFECT = "second half uses the rotated first half"
NAMES = ("in-place-update",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
    out = np.array(x, copy=True)
    out[..., :n] = out[..., :n] * np.cos(angle) - out[..., n:] * np.sin(angle)
    out[..., n:] = out[..., n:] * np.cos(angle) + out[..., :n] * np.sin(angle)
    return out
