"""The embedding of relative positions has padding_idx=0."""

import numpy as np

DEFECT = "row 0 of the table is zero"
NAMES = ("shaw-row-0-zero",)


def shaw_scores(q, k, table, q_positions, k_positions, /, *, left, right, order):
    table = np.concatenate([0 * table[:1], table[1:]])
    apart = k_positions[..., None, :] - q_positions[..., :, None]
    apart = apart if order == "key_minus_query" else -apart
    rows = table[np.clip(apart, -left, right) + left]
    return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)
