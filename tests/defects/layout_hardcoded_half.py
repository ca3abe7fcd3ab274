"""The layout is ignored and every head is rotated in halves; vllm-ascend #12820 (`rotary_mode="half"` hard-coded)."""

import numpy as np

DEFECT = "layout ignored: always half"
NAMES = ("layout-half",)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    d = x.shape[-1] if rotary_dim is None else rotary_dim
    inv_freq = 1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    angle = positions[..., None].astype(np.float32) * inv_freq
    cos, sin = np.cos(angle), np.sin(angle)
    first, second, tail = x[..., : d // 2], x[..., d // 2 : d], x[..., d:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, tail], axis=-1)
