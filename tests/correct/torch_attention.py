"""Attention and Shaw's terms in torch with einsum, float32 inside and one rounding to the dtype of q at the end."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def logits32(q, k, bias, scale):
    q, k = q.float(), k.float()
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    scores = torch.einsum("...qd,...kd->...qk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return scores if bias is None else scores + bias.float()


def attention_logits(q, k, /, *, bias=None, scale=None):
    return logits32(q, k, bias, scale).to(q.dtype)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    scores = logits32(q, k, bias, scale)
    if mask is not None:
        scores = scores.where(mask, -torch.inf)
    attn = torch.exp(scores - scores.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float32).min))
    attn = attn / attn.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    if min(q.ndim, v.ndim) > 2 and q.shape[-3] > v.shape[-3]:
        v = v.repeat_interleave(q.shape[-3] // v.shape[-3], dim=-3)
    return torch.einsum("...qk,...kd->...qd", attn, v.float()).to(q.dtype)


def rows(q_positions, k_positions, left, right, order):
    pair = (q_positions.unsqueeze(-1), k_positions.unsqueeze(-2))
    difference = pair[1] - pair[0] if order == "key_minus_query" else pair[0] - pair[1]
    return torch.clamp(difference, min=-left, max=right) + left


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    a = key_table.float()[rows(q_positions, k_positions, left, right, order)]
    keys = k.float().unsqueeze(-3) + a
    return torch.einsum("...qd,...qkd->...qk", q.float(), keys).to(q.dtype)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    a = value_table.float()[rows(q_positions, k_positions, left, right, order)]
    return torch.einsum("...qk,...qkd->...qd", weights.float(), v.float().unsqueeze(-3) + a).to(v.dtype)
