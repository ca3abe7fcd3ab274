"""A row with nothing allowed gives the mean of the values, as finfo.min masks do in transformers; zeros are asked."""

import numpy as np

DEFECT = "fully masked row gives the mean"
NAMES = ("masked-row-mean",)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        n_rep = q.shape[-3] // k.shape[-3]
        k, v = np.repeat(k, n_rep, axis=-3), np.repeat(v, n_rep, axis=-3)
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, np.finfo(np.float32).min)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (scores / scores.sum(axis=-1, keepdims=True)) @ v
