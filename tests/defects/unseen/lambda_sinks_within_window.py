"""No more sinks are kept than the window is wide: one buffer serves both. Imagined, a ring buffer of a cache.

Should be said: unexplained; cases with more sinks than the window has places.
"""

import numpy as np

DEFECT = "sinks limited to the window's size"
NAMES = ()


def lambda_window(q_positions, k_positions, /, *, sinks, window, counting):
    q, k = q_positions.astype(np.int64)[..., :, None], k_positions.astype(np.int64)[..., None, :]
    farthest = window - (counting == "with_query")
    return (k <= q) & ((q - k <= farthest) | (k < min(sinks, window)))
