"""Rows come out from bottom to top: a picture's origin in another corner. Imagined.

Should be said: unexplained, all cases with more than one row of cells.
"""

import numpy as np

DEFECT = "rows of cells reversed"
NAMES = ()


def weights(n, m):
    centre = np.clip(n / m * (np.arange(m)[:, None] + 0.5) - 0.5, 0, n - 1)
    return np.maximum(1 - abs(np.arange(n) - centre), 0)


def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias):
    if method != "linear" or align_corners or antialias or len(size) != 2:
        raise NotImplementedError(method)
    cells = table[prefix:].astype(np.float64).reshape(*old_size, -1)
    cells = np.einsum("ij,kl,jld->ikd", weights(old_size[0], size[0])[::-1], weights(old_size[1], size[1]), cells)
    return np.concatenate([table[:prefix], cells.reshape(-1, table.shape[1]).astype(table.dtype)])
