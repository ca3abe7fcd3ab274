"""The shift is left - 1, so the first two distances share a row. Imagined: a port from a 1-based language."""

import numpy as np

DEFECT = "table row off by one"
NAMES = ("shaw-row-minus-1",)


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    if order != "key_minus_query":
        raise NotImplementedError(order)
    distance = np.clip(k_positions[..., None, :] - q_positions[..., :, None], -left, right)
    row = np.clip(distance + left - 1, 0, left + right)
    keys = k[..., None, :, :] + key_table[row]
    return (q[..., :, None, :] * keys).sum(-1)
