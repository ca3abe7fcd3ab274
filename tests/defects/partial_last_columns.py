"""The last rotary_dim columns are rotated, not the first; DeepSeek's order [nope, rope] used for GPT-NeoX."""

import numpy as np

DEFECT = "last columns rotated"
NAMES = ("trailing-lanes",)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    d = rotary_dim or x.shape[-1]
    n, start = d // 2, x.shape[-1] - d
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
    x1, x2 = x[..., start : start + n], x[..., start + n :]
    return np.concatenate(
        [x[..., :start], x1 * np.cos(angle) - x2 * np.sin(angle), x2 * np.cos(angle) + x1 * np.sin(angle)], axis=-1
    )
