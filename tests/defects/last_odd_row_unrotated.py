"""Rows are taken two at a time and an odd last row is left. Imagined: a vectorised kernel without its tail loop."""

import numpy as np

DEFECT = "last of an odd number of rows is not rotated"
NAMES = ()


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    n = cos.shape[-1]
    rows = x.reshape(-1, x.shape[-1])
    c = np.broadcast_to(cos, (*x.shape[:-1], n)).reshape(-1, n)
    s = np.broadcast_to(sin, (*x.shape[:-1], n)).reshape(-1, n)
    out = rows.copy()
    end = len(rows) // 2 * 2
    for i in range(0, end, 2):
        two = slice(i, i + 2)
        a, b = rows[two, :n], rows[two, n : 2 * n]
        out[two, :n], out[two, n : 2 * n] = a * c[two] - b * s[two], b * c[two] + a * s[two]
    return out.reshape(x.shape)
