"""The logarithm above is to base 2 and the one below is natural: two libraries' `log`.

Should be said: every value is 1.4427 times what is defined.
"""

import numpy as np

DEFECT = "log2 divided by ln"
NAMES = ()


def logn_scale(positions, /, *, length, offset, at_least_one):
    if at_least_one:
        raise NotImplementedError(at_least_one)
    return (np.log2(np.maximum(positions.astype(np.int64) + offset, 1)) / np.log(length)).astype(np.float32)
