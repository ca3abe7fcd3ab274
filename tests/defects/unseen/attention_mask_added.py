"""A boolean mask is added to the logits, so that True means one more. Seen wherever an additive mask was expected."""

import numpy as np

DEFECT = "the boolean mask is added as 0 and 1"
NAMES = ()


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if q.ndim > 2 and k.ndim > 2 and k.shape[-3] != q.shape[-3]:
        groups = q.shape[-3] // k.shape[-3]
        k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
    s = np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    logits = (q * s) @ np.swapaxes(k, -1, -2)
    if bias is not None:
        logits = logits + bias
    if mask is not None:
        logits = logits + mask.astype(np.float32)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) @ v
