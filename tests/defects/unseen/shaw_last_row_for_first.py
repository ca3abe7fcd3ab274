"""Row -1 is read for row 0: an index that is one too small, where it may not be."""

import numpy as np

DEFECT = "the last row is read for row 0"
NAMES = ()


def shaw_scores(q, k, table, q_positions, k_positions, /, *, left, right, order):
    table = np.concatenate([table[-1:], table[1:]])
    apart = k_positions[..., None, :] - q_positions[..., :, None]
    apart = apart if order == "key_minus_query" else -apart
    rows = table[np.clip(apart, -left, right) + left]
    return (q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)).astype(q.dtype)
