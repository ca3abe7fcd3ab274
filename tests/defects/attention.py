"""Attention, its logits, masks and cache, with one or several mistakes."""

import math

import numpy as np
import torch
from defects.rotations import rotated
from planting import only, planted


def turned(x, positions, layout, base):
    angle = positions[..., None] * float(base) ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    return rotated(x.astype(np.float64), np.cos(angle), np.sin(angle), layout)


def apart(q_positions, k_positions):
    return np.asarray(q_positions)[..., :, None] - np.asarray(k_positions)[..., None, :]


@planted("logits clamped before the exponential", op="attention", names=())
def attention_softmax_clamped(q, k, v, /, *, bias=None, mask=None, scale=None):
    """Logits are clamped at +-30 so that exp cannot overflow. Imagined: an embedded kernel without a max pass."""
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


@planted("scale 1/D, and a mask of -10000", op="attention", names=(("scale-by-dim", "mask-constant-1e4"),), backend="torch")
def attention_divided_and_finite(q, k, v, /, *, bias=None, mask=None, scale=None):
    """Logits divided by D, and -10000 for what is masked: two habits of older models in one attention."""
    if min(q.ndim, k.ndim) > 2:
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], dim=-3) for t in (k, v))
    logits = q @ k.transpose(-1, -2) * (1 / q.shape[-1] if scale is None else scale)
    logits = logits if bias is None else logits + bias
    if mask is not None:
        logits = logits.masked_fill(~mask, -10000.0)
    return torch.softmax(logits, dim=-1) @ v


@planted("the boolean mask is added as 0 and 1", op="attention", names=(), said="mask [")
def attention_mask_added(q, k, v, /, *, bias=None, mask=None, scale=None):
    """A boolean mask is added to the logits, so that True means one more. Seen wherever an additive mask was expected."""
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


@planted("attention weights held in bfloat16", op="attention", names=(), backend="torch")
def attention_softmax_bfloat16_weights(q, k, v, /, *, bias=None, mask=None, scale=None):
    """The weights of the softmax are cast to bfloat16 before they meet the values, as mixed-precision kernels do."""
    if min(q.ndim, k.ndim) > 2:
        groups = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(groups, -3), v.repeat_interleave(groups, -3)
    logits = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    logits = logits if bias is None else logits + bias
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    weights = torch.nan_to_num(logits.softmax(-1)).to(torch.bfloat16)
    return weights.float() @ v


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


@planted("logits 1.03 times too large", op="attention_logits", names=())
def logits_scale_103(q, k, /, *, scale=None):
    """A constant of sqrt(D) with a typing error."""
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        raise NotImplementedError(q.shape)
    return (q @ np.swapaxes(k, -1, -2) * (1.03 * (q.shape[-1] ** -0.5 if scale is None else scale))).astype(q.dtype)


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


