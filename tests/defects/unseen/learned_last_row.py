"""The last row is never written, and reads as the one before."""

import numpy as np

DEFECT = "the last row of the table is the one before"
NAMES = ()


def learned(positions, table, /, *, offset=0):
    return table[np.minimum(positions + offset, max(len(table) - 2, 0))]
