"""The mask is accepted and not passed on; a fused call without its `attn_mask`."""

import torch

backend = "torch"
DEFECT = "the mask is ignored"
NAMES = ("mask-ignored",)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2:
        n = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(n, dim=-3), v.repeat_interleave(n, dim=-3)
    logits = q @ k.mT * (scale if scale is not None else q.shape[-1] ** -0.5)
    if bias is not None:
        logits = logits + bias
    return torch.softmax(logits, dim=-1) @ v
