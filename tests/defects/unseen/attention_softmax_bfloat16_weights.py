"""The weights of the softmax are cast to bfloat16 before they meet the values, as mixed-precision kernels do."""

import torch

backend = "torch"
DEFECT = "attention weights held in bfloat16"
NAMES = ()


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2:
        groups = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(groups, -3), v.repeat_interleave(groups, -3)
    logits = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    logits = logits if bias is None else logits + bias
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    weights = torch.nan_to_num(logits.softmax(-1)).to(torch.bfloat16)
    return weights.float() @ v
