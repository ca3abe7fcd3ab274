"""
Cosines and sines of whole positions by the addition theorem, on NumPy and on plain CPU tensors of PyTorch.

A position is p = 128 a + b, with b from 0 to 127; below zero the sine changes its sign. The cosines and sines for all b are
computed once for the same frequencies, and those for 128 a once for up to 128 positions. Held as complex numbers cos + i sin,
those for p are then a product, which takes a small part of the time of a cosine. All this is in float64, so that results in
float32 are as accurate as angles in float64 make them. Each is the same whatever other positions are in the call. With
``POSREF_BLOCKS=0`` in the environment this is not done.
"""

from functools import lru_cache
from math import prod
from typing import Any

from posref.core.arrays import Array

BITS = 7
STEP = 1 << BITS
KEPT = 16  # tables of 128 positions, each for a row of frequencies


def cos_sin_by_addition(positions: Array, frequencies: Array) -> tuple[Array, Array]:
    """Return cos and sin, in float32, of ``positions * frequencies``: integers (..., 1) within int64, and host numbers (n,)."""
    import numpy as np

    frequency = np.asarray(frequencies, dtype=np.float64)
    if prod(positions.shape) == 1:  # a token of a decoder: its queries and keys have the same position, in every layer
        return _placed(_row(frequency.tobytes(), positions.item()).copy(), positions)
    rows = np.asarray(positions).astype(np.int64).ravel()
    table = np.empty((2, rows.size, frequency.size), dtype=np.float32)
    key = frequency.tobytes()
    near = _near(key)
    if rows.size and rows[0] >= 0 and (rows.size == 1 or (rows[1:] - rows[:-1] == 1).all()):  # they follow each other
        first, after, held = int(rows[0]), int(rows[0]) + rows.size, np.empty_like(near)
        for start in (first, *range((first | STEP - 1) + 1, after, STEP)):
            low, stop = start & STEP - 1, min((start | STEP - 1) + 1, after)
            waves = np.multiply(near[low : low + stop - start], _far(key, start >> BITS), out=held[: stop - start])
            table[0, start - first : stop - first] = waves.real
            table[1, start - first : stop - first] = waves.imag
    else:
        sizes = np.abs(rows).view(np.uint64)  # so is 2**63, which int64 has below zero alone
        steps, which = np.unique(sizes >> BITS, return_inverse=True)
        far = _waves(steps * float(STEP), frequency)
        for start in range(0, rows.size, STEP):
            piece = slice(start, start + STEP)
            waves = near[sizes[piece] & STEP - 1] * far[which[piece]]
            table[0, piece], table[1, piece] = waves.real, waves.imag
        table[1, rows < 0] *= -1
    return _placed(table, positions)


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

    step, b = divmod(abs(position), STEP)
    waves = _near(frequencies)[b : b + 1] * _far(frequencies, step)
    return np.stack((waves.real, -waves.imag if position < 0 else waves.imag)).astype(np.float32)


@lru_cache(maxsize=KEPT)
def _near(frequencies: bytes) -> Any:
    """Return cos + i sin of 128 positions, in rows, for these frequencies."""
    import numpy as np

    return _waves(np.arange(float(STEP)), np.frombuffer(frequencies))


@lru_cache(maxsize=128 * KEPT)
def _far(frequencies: bytes, a: int) -> Any:
    """Return cos + i sin of position 128 a, in a row."""
    import numpy as np

    return _waves(np.asarray([a * float(STEP)]), np.frombuffer(frequencies))


def _waves(positions: Any, frequencies: Any) -> Any:
    import numpy as np

    angles = positions[:, None] * frequencies
    waves = np.empty(angles.shape, dtype=np.complex128)
    waves.real, waves.imag = np.cos(angles), np.sin(angles)
    return waves
