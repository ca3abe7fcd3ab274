"""
Rows of a call: parts of its arguments that give the same part of its results, so that a few stand for a large call.

The registry names the letters (`posref.spec.encoding`, `rows`). Along such an axis every index stands for itself: cut
out of all arguments that have it, it is cut out of every result, and no bit of that changes. All rows are judged where that is
quick, else those where kernels break and those that look farthest off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..model import Arrays, Call
from ..suite.axes import alternatives, holds, is_star, names_in, result_axes, value_of
from .evaluation import plain, wide

Key = tuple[str, int]  # a letter, and for one that stands for several axes which of them, counted from the last
Selection = Mapping[Key, npt.NDArray[np.int64]]
Slices = Mapping[Key, slice]
TILES = tuple(16 << k for k in range(9))  # 16 to 4096
DRAWN, FAR = 96, 32
Far = dict[Key, npt.NDArray[np.int64]]
LEAST = 2  # indices of an axis, since an axis of one may mean another shape
PART = 1 << 18  # values that are compared at once: so many stay in a processor's cache


@dataclass(frozen=True)
class Rows:
    """The row axes of one call: their sizes, and which axis of every argument and result they are."""

    sizes: dict[Key, int]
    arguments: dict[str, dict[int, Key]]
    results: dict[str, dict[int, Key]]
    terms: int = 1  # of the sum that each value is

    def cut(self, arrays: Arrays, selection: Selection | Slices) -> Arrays:
        """Return arguments, or cotangents, with the selected indices of every row axis alone."""
        return {n: _taken(x, self.arguments.get(n, {}), self.sizes, selection) for n, x in arrays.items()}

    def cut_results(self, arrays: Arrays, selection: Selection | Slices) -> Arrays:
        """Return results with the selected indices of every row axis alone."""
        return {n: _taken(x, self.results.get(n, {}), self.sizes, selection) for n, x in arrays.items()}

    def indices(self, name: str, shape: Sequence[int], selection: Selection) -> tuple[npt.NDArray[np.int64], ...]:
        """Return where the selected part of a result lies in the whole, as an open mesh of its axes."""
        own = self.results.get(name, {})
        axes = (selection.get(own[axis]) if axis in own and size > 1 else None for axis, size in enumerate(shape))
        return np.ix_(*(np.arange(n) if i is None else i for i, n in zip(axes, shape, strict=True)))


def _taken(
    x: npt.NDArray[Any], own: Mapping[int, Key], sizes: Mapping[Key, int], selection: Selection | Slices
) -> npt.NDArray[Any]:
    wanted = [(axis, selection[key]) for axis, key in own.items() if key in selection and x.shape[axis] == sizes[key]]
    for axis, chosen in sorted(wanted, key=lambda pair: _left(pair[1], x.shape[pair[0]])):  # what leaves least first
        x = x[(slice(None),) * axis + (chosen,)] if isinstance(chosen, slice) else np.take(x, chosen, axis=axis)
    return x


def _left(chosen: npt.NDArray[np.int64] | slice, size: int) -> float:
    """Return which part of an axis is chosen; a slice copies nothing."""
    return 0.0 if isinstance(chosen, slice) else len(chosen) / max(size, 1)


def rows_of(op: str, arrays: Arrays, params: Mapping[str, Any], results: Mapping[str, tuple[int, ...]]) -> Rows:
    """Return the row axes of a call with results of the given shapes; none if its arrays are of no shape in the registry."""
    record = REGISTRY[op]
    letters = {letter.lstrip("*") for letter in record.rows.split()}
    ways = max((len(alternatives(axes.shape)) for axes in record.arrays.values()), default=0)
    for which in range(ways if letters else 0):
        found = _matched(op, arrays, params, which)
        if found is None:
            continue
        sizes, arguments = found
        placed = {name: _in_result(op, name, shape, which, sizes) for name, shape in results.items()}
        if any(place is None for place in placed.values()):
            continue
        told = {name: place for name, place in placed.items() if place is not None}
        everywhere = {k for k in sizes if k[0] in letters and all(k in place.values() for place in told.values())}
        return Rows(
            {k: n for k, n in sizes.items() if k in everywhere},
            {n: {a: k for a, k in own.items() if k in everywhere} for n, own in arguments.items()},
            {n: {a: k for a, k in own.items() if k in everywhere} for n, own in told.items()},
            _terms(op, sizes, told),
        )
    return Rows({}, {}, {})


def _terms(op: str, sizes: Mapping[Key, int], results: Mapping[str, Mapping[int, Key]]) -> int:
    """Return how many terms the sums of an operation have: the largest size that its results lack."""
    lacking = [n for key, n in sizes.items() if all(key not in place.values() for place in results.values())]
    return max(1, *lacking, 1) if REGISTRY[op].sums else 1


def _matched(
    op: str, arrays: Arrays, params: Mapping[str, Any], which: int
) -> tuple[dict[Key, int], dict[str, dict[int, Key]]] | None:
    """Return the sizes of letters, and the letters of the arguments' axes, in one alternative; None if it does not fit."""
    record = REGISTRY[op]
    sizes: dict[Key, int] = {}
    placed: dict[str, dict[int, Key]] = {}
    later: list[tuple[str, int]] = []
    for name, x in arrays.items():
        shape = record.arrays[name].shape
        shape = record.arrays[shape[1:]].shape if shape.startswith("=") else shape
        ways = alternatives(shape)
        own = _aligned(ways[min(which, len(ways) - 1)], x.ndim)
        if own is None:
            return None
        placed[name] = {}
        for axis, token in enumerate(own):
            plain, maybe = token[0].lstrip("~"), token[0].startswith("~")
            if not plain.isidentifier():
                later.append((plain, x.shape[axis]))
            elif not (maybe and x.shape[axis] == 1):
                key = (plain, token[1])
                if sizes.setdefault(key, x.shape[axis]) != x.shape[axis]:
                    return None
            if plain.isidentifier():
                placed[name][axis] = (plain, token[1])
    known = {**params, **{letter: n for (letter, place), n in sizes.items() if place == 0}}
    fits = all(value_of(text, known) == size for text, size in later if names_in(text) <= set(known))
    return (sizes, placed) if fits and all(holds(text, known) for text in record.requires) else None


