"""
Rotations with a remembered table: all layers of a decoder rotate queries and keys at the same positions.

The first call checks its arguments and makes the table, as its definition is written. A later call that differs from it in the
numbers of x alone repeats the rotation by that table, and checks nothing again. This is done for up to `FEW` positions or
coordinates, or cosines of a given table, where `posref.core.pairs` has a faster form, in NumPy and for plain CPU tensors of
PyTorch. At most `KEPT` rotations are remembered, of `MOST` bytes in all. With ``POSREF_BLOCKS=0`` in the environment none is.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from math import prod
from typing import Any, TypeVar

from posref.core import blocks
from posref.core.arrays import are_numpy, option_key
from posref.core.pairs import HEADS, Rotation, is_recording, recorded

F = TypeVar("F", bound=Callable[..., Any])

KEPT, FEW, MOST = 16, 1 << 13, 1 << 22
SEEN = 256  # the most bytes of an array's numbers that are in the key
# by all but these numbers, which stand beside the rotation. No lock, which a fork could keep: threads may make a table twice
_ROTATIONS: dict[Hashable, tuple[tuple[bytes, ...], Rotation]] = {}


def by_tokens(**around: tuple[int, int]) -> Callable[[F], F]:
    """Evaluate a definition of (x, positions) by a remembered table, or in blocks if its table is large beside the result."""

    def decorated(function: F) -> F:
        divided = blocks.in_blocks(over=None, **around)(function)

        @wraps(divided)
        def otherwise(*arrays: Any, **options: Any) -> Any:
            return (function if _is_shared(arrays) else divided)(*arrays, **options)

        return _by_memory(function, otherwise, 2)  # type: ignore[return-value]  # it has the signature of what it wraps

    return decorated


def by_table(function: F) -> F:
    """Evaluate a definition of (x, cos, sin), by a remembered table if it is small. Its option `inverse` is its adjoint."""
    return _by_memory(function, blocks.inverse_is_adjoint(function), 3)


def _by_memory(function: Callable[..., Any], otherwise: F, count: int) -> F:
    """Evaluate a definition of `count` arrays by a remembered rotation, and `otherwise` where none is remembered."""

    @wraps(otherwise)
    def evaluated(*arrays: Any, **options: Any) -> Any:
        memo = None if len(arrays) != count or is_recording() else _key(function, arrays, options)
        if memo is None:
            return otherwise(*arrays, **options)
        key, numbers = memo
        held = _ROTATIONS.get(key)
        if held is not None and held[0] == numbers:
            return held[1].of(arrays[0])
        result, records = recorded(function, arrays, options)
        if len(records) == 1 and records[0][0] is arrays[0] and records[0][2] is result:
            made = numbers, records[0][1]
            if _bytes(made) > MOST:
                return result
            if len(_ROTATIONS) >= KEPT or _bytes(made, *_ROTATIONS.copy().values()) > MOST:
                _ROTATIONS.clear()
            _ROTATIONS[key] = made
        return result

    return evaluated  # type: ignore[return-value]  # it has the signature of what it wraps


def _is_shared(arrays: tuple[Any, ...]) -> bool:
    """Return whether so many heads have the same positions that the table takes little memory beside the result."""
    if len(arrays) != 2 or not all(blocks.is_large(array, 1) for array in arrays):
        return False
    x, positions = arrays
    return bool(prod(x.shape[:-1]) >= HEADS * prod(positions.shape))


def _bytes(*held: tuple[tuple[bytes, ...], Rotation]) -> int:
    """Return how many bytes rotations have, with the numbers that they are known by."""
    return sum(sum(map(len, numbers)) + sum(table.nbytes for table in rotation.table) for numbers, rotation in held)


def _key(function: Any, arrays: tuple[Any, ...], options: dict[str, Any]) -> tuple[Hashable, tuple[bytes, ...]] | None:
    """
    Return all that decides about a call but the numbers of x, or None where no table is remembered.

    The numbers of the other arrays are apart. Some of them are in the key too: to hash all would take longer than to compare.
    """
    x, *others = arrays
    kind, key, numbers = type(x), [function], []
    if not (blocks.ON and blocks.is_large(x, 1)):
        return None
    for array in others:
        if type(array) is not kind or not 0 < prod(array.shape) <= FEW:
            return None
    if not blocks.are_plain(arrays):
        return None
    try:
        for array in others:
            data = (array if are_numpy(kind) else array.numpy()).tobytes()
            numbers.append(data)
            key += array.dtype, array.shape, data[:: 1 + len(data) // SEEN]
        return (*key, x.dtype, x.shape, *options, *map(option_key, options.values())), tuple(numbers)
    except TypeError:  # an option that is none, or a dtype that NumPy has not
        return None
