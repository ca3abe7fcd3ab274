"""Relative embeddings of Shaw et al., implemented with defects reported after the registry was written."""

import numpy as np
from planting import planted


@planted("row 1 is read for row 0", names=("shaw-row-0-as-1",))
def shaw_first_row_skipped():
    """Row 0 is kept for padding, and distances that reach it read row 1."""

    def shaw_scores(q, k, table, q_positions, k_positions, /, *, left, right, order):
        table = table[np.maximum(np.arange(len(table)), min(1, len(table) - 1))]
        apart = k_positions[..., None, :] - q_positions[..., :, None]
        apart = apart if order == "key_minus_query" else -apart
        rows = table[np.clip(apart, -left, right) + left]
        return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)

    return shaw_scores


@planted("the last row is read for row 0", names=())
def shaw_last_row_for_first():
    """Row -1 is read for row 0: an index that is one too small, where it may not be."""

    def shaw_scores(q, k, table, q_positions, k_positions, /, *, left, right, order):
        table = np.concatenate([table[-1:], table[1:]])
        apart = k_positions[..., None, :] - q_positions[..., :, None]
        apart = apart if order == "key_minus_query" else -apart
        rows = table[np.clip(apart, -left, right) + left]
        return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)

    return shaw_scores


@planted("rows taken modulo the size of the table rather than clipped", names=("shaw-rows-modulo",))
def shaw_modulo_window():
    """Differences beyond the window wrap around rather than stop at its edge. Imagined: an index taken modulo the table."""

    def rows(q_positions, k_positions, left, right, order):
        gap = k_positions[..., None, :] - q_positions[..., :, None]
        return ((gap if order == "key_minus_query" else -gap) + left) % (left + right + 1)

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        a = key_table[rows(q_positions, k_positions, left, right, order)]
        return np.einsum("...qd,...kd->...qk", q, k) + np.einsum("...qd,...qkd->...qk", q, a)

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        a = value_table[rows(q_positions, k_positions, left, right, order)]
        return weights @ v + np.einsum("...qk,...qkd->...qd", weights, a)

    return shaw_scores, shaw_values


@planted("the difference is always query minus key", names=("shaw-query-minus-key",), backend="torch")
def shaw_order_fixed():
    """Tensor2tensor's difference taken the other way for everybody; SpeechT5's convention, hard-coded."""

    def relative(table, q_positions, k_positions, left, right):
        gap = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
        return table[gap.clamp(-left, right) + left]

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        r = relative(key_table, q_positions, k_positions, left, right)
        return q @ k.transpose(-1, -2) + (q.unsqueeze(-2) * r).sum(-1)

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        r = relative(value_table, q_positions, k_positions, left, right)
        return weights @ v + (weights.unsqueeze(-1) * r).sum(-2)

    return shaw_scores, shaw_values


@planted("row 0 of the table is zero", names=("shaw-row-0-zero",))
def shaw_padding_row():
    """The embedding of relative positions has padding_idx=0."""

    def shaw_scores(q, k, table, q_positions, k_positions, /, *, left, right, order):
        table = np.concatenate([0 * table[:1], table[1:]])
        apart = k_positions[..., None, :] - q_positions[..., :, None]
        apart = apart if order == "key_minus_query" else -apart
        rows = table[np.clip(apart, -left, right) + left]
        return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)

    return shaw_scores


@planted("differences negated, and rows taken one further on", names=(("shaw-other-order", "shaw-row-plus-1"),))
def shaw_reversed_and_shifted():
    """The difference the other way, and a table whose first row is padding: two habits of ports of music transformers."""

    def lookup(table, q_positions, k_positions, left, right, order):
        gap = q_positions[..., :, None] - k_positions[..., None, :]
        index = np.clip(gap if order == "key_minus_query" else -gap, -left, right) + left + 1
        return table[np.minimum(index, table.shape[0] - 1)]

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        a = lookup(key_table, q_positions, k_positions, left, right, order)
        return np.matmul(q, np.swapaxes(k, -1, -2)) + np.sum(q[..., :, None, :] * a, axis=-1, dtype=np.float32)

    def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
        a = lookup(value_table, q_positions, k_positions, left, right, order)
        return np.matmul(weights, v) + np.sum(weights[..., None] * a, axis=-2, dtype=np.float32)

    return shaw_scores, shaw_values


@planted("scores divided by sqrt(D)", names=("shaw-scaled",))
def shaw_scaled():
    """The 1/sqrt(D) of attention is applied inside the scores; the reference leaves it to the caller."""

    def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
        gap = k_positions[..., None, :] - q_positions[..., :, None]
        if order == "query_minus_key":
            gap = -gap
        a = key_table[np.clip(gap, -left, right) + left]
        content = np.einsum("...qd,...kd->...qk", q, k)
        place = np.einsum("...qd,...qkd->...qk", q, a)
        return (content + place) / np.float32(np.sqrt(q.shape[-1]))

    return shaw_scores
