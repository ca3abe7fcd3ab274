"""Pairs after the last full vector of four are not rotated; flashinfer #2470 (rotary_dim/2 no multiple of 8)."""

import numpy as np

DEFECT = "pairs beyond a multiple of four are not rotated"
NAMES = ("vector-tail-unrotated",)


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    pairs = x.shape[-1] // 2
    full = pairs // 4 * 4
    inv_freq = 1.0 / base ** (np.arange(full, dtype=np.float32) / pairs)
    angle = positions[..., None].astype(np.float32) * inv_freq
    z = np.ascontiguousarray(x).view(np.complex64)
    turned = z[..., :full] * np.exp(1j * angle).astype(np.complex64)
    return np.concatenate([turned, z[..., full:]], axis=-1).view(np.float32)
