"""Distances are clipped to the number of buckets, without the logarithmic half. Imagined: T5 from memory."""

import numpy as np

DEFECT = "T5 without logarithmic buckets"
NAMES = ("t5-no-log",)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    if not bidirectional:
        return np.minimum(np.maximum(-relative_positions, 0), num_buckets - 1)
    half = num_buckets // 2
    return (relative_positions > 0) * half + np.minimum(np.abs(relative_positions), half - 1)
