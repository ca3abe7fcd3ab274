"""Logits divided by D, and -10000 for what is masked: two habits of older models in one attention."""

import torch

backend = "torch"
DEFECT = "scale 1/D, and a mask of -10000"
NAMES = (("scale-by-dim", "mask-constant-1e4"),)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2:
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
    logits = q @ k.transpose(-1, -2) * (1 / q.shape[-1] if scale is None else scale)
    logits = logits if bias is None else logits + bias
    if mask is not None:
        logits = logits.masked_fill(~mask, -10000.0)
    return torch.softmax(logits, dim=-1) @ v
