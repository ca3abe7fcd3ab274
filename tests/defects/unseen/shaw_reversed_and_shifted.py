"""The difference the other way, and a table whose first row is padding: two habits of ports of music transformers."""

import numpy as np

DEFECT = "differences negated, and rows taken one further on"
NAMES = (("shaw-other-order", "shaw-row-plus-1"),)


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
