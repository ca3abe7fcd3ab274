"""The logarithmic bucket is rounded to nearest, not down. Imagined: a language whose cast to int rounds."""

import numpy as np

DEFECT = "T5 bucket rounded to nearest"
NAMES = ("t5-rounded",)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    side = 0
    if bidirectional:
        num_buckets //= 2
        side = np.where(relative_positions > 0, num_buckets, 0)
    n = np.abs(relative_positions) if bidirectional else np.maximum(-relative_positions, 0)
    exact = num_buckets // 2
    log = np.log(np.maximum(n, exact) / exact) / np.log(max_distance / exact) * (num_buckets - exact)
    return side + np.where(n < exact, n, np.minimum(exact + np.rint(log).astype(np.int64), num_buckets - 1))
