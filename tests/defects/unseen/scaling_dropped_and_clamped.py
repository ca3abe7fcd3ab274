"""The declared scaling does not arrive (mlx-vlm #1710), and a table of 4096 rows is read with a clamp (vllm-ascend #1266)."""

import numpy as np

DEFECT = "scaling ignored, and positions beyond 4095 clamped"
NAMES = (("scaling-dropped", "positions-clamped-4095"),)


def rope(x, positions, /, *, layout, base, scaling=None, length=None):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    inv_freq = (float(base) ** (-np.arange(n) / n)).astype(np.float32)
    angle = np.minimum(positions, 4095).astype(np.float32)[..., None] * inv_freq
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = x[..., :n], x[..., n:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
