"""Masks, positions, windows and attention with one mistake each."""

import math

import numpy as np
from planting import planted


def apart(q_positions, k_positions):
    return np.asarray(q_positions)[..., :, None] - np.asarray(k_positions)[..., None, :]


@planted("a document begins at position 0 alone", names=("documents-at-zero",))
def documents_by_reset_to_zero():
    """A document begins where the position is 0."""

    def packed_documents(positions, /):
        p = np.asarray(positions)
        starts = (p == 0) & (np.arange(p.shape[-1]) > 0)
        return np.cumsum(starts, axis=-1)

    return packed_documents


@planted("documents begin where positions fall", names=("documents-at-decrease",))
def documents_by_decrease():
    """diff < 0: a document that continues at a higher position is missed."""

    def packed_documents(positions, /):
        p = np.asarray(positions)
        if not p.shape[-1]:
            return np.zeros_like(p)
        falls = np.concatenate([np.zeros_like(p[..., :1]), np.diff(p, axis=-1) < 0], axis=-1)
        return np.cumsum(falls, axis=-1)

    return packed_documents


@planted("padding has the position of the token before it, or 0", names=("ids-padding-clamped",))
def positions_padding_not_removed():
    """cumsum - 1 without filling in the padding."""

    def positions_from_mask(mask, /, *, padding):
        return np.maximum(np.cumsum(np.asarray(mask, np.int64), axis=-1) - 1, 0)

    return positions_from_mask


@planted("positions of the mask run from one", names=("ids-from-one",))
def positions_from_one():
    """cumsum without the minus one."""

    def positions_from_mask(mask, /, *, padding):
        m = np.asarray(mask, np.int64)
        return np.where(m == 0, padding, np.cumsum(m, axis=-1))

    return positions_from_mask


@planted("the window is one key longer where it counts the query", names=("window-without-query",))
def window_inclusive():
    """distance <= window where it is counted with the query."""

    def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
        d = apart(q_positions, k_positions)
        return (d <= window) & (d >= 0) if sides == "causal" else np.abs(d) <= window

    return sliding_window


