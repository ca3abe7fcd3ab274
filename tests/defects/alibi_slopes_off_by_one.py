"""The exponent starts at 0, so the first slope is 1; aprender #2143 (six sibling tests had pinned it)."""

import math

import numpy as np

DEFECT = "slope exponent off by one"
NAMES = ("slopes-off-by-one",)


def get_slopes(n):
    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]


def alibi_slopes(heads, /):
    return np.asarray(get_slopes(heads), dtype=np.float32)
