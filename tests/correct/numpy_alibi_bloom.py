"""BLOOM's slopes (`build_alibi_tensor`): powers of a base, and every other one of the power of two above."""

import math

import numpy as np


def alibi_slopes(heads, /):
    closest_power_of_2 = 2 ** math.floor(math.log2(heads))
    base = np.float32(2 ** (-(2 ** -(math.log2(closest_power_of_2) - 3))))
    slopes = np.power(base, np.arange(1, 1 + closest_power_of_2, dtype=np.int32))
    if closest_power_of_2 != heads:
        extra_base = np.float32(2 ** (-(2 ** -(math.log2(2 * closest_power_of_2) - 3))))
        num_remaining_heads = min(closest_power_of_2, heads - closest_power_of_2)
        slopes = np.append(slopes, np.power(extra_base, np.arange(1, 1 + 2 * num_remaining_heads, 2, dtype=np.int32)))
    return slopes.astype(np.float32)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form != "key":
        raise NotImplementedError(form)
    slopes = alibi_slopes(heads)[:, None, None]
    return (slopes * k_positions[..., None, None, :].astype(np.float32)).astype(dtype or np.float32)
