"""1/sqrt(D) whatever scale is asked for: a kernel that knows no other; Megatron-LM #1429's class (MLA's scale is lost)."""

import torch

backend = "torch"
DEFECT = "an explicit scale is ignored"
NAMES = ("scale-ignored",)


def attention_logits(q, k, /, *, bias=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and k.shape[-3] < q.shape[-3]:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    logits = torch.matmul(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
    return logits if bias is None else logits + bias


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = attention_logits(q, k, bias=bias, scale=scale)
    if mask is not None:
        logits = logits.masked_fill(~mask, float("-inf"))
    if min(q.ndim, v.ndim) > 2:
        v = v.repeat_interleave(q.shape[-3] // v.shape[-3], dim=-3)
    return torch.nan_to_num(torch.softmax(logits, dim=-1)) @ v
