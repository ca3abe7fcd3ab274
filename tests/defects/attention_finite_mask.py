"""Forbidden logits are set to -1e4 above allowed ones under steep biases; old GPT-2 in transformers (`masked_bias`)."""

import numpy as np

DEFECT = "finite mask constant -1e4"
NAMES = ("mask-constant-1e4",)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        groups = q.shape[-3] // k.shape[-3]
        k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
    w = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        w = w + bias
    if mask is not None:
        w = np.where(mask, w, np.float32(-1e4))
    w = np.exp(w - w.max(axis=-1, keepdims=True))
    w = w / w.sum(axis=-1, keepdims=True)
    return (w @ v).astype(q.dtype)
