"""The queries of a decode step count from 0; x-transformers 74f241d forgot to cut the bias to the last rows."""

import numpy as np

DEFECT = "queries at 0, 1, 2, ..."
NAMES = ("alibi-query-arange",)


def get_slopes(n):
    p = 1 << (n.bit_length() - 1)
    start = 2.0 ** (-8.0 / p)
    return [start**e for e in range(1, p + 1)] + [2.0 ** (-4.0 * e / p) for e in range(1, 2 * (n - p), 2)]


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    i = np.arange(q_positions.shape[-1], dtype=np.float32)
    j = k_positions.astype(np.float32)[..., None, :]
    m = np.array(get_slopes(heads), dtype=np.float32)[:, None, None]
    if form == "key":
        return (m * j[..., None, :, :]).astype(dtype or np.float32)
    gap = (j - i[:, None])[..., None, :, :]
    return (m * (gap if form == "causal" else -np.abs(gap))).astype(dtype or np.float32)
