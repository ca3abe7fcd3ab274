"""The exponent is i/d in place of 2i/d, so the waves stop at sqrt(base). Imagined: `arange(d // 2)` over d."""

import numpy as np

DEFECT = "exponent i/d in place of 2i/d"
NAMES = ("exponent-half",)


def rope_frequencies(dim, /, *, base):
    return 1.0 / (base ** (np.arange(dim // 2, dtype=np.float32) / dim)), 1.0
