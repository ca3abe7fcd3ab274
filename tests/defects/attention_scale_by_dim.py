"""The logits are divided by D and not by its root; muP's 1/d attention loaded with standard weights."""

import numpy as np

DEFECT = "scale 1/D in place of 1/sqrt(D)"
NAMES = ("scale-by-dim",)


def attention_logits(q, k, /, *, bias=None, scale=None):
    if scale is None:
        scale = 1.0 / q.shape[-1]
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    logits = np.einsum("...id,...jd->...ij", q, k) * np.float32(scale)
    return logits if bias is None else logits + bias
