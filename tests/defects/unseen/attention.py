"""Attention and its logits, implemented with defects reported after the registry was written."""

import numpy as np
import torch
from planting import planted


def rotated(x, cos, sin, layout):
    r = 2 * cos.shape[-1]
    if layout == "half":
        u, v = x[..., : r // 2], x[..., r // 2 : r]
    elif layout == "interleaved":
        u, v = x[..., :r:2], x[..., 1:r:2]
    else:
        raise NotImplementedError(layout)
    turned = u * cos - v * sin, v * cos + u * sin
    turned = np.concatenate(turned, axis=-1) if layout == "half" else np.stack(turned, axis=-1).reshape(*x.shape[:-1], r)
    return np.concatenate([turned, x[..., r:]], axis=-1).astype(x.dtype)


def turned(x, positions, layout, base):
    angle = positions[..., None] * float(base) ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    return rotated(x.astype(np.float64), np.cos(angle), np.sin(angle), layout)


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


@planted("products in TensorFloat-32", names=("logits-tf32",))
def attention_logits_tf32():
    """
    Queries and keys lose 13 bits of their fraction before they are multiplied: TensorFloat-32, allowed by default on GPUs.

    Should be said: unexplained, of the size of a rounding to 11 bits (until a deviation for TF32 exists).
    """

    def tf32(x):
        bits = x.astype(np.float32).view(np.uint32)
        return ((bits + 0x0FFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32).astype(np.float64)

    def attention_logits(q, k, /, *, bias=None, scale=None):
        if q.ndim > 2:
            k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
        logits = tf32(q) @ np.swapaxes(tf32(k), -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        return (logits if bias is None else logits + bias).astype(q.dtype)

    return attention_logits


@planted("sums of earlier tiles not rescaled", names=())
def attention_tiles_never_rescaled():
    """
    Keys come in tiles of 4, and sums made before a new maximum are not rescaled: an online softmax with a line missing.

    Should be said: unexplained; cases with more than 4 keys (or the option or size that goes with them).
    """

    def heads_of(x, heads):
        return x if x.ndim < 3 else np.repeat(x, heads // x.shape[-3], axis=-3)

    def logits_of(q, k, bias, scale):
        heads = q.shape[-3] if q.ndim > 2 else 1
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        logits = q.astype(np.float64) @ np.swapaxes(heads_of(k, heads), -1, -2).astype(np.float64) * scale
        return logits if bias is None else logits + bias

    def attention(q, k, v, /, *, bias=None, scale=None):
        logits = logits_of(q, k, bias, scale)
        v = heads_of(v, q.shape[-3] if q.ndim > 2 else 1).astype(np.float64)
        total, weighted, most = 0.0, 0.0, -np.inf
        for start in range(0, logits.shape[-1], 4):
            tile = logits[..., start : start + 4]
            most = np.maximum(most, tile.max(axis=-1, keepdims=True))
            e = np.exp(tile - most)
            total, weighted = total + e.sum(axis=-1, keepdims=True), weighted + e @ v[..., start : start + 4, :]
        return (weighted / total).astype(q.dtype)

    return attention


@planted("log2 divided by ln", names=("logn-log2",))
def logn_log2():
    """The logarithm above is to base 2 and the one below is natural: two libraries' `log`."""

    def logn_scale(positions, /, *, original_length, offset, at_least_one):
        if at_least_one:
            raise NotImplementedError(at_least_one)
        return (np.log2(np.maximum(positions.astype(np.int64) + offset, 1)) / np.log(original_length)).astype(np.float32)

    return logn_scale


@planted("content logits rounded to float16 before the sum", names=())
def mla_content_float16():
    """
    The product of the content channels is stored in float16 before the rotary part is added; two kernels, one workspace.

    Should be said: unexplained, and how far off: rounding of the size of float16. Not a name of a rounded input.
    """

    def mla_logits(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
        of_heads = q_positions if q_positions.ndim < 2 else q_positions[..., None, :]
        q, k = turned(q_rope, of_heads, layout, base), turned(k_rope, k_positions, layout, base)
        content = (q_nope.astype(np.float64) @ np.swapaxes(k_nope, -1, -2)).astype(np.float16).astype(np.float64)
        scale = (q_nope.shape[-1] + q_rope.shape[-1]) ** -0.5 if scale is None else scale
        return ((content + q @ np.swapaxes(k, -1, -2)[..., None, :, :]) * scale).astype(q_nope.dtype)

    return mla_logits


@planted("odd heads have the rotary query of the head before", names=())
def mla_rotary_heads_paired():
    """
    Two heads share the rotary channels of the first of them: grouped as keys are. Imagined, a stride of another tensor.

    Should be said: unexplained; every second head is wrong.
    """

    def mla_logits(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
        heads = np.arange(q_rope.shape[-3]) // 2 * 2
        of_heads = q_positions if q_positions.ndim < 2 else q_positions[..., None, :]
        q, k = turned(q_rope[..., heads, :, :], of_heads, layout, base), turned(k_rope, k_positions, layout, base)
        logits = q_nope.astype(np.float64) @ np.swapaxes(k_nope, -1, -2) + q @ np.swapaxes(k, -1, -2)[..., None, :, :]
        scale = (q_nope.shape[-1] + q_rope.shape[-1]) ** -0.5 if scale is None else scale
        return (logits * scale).astype(q_nope.dtype)

    return mla_logits
