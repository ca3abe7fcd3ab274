"""OPT's offset is added by the caller and again by the module. Imagined, after the OPT offsets of transformers #36537."""

import numpy as np

DEFECT = "the offset is added twice"
NAMES = ()


def learned(positions, table, /, *, offset=0):
    return table[np.minimum(positions + 2 * offset, table.shape[0] - 1)]
