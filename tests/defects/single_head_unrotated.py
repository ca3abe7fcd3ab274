"""With one head (multi-query keys) the tensor comes back unrotated; Liger-Kernel #342 (`num_head = 1`)."""

import numpy as np

DEFECT = "unrotated when there is one head"
NAMES = ("single-head-unrotated",)


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    if x.ndim > 2 and x.shape[-3] == 1:
        return x.copy()
    d = x.shape[-1]
    angle = positions.astype(np.float32)[..., None] / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    even, odd = x[..., ::2], x[..., 1::2]
    out = [even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)]
    return np.stack(out, axis=-1).reshape(x.shape)
