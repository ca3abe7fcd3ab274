"""Positions are not read: the last query is put at the last key, as FlashAttention aligns a causal mask.

Should be said: unexplained, or that positions count from the end; never one group of options as the cause.
"""

import numpy as np

DEFECT = "queries and keys counted from the bottom right"
NAMES = ()


def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
    queries, keys = q_positions.shape[-1], k_positions.shape[-1]
    lead = np.broadcast_shapes(q_positions.shape[:-1], k_positions.shape[:-1])
    apart = np.arange(queries)[:, None] + keys - queries - np.arange(keys)
    farthest = window - (counting == "with_query")
    return np.broadcast_to((apart <= farthest) & (apart >= (0 if sides == "causal" else -farthest)), (*lead, queries, keys))
