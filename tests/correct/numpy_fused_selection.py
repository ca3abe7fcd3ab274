"""A fused kernel by norms and matrices: the root of D over a 2-norm, pairs as complex numbers."""

import numpy as np


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout == "interleaved_to_half" or precedence != "norm_first":
        raise NotImplementedError
    width, pairs = x.shape[-1], cos.shape[-1]
    length = np.hypot(np.linalg.norm(x, axis=-1, keepdims=True), np.sqrt(np.float32(width * eps)))
    y = np.sqrt(np.float32(width)) * x * (weight + np.float32(weight_offset)) / length
    turning = y[..., : 2 * pairs]
    first, second = np.split(turning, 2, axis=-1) if layout == "half" else (turning[..., ::2], turning[..., 1::2])
    turned = (first + 1j * second) * (cos + 1j * sin)
    both = (turned.real, turned.imag)
    out = np.concatenate(both, axis=-1) if layout == "half" else np.stack(both, axis=-1).reshape(turning.shape)
    return np.concatenate((out, y[..., 2 * pairs :]), axis=-1).astype(x.dtype)
