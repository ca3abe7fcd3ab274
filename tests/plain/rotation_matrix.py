"""As RoFormer writes it, arXiv:2104.09864, equations (14) and (15), in NumPy: two rows and two columns for every pair."""

import numpy as np


def rotation_matrix(position, dim, /, *, layout, base, dtype=None):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    theta = base ** (-2 * np.arange(dim // 2, dtype=np.float32) / dim)
    angle = np.asarray(position, dtype=np.float32)[..., None] * theta.astype(np.float32)
    matrix = np.zeros((*np.shape(position), dim, dim), dtype=np.float32)
    for i in range(dim // 2):
        cos, sin = np.cos(angle[..., i]), np.sin(angle[..., i])
        matrix[..., 2 * i, 2 * i], matrix[..., 2 * i, 2 * i + 1] = cos, -sin
        matrix[..., 2 * i + 1, 2 * i], matrix[..., 2 * i + 1, 2 * i + 1] = sin, cos
    return matrix.astype(dtype)
