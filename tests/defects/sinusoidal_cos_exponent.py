"""Sine and cosine use different exponents, 2i/d and (2i+1)/d: `2 * (i // 2)` forgotten in the TensorFlow tutorial."""

import numpy as np

DEFECT = "cosine uses the next exponent"
NAMES = ("sinusoid-cos-exponent",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    rates = 1 / np.power(np.float32(base), np.arange(dim, dtype=np.float32) / np.float32(dim))
    angles = positions[..., np.newaxis].astype(np.float32) * rates
    angles[..., 0::2] = np.sin(angles[..., 0::2])
    angles[..., 1::2] = np.cos(angles[..., 1::2])
    return angles.astype(dtype or np.float32)
