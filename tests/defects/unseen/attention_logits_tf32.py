"""Queries and keys lose 13 bits of their fraction before they are multiplied: TensorFloat-32, allowed by default on GPUs.

Should be said: unexplained, of the size of a rounding to 11 bits (until a deviation for TF32 exists).
"""

import numpy as np

DEFECT = "products in TensorFloat-32"
NAMES = ()


def tf32(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x0FFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32).astype(np.float64)


def attention_logits(q, k, /, *, bias=None, scale=None):
    if q.ndim > 2:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    logits = tf32(q) @ np.swapaxes(tf32(k), -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return (logits if bias is None else logits + bias).astype(q.dtype)