def _aligned(way: Sequence[str], ndim: int) -> list[tuple[str, int]] | None:
    """Return the token of every axis of an array, a star's without it and counted from its last; None if they do not fit."""
    tokens = list(way)
    star = next((i for i, token in enumerate(tokens) if is_star(token)), None)
    if star is None:
        while len(tokens) > ndim and tokens[0].startswith("~"):
            tokens.pop(0)
        return [(token, 0) for token in tokens] if len(tokens) == ndim else None
    before, after = tokens[:star], tokens[star + 1 :]
    while len(before) + len(after) > ndim and not before and after[0].startswith("~"):
        after.pop(0)
    several = ndim - len(before) - len(after)
    if several < 0:
        return None
    name = tokens[star].replace("*", "")
    return [(t, 0) for t in before] + [(name, several - 1 - i) for i in range(several)] + [(t, 0) for t in after]


def _in_result(op: str, name: str, shape: tuple[int, ...], which: int, sizes: Mapping[Key, int]) -> dict[int, Key] | None:
    """Return the letters of a result's axes; None if they do not fit its shape."""
    own = _aligned(result_axes(op, name, which), len(shape))
    if own is None:
        return None
    found: dict[int, Key] = {}
    for axis, (token, place) in enumerate(own):
        plain = token.lstrip("~")
        keys = [k for k in sizes if k == (plain, place) or ("(" in plain and k[0] in names_in(plain))]
        if keys and shape[axis] not in (1, sizes[keys[0]]):
            return None
        if keys:
            found[axis] = keys[0]
    return found


