"""The softmax runs over the queries. Imagined: an axis that stayed when the head axis came in."""

import numpy as np

DEFECT = "softmax over the query axis"
NAMES = ("softmax-over-queries",)


def softmax(z, axis):
    e = np.exp(z - np.where(np.isinf(top := z.max(axis=axis, keepdims=True)), 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        n_rep = q.shape[-3] // k.shape[-3]
        k, v = k.repeat(n_rep, axis=-3), v.repeat(n_rep, axis=-3)
    z = np.einsum("...qd,...kd->...qk", q, k) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
    z = z if bias is None else z + bias
    z = z if mask is None else np.where(mask, z, np.float32(-np.inf))
    return np.einsum("...qk,...kd->...qd", softmax(z, axis=-2), v)
