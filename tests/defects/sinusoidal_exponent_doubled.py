"""The exponent is 2 * (2i) / d in a loop that already steps by two; a much copied PyTorch tutorial."""

import numpy as np

DEFECT = "exponent doubled"
NAMES = ("exponent-doubled",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, dtype=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    pos = positions.astype(np.float32)
    pe = np.zeros((*positions.shape, dim), dtype=np.float32)
    for i in range(0, dim, 2):
        pe[..., i] = np.sin(pos / np.float32(base ** ((2 * i) / dim)))
        pe[..., i + 1] = np.cos(pos / np.float32(base ** ((2 * i) / dim)))
    return pe.astype(dtype or np.float32)
