"""Attention and its logits, implemented with defects reported after the registry was written."""

import numpy as np
import torch
from planting import planted


@planted("scale 1/D, and a mask of -10000", names=(("scale-by-dim", "mask-constant-1e4"),), backend="torch")
def attention_divided_and_finite():
    """Logits divided by D, and -10000 for what is masked: two habits of older models in one attention."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2:
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
        logits = q @ k.transpose(-1, -2) * (1 / q.shape[-1] if scale is None else scale)
        logits = logits if bias is None else logits + bias
        if mask is not None:
            logits = logits.masked_fill(~mask, -10000.0)
        return torch.softmax(logits, dim=-1) @ v

    return attention


@planted("the boolean mask is added as 0 and 1", names=())
def attention_mask_added():
    """A boolean mask is added to the logits, so that True means one more. Seen wherever an additive mask was expected."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if q.ndim > 2 and k.ndim > 2 and k.shape[-3] != q.shape[-3]:
            groups = q.shape[-3] // k.shape[-3]
            k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
        s = np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
        logits = (q * s) @ np.swapaxes(k, -1, -2)
        if bias is not None:
            logits = logits + bias
        if mask is not None:
            logits = logits + mask.astype(np.float32)
        e = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return (e / e.sum(axis=-1, keepdims=True)) @ v

    return attention


@planted("the mask is ignored", names=("mask-ignored",), backend="torch")
def attention_mask_forgotten():
    """The mask is accepted and not passed on; a fused call without its `attn_mask`."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2:
            n = q.shape[-3] // k.shape[-3]
            k, v = k.repeat_interleave(n, dim=-3), v.repeat_interleave(n, dim=-3)
        logits = q @ k.mT * (scale if scale is not None else q.shape[-1] ** -0.5)
        if bias is not None:
            logits = logits + bias
        return torch.softmax(logits, dim=-1) @ v

    return attention


@planted("an explicit scale is ignored", names=("scale-ignored",), backend="torch")
def attention_scale_fixed():
    """1/sqrt(D) whatever scale is asked for: a kernel that knows no other; Megatron-LM #1429's class (MLA's scale is lost)."""

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

    return attention_logits, attention


@planted("attention weights held in bfloat16", names=(), backend="torch")
def attention_softmax_bfloat16_weights():
    """The weights of the softmax are cast to bfloat16 before they meet the values, as mixed-precision kernels do."""

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

    return attention


@planted("key heads tiled, and the bias dropped", names=(("heads-tiled", "bias-dropped"),), backend="torch")
def attention_tiled_without_bias():
    """Key heads tiled rather than repeated (TinyLlama #24), and a bias that a fused path forgets."""

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

    return attention_logits, attention


@planted("logits 1.03 times too large", names=())
def logits_scale_103():
    """A constant of sqrt(D) with a typing error."""

    def attention_logits(q, k, /, *, scale=None):
        if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
            raise NotImplementedError(q.shape)
        return (q @ np.swapaxes(k, -1, -2) * (1.03 * (q.shape[-1] ** -0.5 if scale is None else scale))).astype(q.dtype)

    return attention_logits
