"""The table is built as [t, t] while adjacent pairs are rotated; xiangking/ark-nlp #47 (`repeat(1, 1, 2)`)."""

import numpy as np

DEFECT = "table in half layout, rotation interleaved"
NAMES = ("table-other-layout",)


def rotate_every_two(x):
    return np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    freqs = positions[..., None].astype(np.float32) * inv_freq
    emb = np.concatenate([freqs, freqs], axis=-1)
    return x * np.cos(emb) + rotate_every_two(x) * np.sin(emb)
