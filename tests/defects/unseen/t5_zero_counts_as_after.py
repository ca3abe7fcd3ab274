"""`>=` for `>`: a token's own position takes the second half of the buckets. A slip in the first line of T5's formula."""

import numpy as np

DEFECT = "the distance 0 uses the half of the keys that come after"
NAMES = ("t5-zero-after",)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    r = relative_positions.astype(np.int64)
    start = np.zeros_like(r)
    if bidirectional:
        num_buckets //= 2
        start = np.where(r >= 0, num_buckets, 0)
        n = np.abs(r)
    else:
        n = np.maximum(-r, 0)
    exact = num_buckets // 2
    with np.errstate(divide="ignore"):
        log = np.log(n / exact) / np.log(max_distance / exact) * (num_buckets - exact)
    far = np.minimum(exact + np.floor(np.maximum(log, 0) + 1e-9).astype(np.int64), num_buckets - 1)
    return start + np.where(n < exact, n, far)
