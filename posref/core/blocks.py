"""
Evaluation of a definition in blocks of rows that fit the processor's cache, with the same bits as all at once.

A definition reads and writes its intermediate results several times. In a block they stay in the cache, and memory is read and
written once. This is done for large arrays of NumPy and for plain CPU tensors of PyTorch that record no gradient and are not
compiled, exported or traced. Everywhere else, and in error bounds and balls, the definition runs as it is written. With
``POSREF_BLOCKS=0`` in the environment when posref is imported it does so everywhere.

The gradient of a rotation is the inverse rotation of the cotangents, evaluated in the same way: x is not kept for it. Automatic
differentiation of the definition would keep x and several results of its size. This is done for plain tensors of PyTorch that
record a gradient in x alone. Everywhere else the definition is differentiated as it is written: where tables record gradients
too, under compilation, export, tracing, transforms of torch.func and forward-mode differentiation, and for subclasses of
tensors.
"""

import inspect
import os
from collections.abc import Callable, Mapping
from functools import cache, wraps
from math import prod
from typing import Any, NamedTuple, TypeVar

from posref.core.arrays import Array, are_numpy

F = TypeVar("F", bound=Callable[..., Any])

ON = os.environ.get("POSREF_BLOCKS", "1") != "0"
CACHE = 2**20  # bytes of a block's results: the second-level cache of a processor core has one or two of them
BLOCKS = 4  # results of fewer blocks are computed at once
ROWS = 256  # so are results of fewer rows
LARGE, HUGE = 2**22, 2**30  # bytes from which NumPy asks for large pages, and from which Linux takes longer to find these
SEEN = 2  # the fewest indices of a block: one of them would be taken for an axis that broadcasts


class Rows(NamedTuple):
    """The axis that is divided: its size, its place from the right among the row axes (1 is the last), and all rows."""

    size: int
    from_the_right: int
    total: int


def in_blocks(*, over: str | None = None, **around: tuple[int, int]) -> Callable[[F], F]:
    """
    Evaluate a definition in blocks of rows.

    `around` names the array arguments that have row axes, and the numbers of axes before and after these. The row axes of all
    of them broadcast, aligned from the right. In every result one axis comes after the row axes. A row of the results depends
    only on the same row of the named arguments, and on all of the others. A block is a range of the longest row axis, or of the
    last one if an array that is not named has several axes, which may be rows too. A named array may be None, except the first.

    `over` names an array that the caller made for this call alone. A result of its shape and dtype is written over it.
    """

    def decorated(function: F) -> F:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
        named = {names.index(name): axes for name, axes in around.items()}
        first, target = min(named), None if over is None else names.index(over)
        has_channels = named[first] != (0, 0)

        @wraps(function)
        def evaluated(*arrays: Any, **options: Any) -> Any:
            least = BLOCKS * CACHE // 4 if has_channels else ROWS
            if not ON or len(arrays) != len(names) or not is_large(arrays[first], least) or not are_plain(arrays):
                return function(*arrays, **options)
            places = {k: axes for k, axes in named.items() if arrays[k] is not None}
            rows = _rows(arrays, places)
            if rows is None or rows.total < ROWS or rows.size <= SEEN:
                return function(*arrays, **options)
            return _joined(function, arrays, options, places, rows, None if target is None else arrays[target])

        return evaluated  # type: ignore[return-value]  # it has the signature of what it wraps

    return decorated


def is_large(array: Any, least: int) -> bool:
    """Return whether an array is of NumPy or PyTorch and has so many numbers. None has while a graph is made."""
    kind = type(array)
    if kind.__module__ == "torch":
        import torch

        return not torch.compiler.is_compiling() and array.numel() >= least
    return are_numpy(kind) and array.size >= least


def are_plain(arrays: tuple[Any, ...]) -> bool:
    """Return whether all are None, numbers, NumPy's arrays, or PyTorch's plain tensors without a recorded history."""
    kind = type(arrays[0])
    if kind.__module__ != "torch" or kind.__name__ != "Tensor":
        return all(are_numpy(type(array)) or isinstance(array, int | None) for array in arrays)
    import torch

    if not is_eager():
        return False
    for array in arrays:
        if type(array) is kind or type(array) is torch.nn.Parameter:
            if not array.is_cpu or (array.requires_grad and torch.is_grad_enabled()):
                return False
        elif not are_numpy(type(array)) and not isinstance(array, int | None):
            return False
    return True


def is_eager() -> bool:
    """Return whether PyTorch just runs, and neither traces, transforms (vmap, jvp) nor differentiates forwards."""
    import torch

    c = torch._C
    if c._get_tracing_state() or c._len_torch_dispatch_stack() or c._functorch.peek_interpreter_stack() is not None:
        return False
    return bool(torch.autograd.forward_ad._current_level < 0)


def _rows(arrays: tuple[Any, ...], around: Mapping[int, tuple[int, int]]) -> Rows | None:
    """Return the axis to divide, or None where the row axes do not broadcast (the definition says so) or are empty."""
    shapes = [tuple(arrays[k].shape[before : arrays[k].ndim - after]) for k, (before, after) in around.items()]
    rank = max(map(len, shapes))
    if rank == 0:
        return None
    sizes = [{shape[-place] for shape in shapes if len(shape) >= place} for place in range(1, rank + 1)]
    longest = [max(lengths) for lengths in sizes]
    if not all(lengths <= {1, size} for lengths, size in zip(sizes, longest, strict=True)) or 0 in longest:
        return None
    count = 1
    for size in longest:
        count *= size
    alone = all(getattr(array, "ndim", 0) <= 1 for k, array in enumerate(arrays) if k not in around)
    place = max(range(rank), key=lambda k: (longest[k], k)) if alone else 0
    return Rows(longest[place], place + 1, count)


