"""As tensor2tensor (commit bafdc1b) computes them, in NumPy, with two largest distances in place of one:
tensor2tensor/layers/common_attention.py, lines 1680-1701 (rows of the table) and 1725-1736 (one product for every query)."""

import numpy as np


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order, outside="clip"):
    if order != "key_minus_query" or max(q_positions.ndim, k_positions.ndim) > 1:
        raise NotImplementedError(order)
    if outside == "zero":  # as VITS pads its table: transformers 5.23.0, models/vits/modeling_vits.py, lines 960-967
        left, right, value_table = left + 1, right + 1, np.pad(value_table, [(1, 1), (0, 0)])
    distance = k_positions[None, :] - q_positions[:, None]
    z = value_table[np.clip(distance, -left, right) + left]
    x = np.moveaxis(weights, -2, 0)
    xz = x.reshape(len(z), -1, weights.shape[-1]) @ z
    return weights @ v + np.moveaxis(xz.reshape(*x.shape[:-1], z.shape[-1]), 0, -2)
