"""Neither rotary_dim nor base arrives: maxtext #4616 with litgpt #2217."""

import numpy as np

DEFECT = "the whole head is rotated, with base 10000"
NAMES = (("rotary-dim-ignored", "base-10000"),)


def rope(x, positions, /, *, layout, base, rotary_dim=None):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float32) * (10000.0 ** (-np.arange(n) / n)).astype(np.float32)
    z = (x[..., :n] + 1j * x[..., n:]) * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag], axis=-1).astype(np.float32)
