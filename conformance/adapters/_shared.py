"""The common part of adapters: options, positions and tokens in the terms of libraries. It imports none of these."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from posref.core.arrays import Array, namespace
from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKAlpha, Proportional, Scaling, YaRN

from ..errors import Unsupported

HEADS, KV_HEADS = 4, 2  # heads of queries and of keys, where a library takes both
ROWS = 1 << 18  # of a table that is made to look up a few
NUMBERS = 1 << 24  # in a table of a grid of which a few cells are looked up


def lacks(what: str) -> NoReturn:
    """Raise `Unsupported`: the library does not do this."""
    raise Unsupported(what)


# ---- positions and tokens ---------------------------------------------------------------------------------------------------
def runs(positions: list[int] | list[float]) -> Iterator[tuple[slice, int | float]]:
    """Yield every stretch of consecutive positions, as a slice and the first of them: what a start position can express."""
    start = 0
    for stop in range(1, len(positions) + 1):
        if stop == len(positions) or positions[stop] != positions[stop - 1] + 1:
            yield slice(start, stop), positions[start]
            start = stop


def counted(positions: Array) -> list[int]:
    """
    Return the first position of every row, for code that counts on from an offset (``seqlen_offsets``).

    Positions of shape (T,) are one row, of (B, T) or (B, 1, T) B rows. `Unsupported` if a row is not consecutive, or positions
    are not natural numbers.
    """
    rows = _numbers(positions)
    width = int(positions.shape[-1]) if positions.ndim else 1
    counts = [rows[start : start + width] for start in range(0, len(rows), width)] if width else []
    for row in counts:
        if row != list(range(row[0], row[0] + width)):
            lacks("positions that are not consecutive")
    return [row[0] for row in counts]


def flat_tokens(x: Array, positions: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
    """
    Return every row of `x` as a token of one head, its position, and what gives results the shape of `x` again.

    Serving libraries take tokens of shape (N, H, D) and positions of shape (N,): here N counts all rows, and H is 1.
    """
    xp = namespace(x, positions)
    count = math.prod(x.shape[:-1])
    flat, where = xp.reshape(x, (count, 1, x.shape[-1])), xp.reshape(xp.broadcast_to(positions, x.shape[:-1]), (count,))
    return flat, where, lambda result: xp.reshape(result, tuple(x.shape))


def queries_and_keys(x: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
    """
    Return the rows of `x` as queries and as keys, and what gives the results of both the shape of `x` again.

    For functions that take both. Of N rows in all, queries have shape (N, 4, D) and keys (N, 2, D). Rows are a query and a key
    in turn, from the last head on: row 0 is in query head 3, row 1 in key head 1, row 2 in query head 2, row 3 in key head 0.
    The other heads of a token hold the row before, reversed. So the result is wrong where keys stay as they are, or come from
    queries or another head. Both arrays are new. ``back(q, k)`` also takes (N, 4 * D) and (N, 2 * D).
    """
    xp = namespace(x)
    count, size = math.prod(x.shape[:-1]), x.shape[-1]
    rows, tokens, heads = xp.reshape(x, (count, 1, size)), xp.arange(count, device=x.device), HEADS + KV_HEADS
    head = xp.where(tokens % 2 == 0, HEADS - 1 - tokens // 2 % HEADS, heads - 1 - tokens // 2 % KV_HEADS)
    mine = (head[:, None] == xp.arange(heads, device=x.device))[..., None]
    other = xp.flip(xp.roll(rows, 1, axis=0), axis=-1)
    q, k = (xp.where(side, rows, other) for side in (mine[:, :HEADS], mine[:, HEADS:]))

    def back(q: Array, k: Array) -> Array:
        both = xp.concat([xp.reshape(t, (count, n, size)) for t, n in ((q, HEADS), (k, KV_HEADS))], axis=1)
        return xp.reshape(xp.take(xp.reshape(both, (count * heads, size)), tokens * heads + head, axis=0), tuple(x.shape))

    return q, k, back


def of_both(x: Array, rotate: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
    """Return `x` rotated by a function of PyTorch's queries (1, 4, N, D) and keys (1, 2, N, D), made by `queries_and_keys`."""
    q, k, back = queries_and_keys(x)
    q, k = rotate(*(t.transpose(0, 1)[None] for t in (q, k)))
    return back(q[0].transpose(0, 1), k[0].transpose(0, 1))


def from_table(make: Callable[[int], Any], positions: Array, *, rows: int = ROWS) -> Any:
    """
    Return some rows of the table, or tuple of tables, that ``make(count)`` returns with `count` rows.

    A library whose cache begins at position 0 is asked for one row more than the largest position. `Unsupported` if positions
    are not natural numbers, or more than `rows` rows would be made.
    """
    numbers = _numbers(positions)
    count = max(numbers, default=0) + 1
    if count > rows:
        lacks(f"a table of {count} rows, more than {rows}")
    made = make(count)
    several = isinstance(made, tuple | list)
    xp = namespace(positions)
    shape, flat = tuple(positions.shape), xp.reshape(positions, (len(numbers),))
    parts = [xp.reshape(xp.take(part, flat, axis=0), (*shape, *part.shape[1:])) for part in (made if several else (made,))]
    return tuple(parts) if several else parts[0]


