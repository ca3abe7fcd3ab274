"""Keys come in tiles of 4, and sums made before a new maximum are not rescaled: an online softmax with a line missing.

Should be said: unexplained; cases with more than 4 keys (or the option or size that goes with them).
"""

import numpy as np

DEFECT = "sums of earlier tiles not rescaled"
NAMES = ()


def heads_of(x, heads):
    return x if x.ndim < 3 else np.repeat(x, heads // x.shape[-3], axis=-3)


def logits_of(q, k, bias, scale):
    heads = q.shape[-3] if q.ndim > 2 else 1
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    logits = q.astype(np.float64) @ np.swapaxes(heads_of(k, heads), -1, -2).astype(np.float64) * scale
    return logits if bias is None else logits + bias


def attention(q, k, v, /, *, bias=None, scale=None):
    logits = logits_of(q, k, bias, scale)
    v = heads_of(v, q.shape[-3] if q.ndim > 2 else 1).astype(np.float64)
    total, weighted, most = 0.0, 0.0, -np.inf
    for start in range(0, logits.shape[-1], 4):
        tile = logits[..., start : start + 4]
        most = np.maximum(most, tile.max(axis=-1, keepdims=True))
        e = np.exp(tile - most)
        total, weighted = total + e.sum(axis=-1, keepdims=True), weighted + e @ v[..., start : start + 4, :]
    return (weighted / total).astype(q.dtype)
