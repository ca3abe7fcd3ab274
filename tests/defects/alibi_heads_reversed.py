"""The steepest slope goes to the last head. Imagined: a converter that sorts slopes in ascending order."""

import numpy as np

DEFECT = "slopes in reverse order of heads"
NAMES = ("slopes-ascending",)


def alibi_slopes(heads, /, *, max_bias=8):
    below = 1 << (heads.bit_length() - 1)
    ratio = 2.0 ** (-max_bias / below)
    slopes = [ratio**h for h in range(1, below + 1)] + [ratio ** (h + 0.5) for h in range(heads - below)]
    return np.sort(np.array(slopes, dtype=np.float32))
