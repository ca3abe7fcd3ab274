"""Rows are looked up by an index of 8 bits, which wraps at 256. Index types of 8 bits are met on accelerators.

Should be said: unexplained (or wrapped at 256): positions from 256 on.
"""

import numpy as np

DEFECT = "rows wrap at 256"
NAMES = ()


def learned(positions, table, /, *, offset=0):
    return table[(positions.astype(np.int64) + offset) % 256]