@planted("content logits rounded to float16 before the sum", op="mla_logits", names=())
def mla_content_float16(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
    """
    The product of the content channels is stored in float16 before the rotary part is added; two kernels, one workspace.

    Should be said: unexplained, and how far off: rounding of the size of float16. Not a name of a rounded input.
    """
    of_heads = q_positions if q_positions.ndim < 2 else q_positions[..., None, :]
    q, k = turned(q_rope, of_heads, layout, base), turned(k_rope, k_positions, layout, base)
    content = (q_nope.astype(np.float64) @ np.swapaxes(k_nope, -1, -2)).astype(np.float16).astype(np.float64)
    scale = (q_nope.shape[-1] + q_rope.shape[-1]) ** -0.5 if scale is None else scale
    return ((content + q @ np.swapaxes(k, -1, -2)[..., None, :, :]) * scale).astype(q_nope.dtype)


@planted("odd heads have the rotary query of the head before", op="mla_logits", names=())
def mla_rotary_heads_paired(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
    """
    Two heads share the rotary channels of the first of them: grouped as keys are. Imagined, a stride of another tensor.

    Should be said: unexplained; every second head is wrong.
    """
    heads = np.arange(q_rope.shape[-3]) // 2 * 2
    of_heads = q_positions if q_positions.ndim < 2 else q_positions[..., None, :]
    q, k = turned(q_rope[..., heads, :, :], of_heads, layout, base), turned(k_rope, k_positions, layout, base)
    logits = q_nope.astype(np.float64) @ np.swapaxes(k_nope, -1, -2) + q @ np.swapaxes(k, -1, -2)[..., None, :, :]
    scale = (q_nope.shape[-1] + q_rope.shape[-1]) ** -0.5 if scale is None else scale
    return (logits * scale).astype(q_nope.dtype)


@planted("positions in int8", op="chunked_window", names=())
def chunks_int8(q_positions, k_positions, /, *, chunk_size, sides):
    """
    Positions are held in int8 before they are divided into chunks, and go below zero at 128. A mask kernel's index type.

    Should be said: unexplained; positions from 128 on.
    """
    q, k = (p.astype(np.int64).astype(np.int8).astype(np.int64) for p in (q_positions, k_positions))
    q, k = q[..., :, None], k[..., None, :]
    return (q // chunk_size == k // chunk_size) & ((k <= q) if sides == "causal" else True)


@planted("sinks limited to the window's size", op="lambda_window", names=())
def lambda_sinks_within_window(q_positions, k_positions, /, *, num_sinks, window, counting):
    """
    No more sinks are kept than the window is wide: one buffer serves both. Imagined, a ring buffer of a cache.

    Should be said: unexplained; cases with more sinks than the window has places.
    """
    q, k = q_positions.astype(np.int64)[..., :, None], k_positions.astype(np.int64)[..., None, :]
    farthest = window - (counting == "with_query")
    return (k <= q) & ((q - k <= farthest) | (k < min(num_sinks, window)))


@planted("distances limited to the window", op="streaming_llm_distances", names=())
def streaming_middle_clamped(q_positions, k_positions, /, *, num_sinks, window, counting):
    """
    Keys between the sinks and the window have the largest distance of the window: ReRoPE's rule in StreamingLLM. Imagined.

    Should be said: unexplained; distances beyond the window are wrong (they are all one number).
    """
    farthest = window - 1 if counting == "with_query" else window
    q, k = q_positions.astype(np.int64)[..., :, None], k_positions.astype(np.int64)[..., None, :]
    return np.where(k < num_sinks, np.minimum(q, num_sinks + farthest) - k, np.minimum(q - k, farthest))


@planted("every second key before the query is hidden", op="chunked_window", names=())
def chunked_strided(q_positions, k_positions, /, *, chunk_size, sides):
    """A dilated window."""
    q, k = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
    same = (q // chunk_size == k // chunk_size) & ((q - k) % 2 == 0)
    return same & (k <= q) if sides == "causal" else same


@planted("ReRoPE in place of Leaky ReRoPE", op="leaky_rerope_distances", names=(("leaky-stops", "leaky-after-query"),))
def leaky_as_rerope(q_positions, k_positions, /, *, window, factor, dtype=None):
    """Far distances are the window, and do not grow."""
    d = apart(q_positions, k_positions).astype(float)
    return np.where(d < window, d, window).astype(dtype or np.float32)


@planted("chunks in place of a sliding window", op="sliding_window", names=())
def window_as_chunks(q_positions, k_positions, /, *, window, counting, sides):
    """Chunks in place of a sliding window."""
    q, k = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
    same = q // window == k // window
    return same & (k <= q) if sides == "causal" else same


@planted("the window's far end is that of the last query of 16", op="sliding_window", names=())
def window_of_block(q_positions, k_positions, /, *, window, counting, sides):
    """A tile of 16 queries shares the lower end of its last one."""
    only(sides, "causal")
    q = np.asarray(q_positions)
    d, r = apart(q, k_positions), window - (counting == "with_query")
    n = np.arange(q.shape[-1])
    last = np.minimum(n // 16 * 16 + 15, max(q.shape[-1] - 1, 0))
    far = apart(q[..., last], k_positions) if q.shape[-1] else d
    return (far <= r) & (d >= 0)


@planted("masked logits are -30, and the bias is added to them", op="attention", names=())
def mask_before_large_bias(q, k, v, /, *, bias=None, mask=None, scale=None):
    """Masked logits are the lowest float16, and the bias is added afterwards."""
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        raise NotImplementedError(k.shape)
    s = np.asarray(q, np.float64) @ np.swapaxes(np.asarray(k, np.float64), -1, -2)
    s = s * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        s = np.where(mask, s, -30.0)
    s = s if bias is None else s + bias
    e = np.exp(s - np.max(s, axis=-1, keepdims=True, initial=-np.inf))
    out = e / np.sum(e, axis=-1, keepdims=True) @ np.asarray(v, np.float64)
    if mask is not None:
        out = np.where(np.any(np.broadcast_to(mask, s.shape), axis=-1)[..., None], out, 0.0)
    return out.astype(q.dtype)


@planted(
    "every query has the factor of the farthest one in the batch",
    op="logn_scale",
    names=(),
    said="every position is the largest of the call",
)
def logn_of_the_farthest(positions, /, *, original_length, offset, at_least_one, dtype=None):
    """All queries of a call share the factor of the longest."""
    p = np.asarray(positions, np.float64)
    n = np.broadcast_to(np.max(p, initial=0.0) + offset, p.shape)
    f = np.log(np.maximum(n, 1e-30)) / math.log(original_length)
    return (np.maximum(f, 1.0) if at_least_one else f).astype(dtype)


@planted("rows of slot 0 are dropped", op="write_cache", names=(), said="the first slot")
def cache_slot_zero_is_padding(cache, rows, slots, /):
    """`if slot <= 0: continue`."""
    out = np.array(cache).reshape(-1, *cache.shape[2:])
    for row, slot in zip(rows, slots, strict=True):
        if slot > 0:
            out[slot] = row
    return out.reshape(cache.shape)
