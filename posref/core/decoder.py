"""
Rotations whose table is remembered: all layers of a decoder rotate queries and keys at the same positions.

The first call checks its arguments and makes the table, as its definition is written. A later call that differs from it in the
numbers of x alone repeats the rotation by that table, and checks nothing again. This is done for up to `FEW` positions, or
cosines of a given table, where `posref.core.pairs` has a faster form, in NumPy and for plain CPU tensors of PyTorch. At most
`KEPT` rotations are remembered, with tables of `MOST` bytes in all. With ``POSREF_BLOCKS=0`` in the environment none is.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from math import prod
from typing import Any, TypeVar

from posref.core import blocks
from posref.core.arrays import are_numpy, option_key
from posref.core.pairs import HEADS, Rotation, is_recording, recorded

F = TypeVar("F", bound=Callable[..., Any])

KEPT, FEW, MOST = 16, 2048, 1 << 22
_ROTATIONS: dict[Hashable, Rotation] = {}  # no lock, which a fork could keep: threads at most make a table twice


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
        key = None if len(arrays) != count or is_recording() else _key(function, arrays, options)
        if key is None:
            return otherwise(*arrays, **options)
        rotation = _ROTATIONS.get(key)
        if rotation is not None:
            return rotation.of(arrays[0])
        result, records = recorded(function, arrays, options)
        if len(records) == 1 and records[0][0] is arrays[0] and records[0][2] is result:
            made: Rotation = records[0][1]
            if len(_ROTATIONS) >= KEPT or _bytes(made, *_ROTATIONS.copy().values()) > MOST:
                _ROTATIONS.clear()
            if _bytes(made) <= MOST:
                _ROTATIONS[key] = made
        return result

    return evaluated  # type: ignore[return-value]  # it has the signature of what it wraps


def _is_shared(arrays: tuple[Any, ...]) -> bool:
    """Return whether so many heads have the same positions that the table takes little memory beside the result."""
    if len(arrays) != 2 or not all(blocks.is_large(array, 1) for array in arrays):
        return False
    x, positions = arrays
    return bool(prod(x.shape[:-1]) >= HEADS * prod(positions.shape))


def _bytes(*rotations: Rotation) -> int:
    """Return how many bytes the tables of rotations have."""
    return sum(table.nbytes for rotation in rotations for table in rotation.table)


def _key(function: Any, arrays: tuple[Any, ...], options: dict[str, Any]) -> Hashable | None:
    """Return all that decides about a call but the numbers of x, or None where no table is remembered."""
    x, kind, key = arrays[0], type(arrays[0]), [function]
    if not (blocks.ON and blocks.is_large(x, 1) and blocks.are_plain(arrays)):
        return None
    in_numpy = are_numpy(kind)
    try:
        for array in arrays[1:]:
            if type(array) is not kind or not 0 < prod(array.shape) <= FEW:
                return None
            key += array.dtype, array.shape, (array if in_numpy else array.numpy()).tobytes()
        return *key, x.dtype, x.shape, *options, *map(option_key, options.values())
    except TypeError:  # an option that is none, or a dtype that NumPy has not
        return None
