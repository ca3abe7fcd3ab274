"""`rope_scale` falls through to 2, so positions are doubled; mlxcel #1324."""

import numpy as np

DEFECT = "positions doubled"
NAMES = ()


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / np.float32(base) ** (np.arange(0, d, 2, dtype=np.float32) / np.float32(d))
    angle = (2 * positions).astype(np.float32)[..., None] * inv_freq
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = x[..., : d // 2], x[..., d // 2 : d]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., d:]], axis=-1)
