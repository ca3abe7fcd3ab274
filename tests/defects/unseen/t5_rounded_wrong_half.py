"""Rounding to the nearest, and the own position in the second half: two slips in one rewrite of T5's buckets."""

import numpy as np

DEFECT = "the logarithm is rounded to the nearest, and distance 0 counts as after"
NAMES = (("t5-rounded", "t5-zero-after"),)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    r = np.asarray(relative_positions, dtype=np.int64)
    n, count = (np.abs(r), num_buckets // 2) if bidirectional else (np.maximum(0, -r), num_buckets)
    small = count // 2
    spread = np.log(np.maximum(n, small) / small) / np.log(max_distance / small)
    far = np.minimum(small + np.rint(spread * (count - small) + 1e-12).astype(np.int64), count - 1)
    return np.where(n < small, n, far) + (count * (r >= 0) if bidirectional else 0)