@planted("the window's far end is that of the last query of 16", names=())
def window_of_block():
    """A tile of 16 queries shares the lower end of its last one."""

    def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
        if sides != "causal":
            raise NotImplementedError(sides)
        q = np.asarray(q_positions)
        d, r = apart(q, k_positions), window - (counting == "with_query")
        n = np.arange(q.shape[-1])
        last = np.minimum(n // 16 * 16 + 15, max(q.shape[-1] - 1, 0))
        far = apart(q[..., last], k_positions) if q.shape[-1] else d
        return (far <= r) & (d >= 0)

    return sliding_window


@planted("sinks are counted by key index in the cache, not by position", names=("lambda-sinks-of-cache",))
def lambda_sinks_by_index():
    """The first keys of the array, whatever their positions."""

    def lambda_window(q_positions, k_positions, /, *, num_sinks, window, counting):
        d = apart(q_positions, k_positions)
        near = d < window if counting == "with_query" else d <= window
        first = np.arange(np.shape(k_positions)[-1]) < num_sinks
        return (d >= 0) & (near | first)

    return lambda_window


@planted("sinks see no causality", names=("lambda-sinks-before",))
def lambda_sinks_future():
    """(k < sinks) without k <= q."""

    def lambda_window(q_positions, k_positions, /, *, num_sinks, window, counting):
        d = apart(q_positions, k_positions)
        near = d < window if counting == "with_query" else d <= window
        return ((d >= 0) & near) | (np.broadcast_to(np.asarray(k_positions)[..., None, :], d.shape) < num_sinks)

    return lambda_window


@planted("the chunk before is allowed too", names=("chunk-and-before",))
def chunk_and_the_one_before():
    """Longformer-like neighbours: the chunk before is allowed too."""

    def chunked_window(q_positions, k_positions, /, *, chunk_size, sides):
        q, k = np.asarray(q_positions) // chunk_size, np.asarray(k_positions) // chunk_size
        behind = q[..., :, None] - k[..., None, :]
        allowed = (behind == 0) | (behind == 1)
        return allowed & (apart(q_positions, k_positions) >= 0) if sides == "causal" else allowed

    return chunked_window


@planted("the border is drawn after the first cells", names=("shifted-window-from-start",))
def swin_regions_without_wrap():
    """Only the region of the last shift is separated; the one of the last window is not."""

    def shifted_window_mask(q_positions, k_positions, /, *, size, window, shift):
        q, k = np.asarray(q_positions), np.asarray(k_positions)
        together = q[..., :, None] // window == k[..., None, :] // window
        region = lambda p: p >= shift  # noqa: E731
        return together & (region(q)[..., :, None] == region(k)[..., None, :])

    return shifted_window_mask


@planted("masked logits are -30, and the bias is added to them", names=())
def mask_before_large_bias():
    """Masked logits are the lowest float16, and the bias is added afterwards."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
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

    return attention


@planted("sinks are accepted and not used", names=("sinks-dropped",))
def sink_missing():
    """Sinks are accepted and never used."""

    def attention(q, k, v, /, *, bias=None, mask=None, scale=None, sinks=None):
        if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
            raise NotImplementedError(k.shape)
        s = np.asarray(q, np.float64) @ np.swapaxes(np.asarray(k, np.float64), -1, -2)
        s = s * (q.shape[-1] ** -0.5 if scale is None else scale)
        s = s if bias is None else s + bias
        s = s if mask is None else np.where(mask, s, -np.inf)
        top = np.max(s, axis=-1, keepdims=True, initial=-np.inf)
        e = np.exp(s - np.where(np.isfinite(top), top, 0.0))
        total = np.sum(e, axis=-1, keepdims=True)
        return (e / np.where(total > 0, total, 1.0) @ np.asarray(v, np.float64)).astype(q.dtype)

    return attention


@planted("query heads of a group are taken in turns", names=("heads-tiled",))
def grouped_heads_tiled():
    """k.repeat(g) over the head axis as a tile."""

    def attention_logits(q, k, /, *, bias=None, scale=None):
        q64, k64 = np.asarray(q, np.float64), np.asarray(k, np.float64)
        if q.ndim > 2:
            g = q.shape[-3] // k.shape[-3]
            k64 = np.concatenate([k64] * g, axis=-3)
        s = q64 @ np.swapaxes(k64, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        return (s if bias is None else s + bias).astype(q.dtype)

    return attention_logits


@planted("the query's products are computed in TF32", names=("logits-tf32",))
def logits_in_tf32():
    """Inputs are rounded to ten bits before the product."""

    def short(x):
        m, e = np.frexp(np.asarray(x, np.float64))
        return np.ldexp(np.round(m * 2**11) / 2**11, e)

    def attention_logits(q, k, /, *, bias=None, scale=None):
        q64, k64 = short(q), short(k)
        if q.ndim > 2:
            k64 = np.repeat(k64, q.shape[-3] // k.shape[-3], axis=-3)
        s = q64 @ np.swapaxes(k64, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        return (s if bias is None else s + bias).astype(q.dtype)

    return attention_logits


@planted(
    "every query has the factor of the farthest one in the batch", names=(), said="every position is the largest of the call"
)
def logn_of_the_farthest():
    """All queries of a call share the factor of the longest."""

    def logn_scale(positions, /, *, original_length, offset, at_least_one, dtype=None):
        p = np.asarray(positions, np.float64)
        n = np.broadcast_to(np.max(p, initial=0.0) + offset, p.shape)
        f = np.log(np.maximum(n, 1e-30)) / math.log(original_length)
        return (np.maximum(f, 1.0) if at_least_one else f).astype(dtype)

    return logn_scale


@planted("the logarithm of n has base two, and that of the length base e", names=("logn-log2",))
def logn_two_bases():
    """log2(n) / ln(length)."""

    def logn_scale(positions, /, *, original_length, offset, at_least_one, dtype=None):
        f = np.log2(np.asarray(positions, np.float64) + offset) / math.log(original_length)
        return (np.maximum(f, 1.0) if at_least_one else f).astype(dtype)

    return logn_scale


@planted("quotients of positions are not rounded down", names=("temperature-no-floor",))
def temperature_true_division():
    """beta log(1 + p / L)."""

    def attention_temperature(positions, /, *, form, beta, original_length, offset, dtype=None):
        if form != "steps":
            raise NotImplementedError(form)
        p = np.asarray(positions, np.float64)
        return (1 + beta * np.log1p((p + offset) / original_length)).astype(dtype)

    return attention_temperature


@planted("the chunk before counts like any earlier one", names=("dual-chunk-no-successive",))
def dual_chunk_successive_ignored():
    """The successive chunk is treated like all chunks further back."""

    def dual_chunk_distances(q_positions, k_positions, /, *, chunk_size, window):
        c = chunk_size - window
        q, k = np.asarray(q_positions), np.asarray(k_positions)
        behind = (q // c)[..., :, None] - (k // c)[..., None, :]
        far = min(2 * c - 1, chunk_size)
        query = np.where(behind < 1, (q % c)[..., :, None], far)
        return query - (k % c)[..., None, :]

    return dual_chunk_distances
