"""Distances are held in float16 and lose their last bits from 2049 on, as positions do elsewhere.

Should be said: unexplained or a rounding of distances; distances beyond 2048.
"""

import numpy as np

DEFECT = "distances in float16"
NAMES = ()


def alibi(q_positions, k_positions, /, *, heads, form):
    if form != "distance" or heads & (heads - 1):
        raise NotImplementedError(form)
    gap = abs(q_positions.astype(np.float64)[..., :, None] - k_positions[..., None, :]).astype(np.float16).astype(np.float64)
    slopes = 2.0 ** (-8 / heads * np.arange(1, heads + 1))
    return (-slopes[:, None, None] * gap[..., None, :, :]).astype(np.float32)
