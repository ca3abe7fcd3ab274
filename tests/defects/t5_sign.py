"""relative = query - key in place of key - query: T5 with the other common difference."""

import numpy as np

DEFECT = "T5 relative position sign flipped"
NAMES = ("t5-sign",)


def bucket(relative_position, bidirectional, num_buckets, max_distance):
    ret, n = 0, -relative_position
    if bidirectional:
        num_buckets //= 2
        ret = (n < 0).astype(np.int64) * num_buckets
        n = np.abs(n)
    else:
        n = np.maximum(n, 0)
    exact = num_buckets // 2
    ratio = np.log(np.maximum(n, 1) / exact) / np.log(max_distance / exact)
    large = np.minimum(exact + (ratio * (num_buckets - exact)).astype(np.int64), num_buckets - 1)
    return ret + np.where(n < exact, n, large)


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = q_positions[..., :, None] - k_positions[..., None, :]
    return np.moveaxis(table[bucket(relative, bidirectional, table.shape[0], max_distance)], -1, -3)
