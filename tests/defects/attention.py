"""Attention and its logits, implemented with one defect each."""

import numpy as np
import torch
from planting import planted


@planted("bias added before the scale", names=("bias-before-scale",), backend="torch")
def attention_bias_before_scale():
    """The bias is added before the 1/sqrt(D); Falcon's ALiBi, wrong for BLOOM and MPT."""

    def attention_logits(q, k, /, *, bias=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
        scores = torch.matmul(q, k.transpose(-1, -2))
        if bias is not None:
            scores = scores + bias
        return scores * (q.shape[-1] ** -0.5 if scale is None else scale)

    return attention_logits


@planted("finite mask constant -1e4", names=("mask-constant-1e4",))
def attention_finite_mask():
    """Forbidden logits are set to -1e4 above allowed ones under steep biases; old GPT-2 in transformers (`masked_bias`)."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            groups = q.shape[-3] // k.shape[-3]
            k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
        w = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            w = w + bias
        if mask is not None:
            w = np.where(mask, w, np.float32(-1e4))
        w = np.exp(w - w.max(axis=-1, keepdims=True))
        w = w / w.sum(axis=-1, keepdims=True)
        return (w @ v).astype(q.dtype)

    return attention


@planted("grouped heads tiled", names=("heads-tiled",), backend="torch")
def attention_heads_tiled():
    """Key heads are tiled 0,1,0,1 where they should repeat 0,0,1,1; `repeat` for `repeat_interleave` in a GQA port."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            copies = q.shape[-3] // k.shape[-3]
            k, v = torch.cat([k] * copies, dim=-3), torch.cat([v] * copies, dim=-3)
        w = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            w = w + bias
        if mask is not None:
            w = w.masked_fill(~mask, float("-inf"))
        return torch.nan_to_num(torch.softmax(w, dim=-1)) @ v

    return attention


@planted("mask inverted", names=("mask-inverted",), backend="torch")
def attention_mask_inverted():
    """True forbids in place of allowing; torch's MultiheadAttention and scaled_dot_product_attention disagree on it."""

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

    return attention


@planted("fully masked row gives the mean", names=("masked-row-mean",))
def attention_masked_row_mean():
    """A row with nothing allowed gives the mean of the values, as finfo.min masks do in transformers; zeros are asked."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            n_rep = q.shape[-3] // k.shape[-3]
            k, v = np.repeat(k, n_rep, axis=-3), np.repeat(v, n_rep, axis=-3)
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            scores = scores + bias
        if mask is not None:
            scores = np.where(mask, scores, np.finfo(np.float32).min)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (scores / scores.sum(axis=-1, keepdims=True)) @ v

    return attention


@planted("scale 1/D in place of 1/sqrt(D)", names=("scale-by-dim",))
def attention_scale_by_dim():
    """The logits are divided by D and not by its root; muP's 1/d attention loaded with standard weights."""

    def attention_logits(q, k, /, *, bias=None, scale=None):
        if scale is None:
            scale = 1.0 / q.shape[-1]
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
        logits = np.einsum("...id,...jd->...ij", q, k) * np.float32(scale)
        return logits if bias is None else logits + bias

    return attention_logits


@planted("scale missing", names=("scale-missing",))
def attention_scale_missing():
    """The logits are not divided by sqrt(D): T5's convention, which folds the scale into its weights, used elsewhere."""

    def attention_logits(q, k, /, *, bias=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
        logits = np.matmul(q, np.swapaxes(k, -1, -2)) * np.float32(1 if scale is None else scale)
        return logits if bias is None else logits + bias

    return attention_logits


@planted("softmax over the query axis", names=("softmax-over-queries",))
def attention_softmax_axis():
    """The softmax runs over the queries. Imagined: an axis that stayed when the head axis came in."""

    def softmax(z, axis):
        e = np.exp(z - np.where(np.isinf(top := z.max(axis=axis, keepdims=True)), 0, top))
        total = e.sum(axis=axis, keepdims=True)
        return e / np.where(total == 0, 1, total)

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            n_rep = q.shape[-3] // k.shape[-3]
            k, v = k.repeat(n_rep, axis=-3), v.repeat(n_rep, axis=-3)
        z = np.einsum("...qd,...kd->...qk", q, k) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
        z = z if bias is None else z + bias
        z = z if mask is None else np.where(mask, z, np.float32(-np.inf))
        return np.einsum("...qk,...kd->...qd", softmax(z, axis=-2), v)

    return attention


@planted("logits clamped before the exponential", names=())
def attention_softmax_clamped():
    """Logits are clamped at +-30 so that exp cannot overflow. Imagined: an embedded kernel without a max pass."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
        if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
            n_rep = q.shape[-3] // k.shape[-3]
            k, v = np.repeat(k, n_rep, axis=-3), np.repeat(v, n_rep, axis=-3)
        logits = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            logits = logits + bias
        e = np.exp(np.clip(logits, -30, 30)).astype(np.float32)
        if mask is not None:
            e = np.where(mask, e, np.float32(0))
        total = e.sum(axis=-1, keepdims=True)
        return (e / np.where(total == 0, np.float32(1), total)) @ v

    return attention
