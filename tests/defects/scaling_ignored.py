"""The declared scaling is read and never applied; mlx-vlm #1710 (models that ignored rope_scaling, and nine others)."""

import numpy as np

DEFECT = "scaling ignored"
NAMES = ("scaling-dropped",)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0


def rope(x, positions, /, *, layout, base, scaling=None, length=None):
    if layout != "half":
        raise NotImplementedError(layout)
    inv_freq, gain = rope_frequencies(x.shape[-1], base=base, scaling=scaling, length=length)
    emb = np.tile(positions[..., None].astype(np.float32) * inv_freq, 2)
    half = x.shape[-1] // 2
    return x * np.cos(emb) * gain + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * np.sin(emb) * gain
