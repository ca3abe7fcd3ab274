"""Far distances run past the last bucket: no `min(..., num_buckets - 1)`. Imagined: a port tested up to 128."""

import numpy as np

DEFECT = "T5 bucket not clamped"
NAMES = ("t5-not-limited",)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    offset = np.zeros_like(relative_positions)
    if bidirectional:
        num_buckets //= 2
        offset = offset + (relative_positions > 0) * num_buckets
        distance = np.abs(relative_positions)
    else:
        distance = -np.minimum(relative_positions, 0)
    exact = num_buckets // 2
    share = np.log(np.maximum(distance, exact) / exact) / np.log(max_distance / exact)
    large = exact + np.floor(share * (num_buckets - exact)).astype(np.int64)
    return offset + np.where(distance < exact, distance, large)
