"""MPT's slopes (`gen_slopes`): those of the next power of two, odd ones first; and its full bias."""

import math

import numpy as np


def alibi_slopes(heads, /, *, max_bias=8):
    rounded = 2 ** math.ceil(math.log2(heads))
    m = np.arange(1, rounded + 1, dtype=np.float32) * np.float32(max_bias / rounded)
    slopes = np.float32(1.0) / np.power(np.float32(2), m)
    if rounded != heads:
        slopes = np.concatenate([slopes[1::2], slopes[::2]])[:heads]
    return slopes


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    slopes = alibi_slopes(heads).reshape(heads, 1, 1)
    if form == "key":
        bias = k_positions[..., None, None, :].astype(np.float32)
    else:
        bias = (k_positions[..., None, None, :] - q_positions[..., None, :, None]).astype(np.float32)
        bias = -np.abs(bias) if form == "distance" else bias
    return (bias * slopes).astype(dtype or np.float32)
