"""Logits are clamped at +-30 so that exp cannot overflow. Imagined: an embedded kernel without a max pass."""

import numpy as np

DEFECT = "logits clamped before the exponential"
NAMES = ()


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        n_rep = q.shape[-3] // k.shape[-3]
        k, v = np.repeat(k, n_rep, axis=-3), np.repeat(v, n_rep, axis=-3)
    logits = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        logits = logits + bias
    e = np.exp(np.clip(logits, -30, 30)).astype(np.float32)
    if mask is not None:
        e = np.where(mask, e, np.float32(0))
    total = e.sum(axis=-1, keepdims=True)
    return (e / np.where(total == 0, np.float32(1), total)) @ v
