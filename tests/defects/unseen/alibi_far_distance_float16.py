"""Distances are held in float16 and lose their last bits from 2049 on, as positions do elsewhere.

Should be said: unexplained or a rounding of distances; distances beyond 2048.
"""

import numpy as np

DEFECT = "distances in float16"
NAMES = ()


def slopes(heads):
    below = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / below * np.arange(1, below + 1))
    return np.concatenate([first, 2.0 ** (-4 / below * np.arange(1, 2 * (heads - below), 2))])


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form == "key":
        raise NotImplementedError(form)
    gap = q_positions.astype(np.float64)[..., :, None] - k_positions[..., None, :]
    gap = (abs(gap) if form == "distance" else gap).astype(np.float16).astype(np.float64)
    return (-slopes(heads)[:, None, None] * gap[..., None, :, :]).astype(np.float32)
