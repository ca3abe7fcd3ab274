"""The positions are not read: the table starts at zero and counts; keras-hub #1544 (`start_index` ignored)."""

import numpy as np

DEFECT = "arange in place of positions"
NAMES = ("positions-arange-of-x",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    seq_len = x.shape[-2] if x.ndim > 1 else 1
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    freqs = np.outer(np.arange(seq_len, dtype=np.float32), inv_freq)
    emb = np.concatenate([freqs, freqs], axis=-1).reshape(*x.shape[-2:])
    rotated = np.concatenate([-x[..., dim // 2 :], x[..., : dim // 2]], axis=-1)
    return x * np.cos(emb) + rotated * np.sin(emb)
