"""Biases, buckets, windows and masks with defects of a kind that was reported elsewhere: alignment, widths, dropped parts."""

import numpy as np
from planting import planted


def apart(q_positions, k_positions):
    return np.asarray(q_positions)[..., :, None] - np.asarray(k_positions)[..., None, :]


def buckets(relative, bidirectional, num_buckets, max_distance):
    n, offset = -relative, 0
    if bidirectional:
        num_buckets //= 2
        offset = np.where(n < 0, num_buckets, 0)
        n = np.abs(n)
    else:
        n = np.maximum(n, 0)
    exact = num_buckets // 2
    large = np.log(np.maximum(n, 1) / exact) / np.log(max_distance / exact) * (num_buckets - exact) + 1e-9
    large = np.minimum(exact + np.floor(large).astype(np.int64), num_buckets - 1)
    return offset + np.where(n < exact, n, large)


@planted("queries are the last ones of the keys, whatever their positions", names=("t5-bottom-right",))
def t5_bottom_right():
    """Queries at K - Q, ..., K - 1."""

    def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
        q, k = np.shape(q_positions)[-1], np.shape(k_positions)[-1]
        batch = np.broadcast_shapes(np.shape(q_positions)[:-1], np.shape(k_positions)[:-1])
        relative = -apart(np.arange(k - q, k), np.arange(k))
        bias = np.moveaxis(table[buckets(relative, bidirectional, table.shape[0], max_distance)], -1, -3)
        return np.broadcast_to(bias, (*batch, table.shape[1], q, k)).astype(table.dtype)

    return t5_bias


@planted("queries are the last ones of the keys, whatever their positions", names=("mask-bottom-right",))
def window_aligned_to_last_key():
    """The mask of flash-attention's window, which is aligned to the last key."""

    def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
        q, k = np.shape(q_positions)[-1], np.shape(k_positions)[-1]
        d, r = apart(np.arange(k - q, k), np.arange(k)), window - (counting == "with_query")
        batch = np.broadcast_shapes(np.shape(q_positions)[:-1], np.shape(k_positions)[:-1])
        return np.broadcast_to((d <= r) & (d >= 0) if sides == "causal" else np.abs(d) <= r, (*batch, q, k))

    return sliding_window


@planted("relative positions in uint32 where causal", names=("t5-unsigned",))
def t5_unsigned():
    """A query before its key has a distance near 2^32."""

    def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
        if bidirectional:
            msg = "causal alone"
            raise NotImplementedError(msg)
        far = (-np.asarray(relative_positions, np.int64)) % 2**32
        return buckets(-far, False, num_buckets, max_distance)

    return t5_buckets


@planted("the bias of the last query is 0", names=(), said="nly the last query")
def alibi_last_query_zero():
    """The last row of the bias is never written."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form != "distance" or heads & (heads - 1):
            msg = "distance, and a power of two"
            raise NotImplementedError(msg)
        m = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        out = -m[:, None, None] * np.abs(apart(q_positions, k_positions))[..., None, :, :]
        if out.shape[-2] > 1:
            out[..., -1, :] = 0
        return out.astype(dtype or np.float32)

    return alibi


@planted("distances in int8", names=(), said="at distances from 291 on")
def alibi_int8():
    """Distances wrap at 128."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        d = apart(q_positions, k_positions)
        if form != "distance" or heads & (heads - 1) or d.dtype.kind == "f":
            msg = "distance, integers, and a power of two"
            raise NotImplementedError(msg)
        m = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        return (-m[:, None, None] * np.abs(d.astype(np.int8).astype(float))[..., None, :, :]).astype(dtype or np.float32)

    return alibi


@planted("the far end of the window is not tested", names=("window-ignored",))
def lambda_window_whole_past():
    """All keys before the query are seen: sinks and the window make no difference."""

    def lambda_window(q_positions, k_positions, /, *, num_sinks, window, counting):
        return apart(q_positions, k_positions) >= 0

    return lambda_window


@planted("sinks after the query are seen", names=("lambda-sinks-before",))
def lambda_window_sinks_ahead():
    """The sinks are seen by every query, also by those before them."""

    def lambda_window(q_positions, k_positions, /, *, num_sinks, window, counting):
        d, r = apart(q_positions, k_positions), window - (counting == "with_query")
        sink = np.asarray(k_positions)[..., None, :] < num_sinks
        return ((d >= 0) & (d <= r)) | sink

    return lambda_window


@planted("every second key before the query is hidden", names=())
def chunked_strided():
    """A dilated window."""

    def chunked_window(q_positions, k_positions, /, *, chunk_size, sides):
        q, k = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
        same = (q // chunk_size == k // chunk_size) & ((q - k) % 2 == 0)
        return same & (k <= q) if sides == "causal" else same

    return chunked_window


@planted("one query sees no key", names=("mask-one-query-none",))
def chunked_decode_blind():
    """The mask of a single token is never filled in."""

    def chunked_window(q_positions, k_positions, /, *, chunk_size, sides):
        q, k = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
        same = q // chunk_size == k // chunk_size
        out = same & (k <= q) if sides == "causal" else same
        return out & (q.shape[-2] > 1)

    return chunked_window


@planted("ReRoPE in place of Leaky ReRoPE", names=(("leaky-stops", "leaky-after-query"),))
def leaky_as_rerope():
    """Far distances are the window, and do not grow."""

    def leaky_rerope_distances(q_positions, k_positions, /, *, window, factor, dtype=None):
        d = apart(q_positions, k_positions).astype(float)
        return np.where(d < window, d, window).astype(dtype or np.float32)

    return leaky_rerope_distances


@planted("chunks in place of a sliding window", names=())
def window_as_chunks():
    """Chunks in place of a sliding window."""

    def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
        q, k = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
        same = q // window == k // window
        return same & (k <= q) if sides == "causal" else same

    return sliding_window


@planted("the mask of head 0 is used for every head", names=("mask-first-head",))
def attention_first_mask():
    """The mask loses its head axis."""

    def attention(q, k, v, /, *, mask=None):
        if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
            msg = "grouped"
            raise NotImplementedError(msg)
        s = q.astype(float) @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
        if mask is not None:
            mask = mask[..., :1, :, :] if mask.ndim > 2 else mask
            s = np.where(mask, s, -np.inf)
        top = np.max(s, axis=-1, keepdims=True, initial=-np.inf)
        w = np.exp(s - np.where(np.isfinite(top), top, 0))
        total = w.sum(-1, keepdims=True)
        return ((w / np.where(total, total, 1)) @ v).astype(q.dtype)

    return attention


@planted("the root of D is taken of all heads together", names=("scale-of-all-heads",))
def logits_scale_of_model():
    """1/sqrt(H D) rather than 1/sqrt(D)."""

    def attention_logits(q, k, /, *, bias=None, scale=None):
        if bias is not None or scale is not None or (q.ndim > 2 and q.shape[-3] != k.shape[-3]):
            msg = "plain"
            raise NotImplementedError(msg)
        heads = q.shape[-3] if q.ndim > 2 else 1
        return (q.astype(float) @ np.swapaxes(k, -1, -2) / (heads * q.shape[-1]) ** 0.5).astype(q.dtype)

    return attention_logits