def _joined(
    function: Callable[..., Any],
    arrays: tuple[Any, ...],
    options: Mapping[str, Any],
    around: Mapping[int, tuple[int, int]],
    rows: Rows,
    over: Array | None,
) -> Any:
    """Return the results of all blocks in one, over an array if it fits. A first block tells how many fill the cache."""

    def of_block(start: int, stop: int) -> Any:
        parts = [
            taken(array, rows.from_the_right + around[k][1], start, stop) if k in around else array
            for k, array in enumerate(arrays)
        ]
        return function(*parts, **options)

    try:
        first = of_block(0, SEEN)
    except (ValueError, TypeError):  # the message is to have the shapes of the call
        return function(*arrays, **options)
    outputs = first if isinstance(first, tuple) else (first,)
    size = max(SEEN, SEEN * CACHE // max(1, *(f.nbytes for f in outputs)))
    if rows.size < BLOCKS * size or any(f.shape[f.ndim - 1 - rows.from_the_right] != SEEN for f in outputs):
        return function(*arrays, **options)  # it is small, or the result is not divided as the arguments are
    results = [over] if over is not None and _fits(over, outputs, rows) else [empty(_whole(f, rows), f) for f in outputs]
    starts = range(0, rows.size - 1, size)  # the last block takes a single index that is left
    for start, stop in zip(starts, (*starts[1:], rows.size), strict=True):
        block = of_block(start, stop)
        for result, part in zip(results, block if isinstance(block, tuple) else (block,), strict=True):
            taken(result, rows.from_the_right + 1, start, stop)[...] = part
    return tuple(results) if isinstance(first, tuple) else results[0]


def taken(array: Array, from_the_right: int, start: int, stop: int) -> Array:
    """Return a range of an axis as a view, or all where the array has one index there."""
    axis = array.ndim - from_the_right
    if axis < 0 or array.shape[axis] == 1:
        return array
    return array[(slice(None),) * axis + (slice(start, stop),)]


def _fits(over: Array, found: tuple[Array, ...], rows: Rows) -> bool:
    """Return whether the whole of the only result has the shape and dtype of an array."""
    return len(found) == 1 and found[0].dtype == over.dtype and _whole(found[0], rows) == tuple(over.shape)


def _whole(first: Array, rows: Rows) -> tuple[int, ...]:
    """Return the shape of a whole result, from a block of it along the divided axis."""
    axis = first.ndim - rows.from_the_right - 1
    return (*first.shape[:axis], rows.size, *first.shape[axis + 1 :])


def empty(shape: tuple[int, ...], like: Array) -> Array:
    """Return an uninitialised array of the library and dtype of another one, in large pages where they pay."""
    import numpy as np

    if are_numpy(type(like)):
        return np.empty(shape, dtype=like.dtype)
    if not LARGE <= prod(shape) * like.element_size() < HUGE:
        return like.new_empty(shape)
    import torch

    return torch.frombuffer(np.empty(prod(shape) * like.element_size(), dtype=np.uint8), dtype=like.dtype).view(shape)


def inverse_is_adjoint(function: F) -> F:
    """
    Differentiate a definition of (x, ...) by calling it with the other `inverse`.

    It is linear in x, its one result has the shape and the dtype of x, and its option `inverse` gives the transpose.
    """

    @wraps(function)
    def evaluated(*arrays: Any, **options: Any) -> Any:
        if len(arrays) > 1 and getattr(arrays[0], "requires_grad", False) and _records_x_alone(arrays):
            return _rotation().apply(evaluated, function, options, *arrays)
        return function(*arrays, **options)

    return evaluated  # type: ignore[return-value]  # it has the signature of what it wraps


def _records_x_alone(arrays: tuple[Any, ...]) -> bool:
    """Return whether all are plain tensors, the first records a gradient, and nothing else does or watches."""
    if type(arrays[0]).__module__ != "torch":  # an array of another library that knows this word, or a parameter
        return False
    import torch

    if not ON or torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    if not all(type(array) is torch.Tensor for array in arrays):
        return False
    recorded = [array.requires_grad for array in arrays]
    x, *tables = recorded
    return x and not any(tables) and is_eager()


@cache
def _rotation() -> Any:
    """Return the function of autograd. It is made when it is first used, since PyTorch is imported then at the earliest."""
    import torch

    class Rotation(torch.autograd.Function):  # type: ignore[misc]
        """A rotation that keeps its table. A gradient in the cotangents is made by calling itself in the other direction."""

        @staticmethod
        def forward(ctx: Any, again: Any, function: Any, options: dict[str, Any], x: Any, *tables: Any) -> Any:
            ctx.again, ctx.function, ctx.options = again, function, options
            ctx.save_for_backward(*tables)
            return function(x, *tables, **options)

        @staticmethod
        def backward(ctx: Any, cotangents: Any) -> Any:
            tables, options = ctx.saved_tensors, ctx.options | {"inverse": not ctx.options.get("inverse", False)}
            if torch._C._functorch.is_legacy_batchedtensor(cotangents):  # of is_grads_batched, which knows few functions
                gradient = _as_written(ctx.function, cotangents, tables, ctx.options)
            else:
                gradient = ctx.again(cotangents, *tables, **options)
            return (None, None, None, gradient, *(None for _ in tables))

    return Rotation


def _as_written(function: Any, cotangents: Any, tables: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the gradient by automatic differentiation at x = 0: the rotation is linear, and so has the same one everywhere."""
    import torch

    with torch.enable_grad():
        x = torch.zeros(cotangents.shape, dtype=cotangents.dtype, device=cotangents.device, requires_grad=True)
        y = function(x, *tables, **options)
    return torch.autograd.grad(y, x, cotangents, create_graph=torch.is_grad_enabled())[0]
