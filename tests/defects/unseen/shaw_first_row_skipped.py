"""Row 0 is kept for padding, and distances that reach it read row 1."""

import numpy as np

DEFECT = "row 1 is read for row 0"
NAMES = ("shaw-row-0-as-1",)


def shaw_scores(q, k, table, q_positions, k_positions, /, *, left, right, order):
    table = table[np.maximum(np.arange(len(table)), min(1, len(table) - 1))]
    apart = k_positions[..., None, :] - q_positions[..., :, None]
    apart = apart if order == "key_minus_query" else -apart
    rows = table[np.clip(apart, -left, right) + left]
    return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)
