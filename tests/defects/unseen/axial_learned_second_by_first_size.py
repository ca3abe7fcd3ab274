"""Columns are limited by the number of rows of the other table, which no square table shows. Imagined, after a copied line.

Should be said: unexplained; second coordinates beyond the first table's rows.
"""

import numpy as np

DEFECT = "the second coordinate limited by the first table"
NAMES = ()


def axial_learned(positions, first, second, /, *, combine):
    one, two = positions.astype(np.int64)
    e, f = first[one], second[np.minimum(two, first.shape[0] - 1)]
    return np.concatenate([e, f], axis=-1) if combine == "concat" else e + f
