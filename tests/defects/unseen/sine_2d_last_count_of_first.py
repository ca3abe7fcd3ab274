"""All images are divided by the counts of the first image's last row and column. Imagined: a batch of padded images.

Should be said: unexplained; images after the first, or one image used for all.
"""

import numpy as np

DEFECT = "normalised by the first image of the batch"
NAMES = ()


def sine_2d(mask, dim, /, *, normalize, centered, base=10000.0, scale=2 * np.pi, eps=1e-06):
    blocks, half = [], dim // 2
    for axis in (-2, -1):
        count = np.cumsum(mask, axis=axis, dtype=np.float64)
        if normalize:
            last = count[..., -1:, :] if axis == -2 else count[..., -1:]
            last = last if mask.ndim == 2 else last.reshape(-1, *last.shape[-2:])[0]
            count = (count - 0.5 * centered) / (last + eps) * scale
        angle = count[..., None] * float(base) ** (-2 * np.arange(half // 2) / half)
        blocks.append(np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*mask.shape, half))
    return np.concatenate(blocks, axis=-1).astype(np.float32)
