"""Only rows are filtered before they are made fewer; columns are interpolated plainly. Imagined: a separable filter, halfway.

Should be said: unexplained; cases with antialias that have fewer columns.
"""

import numpy as np

DEFECT = "antialias along the first axis alone"
NAMES = ()


def weights(n, m, antialias):
    step = n / m
    r = abs(np.arange(n) - (step * (np.arange(m)[:, None] + 0.5) - 0.5))
    if not antialias:
        centre = np.clip(step * (np.arange(m)[:, None] + 0.5) - 0.5, 0, n - 1)
        return np.maximum(1 - abs(np.arange(n) - centre), 0)
    w = np.maximum(1 - r / max(step, 1), 0)
    return w / w.sum(axis=1, keepdims=True)


def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias):
    if method != "linear" or align_corners or len(size) != 2:
        raise NotImplementedError(method)
    cells = table[prefix:].astype(np.float64).reshape(*old_size, -1)
    rows, columns = weights(old_size[0], size[0], antialias), weights(old_size[1], size[1], False)
    cells = np.einsum("ij,kl,jld->ikd", rows, columns, cells).reshape(-1, table.shape[1])
    return np.concatenate([table[:prefix], cells.astype(table.dtype)])
