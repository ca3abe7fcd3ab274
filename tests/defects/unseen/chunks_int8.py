"""Positions are held in int8 before they are divided into chunks, and go below zero at 128. A mask kernel's index type.

Should be said: unexplained; positions from 128 on.
"""

import numpy as np

DEFECT = "positions in int8"
NAMES = ()


def chunked_window(q_positions, k_positions, /, *, chunk, sides):
    q, k = (p.astype(np.int64).astype(np.int8).astype(np.int64) for p in (q_positions, k_positions))
    q, k = q[..., :, None], k[..., None, :]
    return (q // chunk == k // chunk) & ((k <= q) if sides == "causal" else True)
