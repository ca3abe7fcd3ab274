"""max_bias is fixed at 8. Imagined: BLOOM's kernel serving an MPT model with another `alibi_bias_max`."""

import numpy as np

DEFECT = "max_bias ignored"
NAMES = ("max-bias-8",)


def alibi_slopes(heads, /, *, max_bias=8):
    below = 2 ** (heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * h / below) for h in range(1, below + 1)]
    slopes += [2.0 ** (-4.0 * h / below) for h in range(1, 2 * (heads - below), 2)]
    return np.array(slopes, dtype=np.float32)
