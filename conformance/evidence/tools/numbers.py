"""Numbers for cases: distinct, never zero, exact in the dtype they are meant for, the same everywhere and always."""

import math
from zlib import crc32

import numpy as np
import numpy.typing as npt

STEP = 0x9E3779B97F4A7C15


def floats(*shape: int, seed: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """
    Return distinct-looking numbers in (-4, 4), multiples of ``2**(2-bits)``, the same everywhere and always.

    With 8 bits they are representable in bfloat16, float16 and everything wider; with 24 in float32. None is zero.
    """
    size = math.prod(shape)
    state = np.uint64((seed + 1) * STEP % 2**64) + np.arange(1, size + 1, dtype=np.uint64) * np.uint64(STEP)  # splitmix64
    mixed = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    magnitude = (1 + (mixed >> np.uint64(1)) % np.uint64(2**bits - 1)).astype(np.float64)
    signed = np.where(mixed & np.uint64(1), magnitude, -magnitude) / 2 ** (bits - 2)
    return np.asarray(signed, dtype=np.float64).reshape(shape)


def seed_of(name: str) -> int:
    """Return a seed of the case's own."""
    return crc32(name.encode())


def reals(name: str, *shape: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """Return numbers of the case's own; an axis given as a negative size repeats one row as often."""
    rows = floats(*(1 if n < 0 else n for n in shape), seed=seed_of(name), bits=bits)
    return np.broadcast_to(rows, tuple(abs(n) for n in shape)).copy()
