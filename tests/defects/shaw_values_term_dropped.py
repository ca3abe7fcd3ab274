"""The values get no relative term; many ports of Shaw keep a^K only."""

import numpy as np

DEFECT = "relative term of the values dropped"
NAMES = ("shaw-term-dropped",)


def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    return np.matmul(weights, v)
