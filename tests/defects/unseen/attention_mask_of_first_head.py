"""The mask of head 0 is used for all heads: a mask kept as (B, Q, K) by the kernel. Imagined, after vLLM's block masks.

Should be said: unexplained; heads after the first are wrong, where the mask has heads.
"""

import numpy as np

DEFECT = "the mask of head 0 for every head"
NAMES = ()


def heads_of(x, heads):
    return x if x.ndim < 3 else np.repeat(x, heads // x.shape[-3], axis=-3)


def logits_of(q, k, bias, scale):
    heads = q.shape[-3] if q.ndim > 2 else 1
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    logits = q.astype(np.float64) @ np.swapaxes(heads_of(k, heads), -1, -2).astype(np.float64) * scale
    return logits if bias is None else logits + bias


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = logits_of(q, k, bias, scale)
    v = heads_of(v, q.shape[-3] if q.ndim > 2 else 1).astype(np.float64)
    mask = np.ones((1, 1), dtype=bool) if mask is None else mask[..., :1, :, :] if mask.ndim > 2 else mask
    logits = np.where(mask, logits, -np.inf)
    most = logits.max(axis=-1, keepdims=True)
    e = np.exp(logits - np.where(np.isfinite(most), most, 0))
    total = e.sum(axis=-1, keepdims=True)
    return (e @ v / np.where(total == 0, 1, total)).astype(q.dtype)
