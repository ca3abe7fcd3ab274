"""A constant of sqrt(D) with a typing error."""

import numpy as np

DEFECT = "logits 1.03 times too large"
NAMES = ()


def attention_logits(q, k, /, *, scale=None):
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        raise NotImplementedError(q.shape)
    return (q @ np.swapaxes(k, -1, -2) * (1.03 * (q.shape[-1] ** -0.5 if scale is None else scale))).astype(q.dtype)
