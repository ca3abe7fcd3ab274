"""The logits are not divided by sqrt(D): T5's convention, which folds the scale into its weights, used elsewhere."""

import numpy as np

DEFECT = "scale missing"
NAMES = ("scale-missing",)


def attention_logits(q, k, /, *, bias=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    logits = np.matmul(q, np.swapaxes(k, -1, -2)) * np.float32(1 if scale is None else scale)
    return logits if bias is None else logits + bias
