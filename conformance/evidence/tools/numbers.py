"""Numbers for cases: distinct, never zero, exact in the dtype they are meant for, the same everywhere and always."""

import math
from zlib import crc32

import numpy as np
import numpy.typing as npt


def floats(*shape: int, seed: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """
    Return distinct-looking numbers in (-4, 4), multiples of ``2**(2-bits)``, the same everywhere and always.

    With 8 bits they are representable in bfloat16, float16 and everything wider; with 24 in float32. None is zero.
    """
    size = math.prod(shape)
    state, values = (seed + 1) * 0x9E3779B97F4A7C15, []
    for _ in range(size):  # splitmix64
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
        magnitude = 1 + (mixed >> 1) % (2**bits - 1)
        values.append((magnitude if mixed & 1 else -magnitude) / 2 ** (bits - 2))
    return np.asarray(values, dtype=np.float64).reshape(shape)


def seed_of(name: str) -> int:
    """Return a seed of the case's own."""
    return crc32(name.encode())


def reals(name: str, *shape: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """Return numbers of the case's own; an axis given as a negative size repeats one row as often."""
    rows = floats(*(1 if n < 0 else n for n in shape), seed=seed_of(name), bits=bits)
    return np.broadcast_to(rows, tuple(abs(n) for n in shape)).copy()