@dataclass(frozen=True)
class Sample:
    """The judged part of a call: true values where these matter, tolerances, the outputs, and where it lies in the whole."""

    call: Call
    outputs: Arrays
    rows: Rows
    selection: Selection
    judged: Mapping[str, int]  # values by output
    shapes: Mapping[str, tuple[int, ...]]  # of the whole

    def of(self, output: str) -> int:
        """Return how many values an output has."""
        return math.prod(self.shapes[output])

    def place(self, output: str, index: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index in the whole output of an index in the judged part."""
        if not self.selection:
            return index
        mesh = self.rows.indices(output, self.shapes[output], self.selection)
        return tuple(int(axis.ravel()[i]) for axis, i in zip(mesh, index, strict=True))


# ---- which rows are judged ------------------------------------------------------------------------------------------------
class Budget(NamedTuple):
    """How many values may be judged, and how many terms of their sums."""

    values: int
    terms: int


def cost(rows: Rows, results: Arrays, selection: Mapping[Key, npt.NDArray[np.int64]]) -> Budget:
    """Return the number of values of a selection, and of the terms of their sums."""
    kept = math.prod(len(selection[key]) / max(size, 1) for key, size in rows.sizes.items() if key in selection)
    values = round(kept * sum(x.size for x in results.values()))
    return Budget(values, values * rows.terms)


def fits(rows: Rows, results: Arrays, selection: Mapping[Key, npt.NDArray[np.int64]], budget: Budget) -> bool:
    """Return whether a selection is within a budget."""
    return all(found <= most for found, most in zip(cost(rows, results, selection), budget, strict=True))


def choose(rows: Rows, outputs: Arrays, near: Arrays, budget: Budget, screen: Callable[[], Far] | None = None) -> Selection:
    """
    Return the indices to judge along every row axis; of an axis that is not among them all.

    First come the rows whose outputs are farthest from `near`, which is close to the truth. That they look right proves
    nothing, so the first and last rows, those around multiples of usual tile sizes and drawn ones are judged too. With a
    `screen`, which finds the farthest rows, only the shapes of `near` matter.
    """
    if fits(rows, near, {}, budget):
        return {}
    far = farthest(rows, far_off(rows, outputs, near)) if screen is None else screen()
    wanted = {key: _in_order(size, far.get(key, ())) for key, size in rows.sizes.items()}
    while wanted and not fits(rows, near, wanted, budget):
        longest = max(wanted, key=lambda key: len(wanted[key]))
        if len(wanted[longest]) <= LEAST:
            break
        wanted[longest] = wanted[longest][: max(LEAST, len(wanted[longest]) * 3 // 4)]
    return {key: np.sort(indices) for key, indices in wanted.items() if len(indices) < rows.sizes[key]}


def _in_order(size: int, far: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return indices of an axis, those that matter most first."""
    borders = [m * s + d for m in (1, 2, 3) for s in TILES for d in (-1, 0, 1)]
    drawn = np.random.default_rng(size).integers(0, max(size, 1), DRAWN)
    first = [*np.asarray(far, dtype=np.int64), 0, size - 1, 1, size - 2, *borders, *drawn]
    return np.asarray(list(dict.fromkeys(int(i) for i in first if 0 <= i < size)), dtype=np.int64)


def far_off(rows: Rows, outputs: Arrays, near: Arrays) -> npt.NDArray[np.float64]:
    """Return how much the outputs of every row differ from `near`, for the size of the row; the axes are those of `rows`."""
    keys = list(rows.sizes)
    total = np.zeros(tuple(rows.sizes.values()))
    for name, expected in near.items():
        axes = {key: axis for axis, key in rows.results.get(name, {}).items() if expected.shape[axis] == rows.sizes[key]}
        others = tuple(axis for axis in range(expected.ndim) if axis not in axes.values())
        with np.errstate(all="ignore"):
            error = np.asarray(outputs[name] - expected.astype(np.float64, copy=False))
            error = np.abs(error, out=error)
            size = np.abs(expected)
            if others:
                error, size = np.max(error, axis=others, initial=0.0), np.max(size, axis=others, initial=0.0)
            ratio = np.nan_to_num(error / (size + np.finfo(np.float32).tiny), nan=np.inf)
        order = sorted(axes, key=axes.__getitem__)
        ratio = ratio.transpose([order.index(key) for key in keys if key in axes])
        total = np.maximum(total, ratio[tuple(slice(None) if key in axes else None for key in keys)])
    return total


def farthest(rows: Rows, total: npt.NDArray[np.float64]) -> Far:
    """Return the indices of the rows that are farthest off, the farthest first."""
    worst = np.argpartition(total, -FAR, axis=None)[-FAR:] if total.size > FAR else np.arange(total.size)
    worst = worst[np.argsort(total.ravel()[worst], kind="stable")[::-1]]
    return dict(zip(rows.sizes, np.unravel_index(worst, total.shape), strict=True)) if rows.sizes else {}


# ---- which rows look farthest off, of a call too large to compute at once --------------------------------------------------
def shapes_of(op: str, call: Call, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """
    Return arrays of the shapes and kinds of a call's results, without their values.

    The definition runs on two indices of every row axis; where that does not give the `shapes` that somebody has, on all.
    """
    rows = rows_of(op, call.inputs, call.params, shapes)
    few = {key: np.arange(LEAST) for key, size in rows.sizes.items() if size > LEAST}
    try:
        part = plain(op, wide(rows.cut(call.inputs, few)), call.params)
    except ValueError:  # of the whole call it says more
        part = {}
    found = {}
    for name, x in part.items():
        sizes = {axis: rows.sizes[key] for axis, key in rows.results.get(name, {}).items() if key in few}
        found[name] = _empty(x, tuple(sizes.get(axis, n) if n == LEAST else n for axis, n in enumerate(x.shape)))
    if {name: x.shape for name, x in found.items()} == dict(shapes):
        return found
    return {name: _empty(x, x.shape) for name, x in plain(op, wide(call.inputs), call.params).items()}


def _empty(x: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array of a shape, and of the kind of `x`, that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype=np.int64 if x.dtype.kind in "bi" else np.float64), shape)


def screened(op: str, call: Call, rows: Rows, outputs: Arrays) -> Far:
    """Return the rows of a call whose outputs are farthest from what the definition gives in float64."""
    total = np.zeros(tuple(rows.sizes.values()))
    key = _divided(rows, call.inputs)
    for part in _parts(rows.sizes[key], max(y.size for y in outputs.values())) if key is not None else [slice(None)]:
        there = {key: part} if key is not None else {}
        near = plain(op, wide(rows.cut(call.inputs, there)), call.params)
        local = replace(rows, sizes={k: len(range(n)[there.get(k, slice(None))]) for k, n in rows.sizes.items()})
        off = far_off(local, rows.cut_results(outputs, there), near)
        total[tuple(there.get(k, slice(None)) for k in rows.sizes)] = off
    return farthest(rows, total)


def _divided(rows: Rows, inputs: Arrays) -> Key | None:
    """Return the row axis to divide a call by: that of most arguments, so that little is computed again in every part."""
    have = {
        key: sum(key in own.values() and inputs[n].shape[next(a for a, k in own.items() if k == key)] == size
                 for n, own in rows.arguments.items())
        for key, size in rows.sizes.items()
    }  # fmt: skip
    return max(have, key=lambda key: (have[key], rows.sizes[key]), default=None)


def _parts(size: int, values: int) -> list[slice]:
    """Return slices of an axis, each of at least two indices, so that about `PART` values belong to each."""
    count = max(1, min(size // LEAST, -(-values // PART)))
    edges = [size * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
