"""max_distance is 128 whatever the config says; llama.cpp's `llama_relative_position_bucket`."""

import math

import numpy as np

DEFECT = "T5 max_distance fixed at 128"
NAMES = ("t5-max-distance-128",)


def one_bucket(relative, bidirectional, n_buckets, max_distance=128):
    bucket = 0
    if bidirectional:
        n_buckets >>= 1
        bucket += n_buckets * (relative > 0)
        relative = abs(relative)
    else:
        relative = -min(relative, 0)
    exact = n_buckets >> 1
    if relative < exact:
        return bucket + relative
    large = exact + math.floor(math.log(relative / exact) * (n_buckets - exact) / math.log(max_distance / exact))
    return bucket + min(large, n_buckets - 1)


def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    flat = [one_bucket(int(r), bidirectional, num_buckets) for r in relative_positions.ravel()]
    return np.asarray(flat, dtype=np.int64).reshape(relative_positions.shape)
