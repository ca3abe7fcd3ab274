"""The two clips change places, clip(d, -right, left) + right: wav2vec2-BERT's 64 and 8 in the other order."""

import numpy as np

DEFECT = "left and right swapped"
NAMES = ("shaw-clip-exchanged",)


def rows(q_positions, k_positions, left, right, order):
    difference = k_positions[..., None, :] - q_positions[..., :, None]
    if order == "query_minus_key":
        difference = -difference
    return np.clip(difference, -right, left) + right


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    a = key_table[rows(q_positions, k_positions, left, right, order)]
    return np.einsum("...qd,...kd->...qk", q, k) + np.einsum("...qd,...qkd->...qk", q, a)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    a = value_table[rows(q_positions, k_positions, left, right, order)]
    return np.einsum("...qk,...kd->...qd", weights, v) + np.einsum("...qk,...qkd->...qd", weights, a)
