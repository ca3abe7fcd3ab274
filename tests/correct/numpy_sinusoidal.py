"""Sinusoids of the paper, fairseq and tensor2tensor in float32, every layout."""

import math

import numpy as np


def timescales(dim, base, endpoint):
    count = dim // 2
    increment = math.log(float(base)) / (count - 1 if endpoint else count)
    return np.exp(np.arange(count, dtype=np.float32) * np.float32(-increment))


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    scaled_time = np.multiply.outer(positions.astype(np.float32), timescales(dim, base, endpoint))
    signal = np.empty((*positions.shape, dim), dtype=np.float32)
    where = {
        "interleaved": (slice(0, None, 2), slice(1, None, 2)),
        "sin_cos": (slice(dim // 2), slice(dim // 2, None)),
        "cos_sin": (slice(dim // 2, None), slice(dim // 2)),
    }
    signal[..., where[layout][0]] = np.sin(scaled_time)
    signal[..., where[layout][1]] = np.cos(scaled_time)
    return signal.astype(dtype or np.float32)
