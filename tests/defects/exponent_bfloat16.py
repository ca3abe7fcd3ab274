"""The exponents 2i/d are cast to the compute dtype, bfloat16; keras-hub #1508 (Gemma)."""

import numpy as np

DEFECT = "frequency exponents rounded to bfloat16"
NAMES = ("exponents-bfloat16",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    fraction = np.arange(n, dtype=np.float32) / n
    bits = fraction.view(np.uint32)
    fraction = ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    radians = positions[..., None].astype(np.float32) / base**fraction
    c, s = np.cos(radians), np.sin(radians)
    x1, x2 = np.split(x, 2, axis=-1)
    return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1)
