"""
Evaluation of a bias once for each distance, where its positions are consecutive.

The bias of T queries and T keys has 2T - 1 distinct distances. For consecutive positions all rows are then ranges of one strip,
which the definition computes, and copies of which are the result, with the same bits. This is done for large arrays of NumPy
and for plain CPU tensors of PyTorch, as in `posref.core.blocks`. Everywhere else the definition runs as it is written.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from posref.core.arrays import Array, are_numpy
from posref.core.blocks import ON, are_plain, empty, is_large

F = TypeVar("F", bound=Callable[..., Any])

LEAST = 1 << 16  # pairs of a query and a key
FARTHEST = 1 << 30  # positions below it have distances within 32 bits
SEEN = 2  # queries of the strip, which tell whether the result has a row for each of them


def in_strips(function: F) -> F:
    """
    Evaluate a definition of (q_positions, k_positions, ...) once for each distance.

    Its result depends on the positions by the distance of key and query alone, by operations that are exact or rounded
    correctly: those of approximated functions may depend on where in memory a number stands. The last axes of the result are
    queries and keys.
    """

    @wraps(function)
    def evaluated(*arrays: Any, **options: Any) -> Any:
        start = _start_of_keys(arrays)
        if start is None:
            return function(*arrays, **options)
        q, k, *others = arrays
        strip = _strip(k, start, len(q))
        try:
            rows = function(q[:SEEN], strip, *others, **options)
        except (ValueError, TypeError):  # the message is to have the shapes of the call
            return function(*arrays, **options)
        if tuple(rows.shape[-2:]) != (SEEN, len(strip)):
            return function(*arrays, **options)
        return _unrolled(rows[..., :1, :], len(q))

    return evaluated  # type: ignore[return-value]  # it has the signature of what it wraps


def _start_of_keys(arrays: tuple[Any, ...]) -> int | None:
    """Return the first position of the keys, or None if the call is to be evaluated as it is written."""
    if not ON or len(arrays) < 2 or not all(is_large(array, SEEN) for array in arrays[:2]) or not are_plain(arrays):
        return None
    sizes = [array.shape[0] if array.ndim == 1 else 0 for array in arrays[:2]]
    if min(sizes) < SEEN or sizes[0] * sizes[1] < LEAST:
        return None
    starts = [_start(array if are_numpy(type(array)) else _in_numpy(array)) for array in arrays[:2]]
    return None if None in starts else starts[1]


def _start(positions: Any) -> int | None:
    """Return the first of consecutive positions, or None if they are not consecutive integers of 32 or 64 bits."""
    if positions.dtype.kind != "i" or positions.dtype.itemsize < 4:
        return None
    first, last = int(positions[0]), int(positions[-1])
    near = max(abs(first), abs(last)) < FARTHEST
    return first if near and last - first == len(positions) - 1 and bool((positions[1:] > positions[:-1]).all()) else None


def _strip(k: Array, first: int, queries: int) -> Array:
    """Return the positions of keys at all distances from the first query, in ascending order."""
    import numpy as np

    distances = np.arange(first - queries + 1, first + k.shape[0])
    if are_numpy(type(k)):
        return distances.astype(k.dtype)
    import torch

    return torch.from_numpy(distances).to(k.dtype)


def _unrolled(strip: Array, queries: int) -> Array:
    """Return the rows of all queries: each is a range of the strip, one number earlier than the query before."""
    import numpy as np

    keys = strip.shape[-1] - queries + 1
    result, held = empty((*strip.shape[:-2], queries, keys), strip), strip[..., 0, :]
    to, of = (result, held) if are_numpy(type(strip)) else (_in_numpy(result), _in_numpy(held))
    last, step = of[..., queries - 1 :], of.strides[-1]
    to[...] = np.lib.stride_tricks.as_strided(last, to.shape, (*of.strides[:-1], -step, step))
    return result


def _in_numpy(tensor: Any) -> Any:
    """Return the memory of a tensor as an array of NumPy, which has integers of 16 bits for bfloat16."""
    import torch

    return tensor.view(torch.int16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
