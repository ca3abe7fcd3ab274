"""The partial rotary factor is applied twice, 32 of 64 columns; vLLM #41185 (BailingMoeV2.5)."""

import numpy as np

DEFECT = "rotary_dim reduced twice"
NAMES = ("rotary-dim-twice",)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    size = x.shape[-1]
    factor = (rotary_dim or size) / size
    d = max(2, int((rotary_dim or size) * factor) // 2 * 2)
    angle = positions[..., None].astype(np.float32) * (1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d))
    z = x[..., 0:d:2] + 1j * x[..., 1:d:2]
    z = z * np.exp(1j * angle).astype(np.complex64)
    return np.concatenate([np.stack([z.real, z.imag], axis=-1).reshape(*x.shape[:-1], d), x[..., d:]], axis=-1)
