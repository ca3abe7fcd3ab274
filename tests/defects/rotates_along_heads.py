"""The head index is taken for the position; mlfoundations/open_lm #4 (models were trained so)."""

import numpy as np

DEFECT = "rotates along the head axis"
NAMES = ("rotates-along-heads",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    t = positions
    if x.ndim > 2:
        t = np.arange(x.shape[-3])[:, None]
    angle = t[..., None].astype(np.float32) * base ** (-np.arange(n, dtype=np.float32) / n)
    cos, sin = np.cos(angle), np.sin(angle)
    x1, x2 = x[..., :n], x[..., n:]
    return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=-1)
