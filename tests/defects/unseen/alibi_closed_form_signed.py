"""Slopes in closed form and no absolute value: Baichuan2 #225 meets x-transformers 4ed4d0a."""

import numpy as np

DEFECT = "slopes 2^(-8h/H) for every H, and a signed distance where its size is asked for"
NAMES = (("slopes-closed-form", "alibi-abs-missing"),)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    m = (2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)).astype(np.float32)[:, None, None]
    keys = k_positions.astype(np.float32)[..., None, None, :]
    if form == "key":
        return (m * keys).astype(dtype or np.float32)
    return (m * (keys - q_positions.astype(np.float32)[..., None, :, None])).astype(dtype or np.float32)
