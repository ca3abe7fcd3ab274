"""The two products are added in half precision; sglang #3134 and flashinfer #585 (half-precision multiply-add)."""

import numpy as np

DEFECT = "products added in float16"
NAMES = ("rotation-float16",)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
    c, s = np.cos(angle).astype(np.float16), np.sin(angle).astype(np.float16)
    x1, x2 = x[..., :n].astype(np.float16), x[..., n:].astype(np.float16)
    return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1).astype(np.float32)