def from_grid(make: Callable[[int, int], Any], positions: Array, width: int, *, square: bool = False) -> Any:
    """
    Return the rows at the cells `positions`, of shape (2, *P), of the table that ``make(rows, columns)`` returns: one row of
    `width` numbers for every cell of the smallest grid, or smallest square one, that has them.

    `Unsupported` if positions are not natural numbers on two axes, there is none, or the table would be too large.
    """
    xp = namespace(positions)
    if positions.shape[0] != 2 or not xp.isdtype(positions.dtype, "integral") or not math.prod(positions.shape):
        lacks("the cells of a grid of two axes")
    _numbers(positions)
    rows, columns = (int(xp.max(axis)) + 1 for axis in (positions[0, ...], positions[1, ...]))
    rows, columns = (max(rows, columns),) * 2 if square else (rows, columns)
    if rows * columns * width > NUMBERS:
        lacks(f"a grid of {rows} by {columns} cells is too large here")
    return make(rows, columns)[positions[0, ...] * columns + positions[1, ...]]


def is_neox(layout: str) -> bool:
    """Return whether a layout is that of GPT-NeoX, as serving engines call it."""
    if layout not in ("half", "interleaved"):
        lacks(f"no layout {layout!r}")
    return layout == "half"


def _numbers(positions: Array) -> list[int]:
    """Return positions as a list; `Unsupported` if one is no natural number."""
    xp = namespace(positions)
    numbers = xp.reshape(positions, (math.prod(positions.shape),)).tolist()
    if any(p != int(p) for p in numbers):
        lacks("fractional positions")
    if min(numbers, default=0) < 0:
        lacks("negative positions")
    return [int(p) for p in numbers]


# ---- options --------------------------------------------------------------------------------------------------------------
def hf_parameters(scaling: Scaling | None) -> tuple[dict[str, Any], int]:
    """
    Return what a record of posref.scaling means in a configuration of transformers: its rope parameters without the base, and
    max_position_embeddings; `Unsupported` for a record that no rope type stands for.

    The second is the length in training for "dynamic", the extended length for "yarn", "llama3" and "longrope" (the record's
    own, or factor times the original one), and 2048 where nothing depends on it.
    """
    match scaling:
        case None:
            return {"rope_type": "default"}, 2048
        case Linear(factor):
            return {"rope_type": "linear", "factor": factor}, 2048
        case DynamicNTK(factor, original):
            return {"rope_type": "dynamic", "factor": factor}, original
        case NTKAlpha(alpha):
            return {"rope_type": "dynamic", "alpha": alpha, "factor": 1.0}, 2048
        case Proportional(rotated, factor):
            return {"rope_type": "proportional", "partial_rotary_factor": rotated, "factor": factor}, 2048
        case LongRoPE(short, long, original) if scaling.short_mscale is None and scaling.long_mscale is None:
            settings = {name: getattr(scaling, name) for name in ("factor", "attention_factor")}
            lists = {"short_factor": list(short), "long_factor": list(long), "original_max_position_embeddings": original}
            parameters = {name: value for name, value in settings.items() if value is not None}
            longest = scaling.max_length or math.ceil(original * (scaling.factor or 1))
            return {"rope_type": "longrope", **lists, **parameters}, longest
        case Llama3() | YaRN():
            settings = {name: value for name, value in vars(scaling).items() if value is not None}
            original = settings.pop("original_length")
            kind = "yarn" if isinstance(scaling, YaRN) else "llama3"
            parameters = {"rope_type": kind, "original_max_position_embeddings": original, **settings}
            return parameters, math.ceil(original * max(1, scaling.factor))
        case _:
            raise Unsupported(repr(scaling))


# ---- a part of a large project ----------------------------------------------------------------------------------------------
def only_package(
    module: str, *, folder: Path | None = None, stubs: Mapping[str, Mapping[str, Any]] | None = None
) -> ModuleType:
    """
    Import one module of a large project without running the ``__init__`` of the packages around it.

    Parameters
    ----------
    module : str
        Its full name: ``"vllm.model_executor.layers.rotary_embedding.base"``.
    folder : path, optional
        The folder that holds the outermost package, such as a source tree; without it, where that is installed.
    stubs : mapping, optional
        Modules to put in the place of the project's own, with what they hold. What one does not hold is a stand-in that can be
        called, used as a decorator, and inherited from.

    Returns
    -------
    module
        It and the empty packages around it stay in ``sys.modules``.
    """
    top, *rest = module.split(".")
    spec = PathFinder.find_spec(top, None if folder is None else [str(folder)])
    if spec is None or spec.submodule_search_locations is None:
        msg = f"only_package: {top!r} must be a package {'that is installed' if folder is None else f'in {folder}'}."
        raise ModuleNotFoundError(msg, name=top)
    places = [Path(place) for place in spec.submodule_search_locations]
    for depth in range(len(rest)):
        name = ".".join((top, *rest[:depth]))
        if name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [str(place.joinpath(*rest[:depth])) for place in places]
            sys.modules[name] = package
    for name, held in (stubs or {}).items():
        stub = _Stub(name)
        vars(stub).update(held)
        sys.modules[name] = stub
    return importlib.import_module(module)


class _Stub(ModuleType):
    """A module that has every name."""

    __path__: list[str]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn()


class _StandIn:
    """Something that can be called, read, used as a decorator or annotation, and inherited from, and does nothing."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        decorates = len(args) == 1 and not options and callable(args[0]) and not isinstance(args[0], _StandIn)
        return args[0] if decorates else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:  # a generic class
        return self

    def __or__(self, other: Any) -> Any:  # in an annotation
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()
