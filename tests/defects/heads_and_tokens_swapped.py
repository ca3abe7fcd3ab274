"""The result comes back as (..., T, H, d) for (..., H, T, d); DeepSpeed #2782 (as if q and k were not transposed)."""

import numpy as np

DEFECT = "output transposed"
NAMES = ()


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    d = x.shape[-1]
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * np.cos(angle) - x[..., 1::2] * np.sin(angle)
    out[..., 1::2] = x[..., 1::2] * np.cos(angle) + x[..., 0::2] * np.sin(angle)
    return np.swapaxes(out, -3, -2) if x.ndim > 2 else out
