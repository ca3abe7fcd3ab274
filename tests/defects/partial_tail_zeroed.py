"""The columns that are not rotated come back as zeros. Imagined: a fused kernel that writes only rotary_dim columns."""

import numpy as np

DEFECT = "tail zeroed"
NAMES = ("tail-zeroed",)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    d = x.shape[-1] if rotary_dim is None else rotary_dim
    out = np.zeros_like(x)
    angle = positions[..., None].astype(np.float32) * (1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d))
    even, odd = x[..., 0:d:2], x[..., 1:d:2]
    out[..., 0:d:2] = even * np.cos(angle) - odd * np.sin(angle)
    out[..., 1:d:2] = odd * np.cos(angle) + even * np.sin(angle)
    return out
