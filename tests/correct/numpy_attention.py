"""Attention, Shaw's terms and T5's bias in float32 NumPy with einsum and loops over table rows."""

import bisect
import math

import numpy as np


def expand(q, k):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        return k[..., np.arange(q.shape[-3]) // (q.shape[-3] // k.shape[-3]), :, :]
    return k


def attention_logits(q, k, /, *, bias=None, scale=None):
    scale = np.float32(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    logits = np.einsum("...qd,...kd->...qk", q * scale, expand(q, k))
    return logits if bias is None else logits + bias


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = attention_logits(q, k, bias=bias, scale=scale)
    allowed = np.broadcast_to(True if mask is None else mask, logits.shape)
    top = np.max(logits, axis=-1, keepdims=True, where=allowed, initial=np.finfo(np.float32).min)
    weights = np.where(allowed, np.exp(np.minimum(logits - top, 0)), np.float32(0))
    out = np.einsum("...qk,...kd->...qd", weights, expand(q, v))
    return out / np.maximum(weights.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)


def row_of(q_positions, k_positions, left, right, order):
    sign = 1 if order == "key_minus_query" else -1
    difference = sign * (k_positions[..., None, :] - q_positions[..., :, None])
    return np.minimum(np.maximum(difference, -left), right) + left


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    index = row_of(q_positions, k_positions, left, right, order)
    by_row = q @ key_table.T
    index = np.broadcast_to(index, (*by_row.shape[:-1], index.shape[-1]))
    return q @ np.swapaxes(k, -1, -2) + np.take_along_axis(by_row, index, axis=-1)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    index = row_of(q_positions, k_positions, left, right, order)
    out = weights @ v
    for row, vector in enumerate(value_table):
        out = out + np.where(index == row, weights, np.float32(0)).sum(axis=-1, keepdims=True) * vector
    return out


def thresholds(count, max_distance):
    exact = count // 2
    far = count - exact
    starts = list(range(1, exact + 1))
    for step in range(1, far):
        n = starts[-1]
        while n**far * exact**step < max_distance**step * exact**far:
            n += 1
        starts.append(n)
    return starts


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    count = num_buckets // 2 if bidirectional else num_buckets
    starts = thresholds(count, max_distance)
    out = np.empty(relative_positions.shape, dtype=np.int32)
    for where, relative in np.ndenumerate(relative_positions):
        distance = abs(int(relative)) if bidirectional else max(-int(relative), 0)
        out[where] = bisect.bisect_right(starts, distance) + (count if bidirectional and relative > 0 else 0)
    return out


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = k_positions[..., None, :] - q_positions[..., :, None]
    count = table.shape[0]
    buckets = t5_buckets(relative, bidirectional=bidirectional, num_buckets=count, max_distance=max_distance)
    return np.stack([column[buckets] for column in table.T], axis=-3)
