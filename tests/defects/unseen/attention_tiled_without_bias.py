"""Key heads tiled rather than repeated (TinyLlama #24), and a bias that a fused path forgets."""

import torch

backend = "torch"
DEFECT = "key heads tiled, and the bias dropped"
NAMES = (("heads-tiled", "bias-dropped"),)


def widen(q, k):
    if min(q.ndim, k.ndim) < 3:
        return k
    return torch.cat([k] * (q.shape[-3] // k.shape[-3]), dim=-3)


def attention_logits(q, k, /, *, bias=None, scale=None):
    return torch.einsum("...qd,...kd->...qk", q, widen(q, k)) * (q.shape[-1] ** -0.5 if scale is None else scale)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = attention_logits(q, k, scale=scale)
    logits = logits if mask is None else torch.where(mask, logits, -torch.inf)
    return torch.nan_to_num(torch.softmax(logits, -1)) @ widen(q, v)
