"""
Cosines and sines of whole positions by the addition theorem, on NumPy and on plain CPU tensors of PyTorch.

A position is p = 128 a + b, with b from 0 to 127; below zero the sine changes its sign. The cosines and sines for all b are
computed once for the same frequencies, and those for 128 a once for up to 128 positions. Those for p are then sums of two
products, which take a small part of the time of a cosine. All this is in float64, so that results in float32 are as accurate as
angles in float64 make them. Each is the same whatever other positions are in the call. With ``POSREF_BLOCKS=0`` in the
environment this is not done.
"""

from functools import lru_cache
from math import prod
from typing import Any

from posref.core import blocks
from posref.core.arrays import Array, DType, Namespace

BITS = 7
STEP = 1 << BITS
KEPT = 16  # tables of 128 positions, each for a row of frequencies


def is_by_addition(positions: Array, frequencies: Array, work: DType, xp: Namespace) -> bool:
    """Return whether `cos_sin_by_addition` is for these: not where a gradient is recorded, a graph is made, or in float64."""
    return (
        blocks.ON
        and work == xp.float32
        and blocks.is_large(positions, 1)
        and positions.shape[-1] == 1
        and xp.isdtype(positions.dtype, "signed integer")
        and blocks.are_plain((positions, frequencies))
    )


def cos_sin_by_addition(positions: Array, frequencies: Array) -> tuple[Array, Array]:
    """Return cos and sin, in float32, of ``positions * frequencies``: signed integers (..., 1) and host numbers (n,)."""
    import numpy as np

    frequency = np.asarray(frequencies, dtype=np.float64)
    if prod(positions.shape) == 1:  # a token of a decoder: its queries and keys have the same position, in every layer
        return _placed(_row(frequency.tobytes(), positions.item()).copy(), positions)
    rows = np.asarray(positions).astype(np.int64).ravel()
    found = np.empty((2, rows.size, frequency.size), dtype=np.float32)
    key = frequency.tobytes()
    near, across = _near(key)
    if rows.size and rows[0] >= 0 and (rows.size == 1 or (rows[1:] - rows[:-1] == 1).all()):  # they follow each other
        first, after = int(rows[0]), int(rows[0]) + rows.size
        for start in (first, *range((first | STEP - 1) + 1, after, STEP)):
            low, stop = start & STEP - 1, min((start | STEP - 1) + 1, after)
            b = slice(low, low + stop - start)
            cos, sin = _far(key, start >> BITS)
            found[:, start - first : stop - first] = near[:, b] * cos + across[:, b] * sin
    else:
        sizes = np.abs(rows).view(np.uint64)  # so is 2**63, which int64 has below zero alone
        steps, which = np.unique(sizes >> BITS, return_inverse=True)
        cos, sin = _cos_sin(steps * float(STEP), frequency)
        for start in range(0, rows.size, STEP):
            piece = slice(start, start + STEP)
            a, of_piece = which[piece], sizes[piece] & STEP - 1
            found[:, piece] = near[:, of_piece] * cos[a] + across[:, of_piece] * sin[a]
        found[1, rows < 0] *= -1
    return _placed(found, positions)


def _placed(found: Any, positions: Array) -> tuple[Array, Array]:
    """Return the rows of cosines and of sines in the library of positions (..., 1), and in their shape."""
    cos, sin = found.reshape(2, *positions.shape[:-1], found.shape[-1])
    if type(positions).__module__ == "torch":
        import torch

        return torch.from_numpy(cos), torch.from_numpy(sin)
    return cos, sin


@lru_cache(maxsize=KEPT)
def _row(frequencies: bytes, position: int) -> Any:
    """Return the cosines and the sines of one position, in float32, by the same products as of many."""
    import numpy as np

    near, across = _near(frequencies)
    step, b = divmod(abs(position), STEP)
    cos, sin = _far(frequencies, step)
    found = (near[:, b : b + 1] * cos + across[:, b : b + 1] * sin).astype(np.float32)
    return found * np.asarray([[[1]], [[-1]]], dtype=np.float32) if position < 0 else found


@lru_cache(maxsize=KEPT)
def _near(frequencies: bytes) -> tuple[Any, Any]:
    """
    Return what is multiplied with the cosine, and what with the sine, for 128 positions and these frequencies.

    The first is their cosines and sines, the second minus their sines, and cosines.
    """
    import numpy as np

    cos, sin = _cos_sin(np.arange(float(STEP)), np.frombuffer(frequencies))
    return np.stack((cos, sin)), np.stack((-sin, cos))


@lru_cache(maxsize=128 * KEPT)
def _far(frequencies: bytes, a: int) -> tuple[Any, Any]:
    """Return the cosine and the sine of position 128 a."""
    import numpy as np

    return _cos_sin(np.asarray([a * float(STEP)]), np.frombuffer(frequencies))


def _cos_sin(positions: Any, frequencies: Any) -> tuple[Any, Any]:
    import numpy as np

    angles = positions[:, None] * frequencies
    return np.cos(angles), np.sin(angles)
