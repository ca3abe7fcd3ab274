"""True forbids in place of allowing; torch's MultiheadAttention and scaled_dot_product_attention disagree on it."""

import torch

backend = "torch"
DEFECT = "mask inverted"
NAMES = ("mask-inverted",)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        n_rep = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(n_rep, dim=-3), v.repeat_interleave(n_rep, dim=-3)
    attn_weight = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        attn_weight = attn_weight + bias
    if mask is not None:
        attn_weight = attn_weight.masked_fill(mask, float("-inf"))
    return torch.softmax(attn_weight, dim=-1).nan_to_num() @ v
