"""Differences beyond the window wrap around rather than stop at its edge. Imagined: an index taken modulo the table."""

import numpy as np

DEFECT = "rows taken modulo the size of the table rather than clipped"
NAMES = ("shaw-rows-modulo",)


def rows(q_positions, k_positions, left, right, order):
    gap = k_positions[..., None, :] - q_positions[..., :, None]
    return ((gap if order == "key_minus_query" else -gap) + left) % (left + right + 1)


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    a = key_table[rows(q_positions, k_positions, left, right, order)]
    return np.einsum("...qd,...kd->...qk", q, k) + np.einsum("...qd,...qkd->...qk", q, a)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    a = value_table[rows(q_positions, k_positions, left, right, order)]
    return weights @ v + np.einsum("...qk,...qkd->...qd", weights, a)
