"""A kernel made for eight heads reads column h mod 8 of the table. Imagined.

Should be said: unexplained; heads from 8 on.
"""

import numpy as np

DEFECT = "columns of the table modulo 8"
NAMES = ()


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = k_positions.astype(np.int64)[..., None, :] - q_positions.astype(np.int64)[..., :, None]
    count = len(table)
    bucket = np.zeros(relative.shape, dtype=np.int64)
    if bidirectional:
        count //= 2
        bucket += (relative > 0) * count
        distance = abs(relative)
    else:
        distance = np.maximum(-relative, 0)
    exact = count // 2
    ratio = np.log(np.maximum(distance, 1) / exact) / np.log(max_distance / exact)
    far = np.minimum(exact + np.floor(ratio * (count - exact) + 1e-9).astype(np.int64), count - 1)
    bucket += np.where(distance < exact, distance, far)
    return np.moveaxis(table[:, np.arange(table.shape[1]) % 8][bucket], -1, -3)
