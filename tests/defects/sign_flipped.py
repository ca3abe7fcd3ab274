"""The rotation goes backwards: the complex factor is conjugated; lalamo #268 plants this sign on purpose."""

import numpy as np

DEFECT = "sign of the angle flipped"
NAMES = ("sign-flipped",)


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    freqs = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32)[: dim // 2] / dim))
    angle = np.asarray(positions, dtype=np.float32)[..., None] * freqs
    freqs_cis = np.exp(-1j * angle).astype(np.complex64)
    x_ = np.ascontiguousarray(x).view(np.complex64)
    return np.ascontiguousarray(x_ * freqs_cis).view(np.float32)
