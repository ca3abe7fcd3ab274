"""Input of rank 3 is turned along its first axis; burn's fix 0aecba362 (the test had rank 4)."""

import numpy as np

DEFECT = "for rank 3 the sequence is taken to be the first axis"
NAMES = ("rotates-along-heads",)  # of three axes, the first


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    n = d // 2
    inv_freq = 1.0 / (float(base) ** (np.arange(0, d, 2) / d))
    angle = np.broadcast_to(positions, x.shape[:-1])[..., None] * inv_freq
    if x.ndim == 3:
        angle = np.broadcast_to(np.arange(x.shape[0])[:, None, None] * inv_freq, angle.shape)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    a, b = x[..., :n], x[..., n:d]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., d:]], axis=-1)
