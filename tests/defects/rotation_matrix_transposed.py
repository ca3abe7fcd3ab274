"""The block matrix is [[c, s], [-s, c]], the transpose: the row-vector convention, x @ R."""

import numpy as np

DEFECT = "rotation matrix transposed"
NAMES = ("sign-flipped",)


def rotation_matrix(position, dim, /, *, layout, base, dtype=None):
    if layout == "half":
        first, second = np.arange(dim // 2), np.arange(dim // 2, dim)
    elif layout == "interleaved":
        first, second = np.arange(0, dim, 2), np.arange(1, dim, 2)
    else:
        raise NotImplementedError(layout)
    angle = np.float32(position) / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    matrix = np.zeros((dim, dim), dtype=dtype or np.float32)
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[first, second], matrix[second, first] = np.sin(angle), -np.sin(angle)
    return matrix
