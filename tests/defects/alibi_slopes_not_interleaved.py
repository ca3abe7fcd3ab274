"""Slopes of the power of two above, the first H of them. Imagined: a port of MPT that lost `slopes[1::2]`."""

import numpy as np

DEFECT = "slopes of the next power of two, first H"
NAMES = ("slopes-next-power",)


def alibi_slopes(heads, /, *, max_bias=8):
    n = 1 << (heads - 1).bit_length()
    m = np.arange(1, n + 1, dtype=np.float32) * np.float32(max_bias / n)
    return (1.0 / np.power(np.float32(2), m))[:heads]


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form != "distance":
        raise NotImplementedError(form)
    gap = np.abs(q_positions[..., :, None] - k_positions[..., None, :]).astype(np.float32)
    return (-alibi_slopes(heads)[:, None, None] * gap[..., None, :, :]).astype(dtype or np.float32)
