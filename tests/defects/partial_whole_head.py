"""rotary_dim is ignored and the whole head rotated; maxtext #4616 (partial_rotary_factor ignored)."""

import numpy as np

DEFECT = "rotary_dim ignored: whole head rotated"
NAMES = ("rotary-dim-ignored",)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    d = x.shape[-1]
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([x1 * np.cos(angle) - x2 * np.sin(angle), x2 * np.cos(angle) + x1 * np.sin(angle)], axis=-1)
