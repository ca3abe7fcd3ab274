"""
The axes of arrays as the registry writes them: alternatives, letters, and expressions of letters and options.

``"D | *R T D"`` has two alternatives, the second of three axes; ``*R`` stands for any number of them, and a ``~`` says that
an axis may also be 1 or missing. `posref.spec.Axes` has the whole grammar. From the letters follow the rows of a call, by
which it may be cut, and at which position every value of a result stands.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY, Axes, Encoding, Integer, Record

from ..calls import positions_of
from ..model import Arrays, Call

FUNCTIONS = {"sum": sum, "len": len, "min": min, "max": max, "prod": math.prod}  # that expressions may use


def alternatives(shape: str) -> list[list[str]]:
    """Return the axes of every alternative of a shape."""
    return [way.split() for way in shape.split("|")]


def is_star(axis: str) -> bool:
    """Return whether an axis stands for any number of them."""
    return axis.lstrip("~").startswith("*")


def alternative(op: str, shape: str, which: int) -> list[str]:
    """Return the axes of one alternative of a shape, or of its last; ``=x`` is the shape of the operation's argument x."""
    ways = alternatives(REGISTRY[op].arrays[shape[1:]].shape if shape.startswith("=") else shape)
    return ways[min(which, len(ways) - 1)]


def result_axes(op: str, output: str, which: int) -> list[str]:
    """Return the axes of one of an operation's outputs, for alternative `which` of its arrays."""
    record = REGISTRY[op]
    return alternative(op, record.result[record.outputs.index(output)], which)


def value_of(text: str, known: Mapping[str, Any]) -> Any:
    """Return the value of an expression of the registry."""
    return eval(_compiled(text), {"__builtins__": FUNCTIONS}, dict(known))


def names_in(text: str) -> set[str]:
    """Return the options and sizes that an expression speaks of."""
    return set(_compiled(text).co_names) - set(FUNCTIONS)


def holds(text: str, known: Mapping[str, Any]) -> bool:
    """Return whether a requirement holds; one about something that is missing does."""
    return not names_in(text) <= set(known) or bool(value_of(text, known))


def meets(record: Encoding, known: Mapping[str, Any]) -> bool:
    """Return whether options and sizes are what an operation requires."""
    known, required = dict(known), list(record.requires)
    for name, domain in record.domains.items():
        scaling = known.get(name)
        if isinstance(domain, Record) and scaling is not None:
            known |= {"dim": value_of(domain.dim, known)} | {f.name: getattr(scaling, f.name) for f in fields(scaling)}
            required += getattr(scaling, "requires", ())
    return all(holds(text, known) for text in required)


def arranged(values: npt.NDArray[Any], axes: Axes) -> npt.NDArray[Any]:
    """Return integers as an argument has them: ends of intervals in order, none of at least 0 twice, or below their index."""
    if axes.distinct:
        first = np.zeros(values.size, dtype=bool)
        first[np.unique(values, return_index=True)[1]] = True
        return np.where(first.reshape(values.shape), values, -1)
    if axes.earlier:
        return np.where(values < np.arange(values.shape[-1]), values, -1)
    return in_order(values) if axes.ordered else values


def in_order(ends: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return intervals whose ends are in order: the last axis holds the lower ends, then the upper ones."""
    return np.sort(ends.reshape(*ends.shape[:-1], 2, ends.shape[-1] // 2), axis=-2).reshape(ends.shape)


def limits(axes: Axes, known: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value of an array, None where there is no such end."""
    low, high = (None if text is None else value_of(text, known) for text in (axes.low, axes.high))
    return low, high


def within(values: npt.NDArray[Any], axes: Axes, known: Mapping[str, Any], bits: int) -> npt.NDArray[Any]:
    """
    Return reals moved into the domain of an argument, with as many significant bits as they have room for.

    Values are folded at the ends of the domain, so that they still differ. Without a domain they stay as they are.
    """
    low, high = limits(axes, known)
    if axes.positive:
        values, low = np.where(values == 0, 1.0, values), 0.0
    if low is None and high is None:
        return values
    if low is None:
        moved = high - np.abs(values)
    elif high is None:
        moved = low + np.abs(values)
    else:
        moved = folded(values, low, high)
    rounded = _rounded(np.round, moved, bits)
    if low is not None:
        rounded = np.where(rounded < low, _rounded(np.ceil, moved, bits), rounded)
    if high is not None:
        rounded = np.where(rounded > high, _rounded(np.floor, moved, bits), rounded)
    if axes.positive:  # 0 is where the fold begins
        least = 2.0**-bits if high is None else _rounded(np.floor, np.asarray(high / 2.0), bits)
        rounded = np.where(rounded > 0, rounded, least)
    return np.asarray(rounded, dtype=np.float64)


def folded(values: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[Any]:
    """Return reals from `low` to `high`: 0 is at `low`, and larger numbers go to and fro between the two."""
    width = high - low
    return low + (np.abs((np.abs(values) + width) % (2 * width) - width) if width else np.zeros(values.shape))


def _rounded(how: Any, values: npt.NDArray[Any], bits: int) -> npt.NDArray[Any]:
    """Return values with so many significant bits, rounded to the nearest number, up or down."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(how(mantissa * 2.0**bits), exponent - bits))


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, text, "eval")


# ---- rows: axes along which a part of the arguments gives the same part of the results ----------------------------------
# The registry names the letters (`posref.spec.encoding`, `rows`). Along such an axis every index stands for itself: cut out of
# all arguments that have it, it is cut out of every result, and no bit of that changes. So a few rows stand for a large call.
Key = tuple[str, int]  # a letter, and for one that stands for several axes which of them, counted from the last
Selection = Mapping[Key, npt.NDArray[np.int64]]
Slices = Mapping[Key, slice]
LEAST = 2  # indices of an axis, since an axis of one may mean another shape


class Budget(NamedTuple):
    """A number of values, and of the terms of their sums."""

    values: int
    terms: int


@dataclass(frozen=True)
class Rows:
    """The row axes of one call: their sizes, and which axis of every argument and result they are."""

    sizes: dict[Key, int]
    arguments: dict[str, dict[int, Key]]
    results: dict[str, dict[int, Key]]
    terms: int = 1  # of the sum that each value is: the largest size that the results lack

    def cut(self, arrays: Arrays, selection: Selection | Slices) -> Arrays:
        """Return arguments, or cotangents, with the selected indices of every row axis alone."""
        return {n: _taken(x, self.arguments.get(n, {}), self.sizes, selection) for n, x in arrays.items()}

    def cut_results(self, arrays: Arrays, selection: Selection | Slices) -> Arrays:
        """Return results with the selected indices of every row axis alone."""
        return {n: _taken(x, self.results.get(n, {}), self.sizes, selection) for n, x in arrays.items()}

    def indices(self, name: str, shape: Sequence[int], selection: Selection) -> tuple[npt.NDArray[np.int64], ...]:
        """Return where the selected part of a result lies in the whole, as an open mesh of its axes."""
        keys = self.results.get(name, {})
        axes = (selection.get(keys[axis]) if axis in keys and size > 1 else None for axis, size in enumerate(shape))
        return np.ix_(*(np.arange(n) if i is None else i for i, n in zip(axes, shape, strict=True)))

    def cost(self, values: int, selection: Selection) -> Budget:
        """Return how many of the `values` of a call are selected, and how many terms their sums have."""
        kept = math.prod(len(selection[key]) / max(size, 1) for key, size in self.sizes.items() if key in selection)
        return Budget(round(kept * values), round(kept * values) * self.terms)


def _taken(
    x: npt.NDArray[Any], keys: Mapping[int, Key], sizes: Mapping[Key, int], selection: Selection | Slices
) -> npt.NDArray[Any]:
    wanted = [(axis, selection[key]) for axis, key in keys.items() if key in selection and x.shape[axis] == sizes[key]]
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
        match = _matched(op, arrays, params, which)
        if match is None:
            continue
        sizes, arguments = match
        placed = {name: _in_result(op, name, shape, which, sizes) for name, shape in results.items()}
        own_of = {name: keys for name, keys in placed.items() if keys is not None}
        if len(own_of) < len(results):
            continue
        everywhere = {k for k in sizes if k[0] in letters and all(k in keys.values() for keys in own_of.values())}
        lacking = [n for k, n in sizes.items() if all(k not in keys.values() for keys in own_of.values())]
        return Rows(
            {k: n for k, n in sizes.items() if k in everywhere},
            {n: {a: k for a, k in keys.items() if k in everywhere} for n, keys in arguments.items()},
            {n: {a: k for a, k in keys.items() if k in everywhere} for n, keys in own_of.items()},
            max([1, *lacking]) if record.sums else 1,
        )
    return Rows({}, {}, {})


def _matched(
    op: str, arrays: Arrays, params: Mapping[str, Any], which: int
) -> tuple[dict[Key, int], dict[str, dict[int, Key]]] | None:
    """Return the sizes of letters, and the letters of the arguments' axes, in one alternative; None if it does not fit."""
    record = REGISTRY[op]
    sizes: dict[Key, int] = {}
    placed: dict[str, dict[int, Key]] = {}
    later: list[tuple[str, int]] = []
    for name, x in arrays.items():
        tokens = _aligned(alternative(op, record.arrays[name].shape, which), x.ndim)
        if tokens is None:
            return None
        placed[name] = {}
        for axis, (token, place) in enumerate(tokens):
            plain, size = token.lstrip("~"), x.shape[axis]
            if not plain.isidentifier():
                later.append((plain, size))
                continue
            placed[name][axis] = (plain, place)
            if not (token.startswith("~") and size == 1) and sizes.setdefault((plain, place), size) != size:
                return None
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
    tokens = _aligned(result_axes(op, name, which), len(shape))
    if tokens is None:
        return None
    result: dict[int, Key] = {}
    for axis, (token, place) in enumerate(tokens):
        plain = token.lstrip("~")
        keys = [k for k in sizes if k == (plain, place) or ("(" in plain and k[0] in names_in(plain))]
        if keys and shape[axis] not in (1, sizes[keys[0]]):
            return None
        if keys:
            result[axis] = keys[0]
    return result


# ---- at which position every value of a result stands ----------------------------------------------------------------------
# At which position every value of a result stands, so that a failure can say from where on. An argument of positions shares
# letters with the axes of the result. Of an argument whose axes the result lacks (one coordinate for each axis of an image) the
# largest counts; where there are several arguments (queries and keys), the farthest.
BANDS = ((0, 64), (64, 4096), (4096, 65536), (65536, None))
Positions = npt.NDArray[np.float64]


def places(op: str, call: Call, output: str) -> Positions | None:
    """Return the absolute position of every value of an output (for a bias or mask the farther of query and key), or None."""
    signed = signed_places(op, call, output)
    return None if signed is None else np.abs(signed)


def signed_places(op: str, call: Call, output: str) -> Positions | None:
    """Return the position of every value of an output, with its sign, as `places` does."""
    if call.cotangents and output != "x":  # of gradients, only those of x stand at its positions
        return None
    shape = call.expected[output].shape
    lined = [p for p in (_along(op, name, call, output) for name in positions_of(op)) if p is not None]
    if not lined:
        return None
    farthest = lined[0]
    for other in lined[1:]:
        farthest = np.where(np.abs(other) > np.abs(farthest), other, farthest)
    return farthest if farthest.shape == shape else np.broadcast_to(farthest, shape)


def _farthest(positions: Positions, axis: int) -> Positions:
    """Return the positions farthest from 0 along an axis; 0 where it is empty."""
    if not positions.shape[axis]:
        return np.zeros(np.delete(positions.shape, axis))
    which = np.expand_dims(np.argmax(np.abs(positions), axis=axis), axis)
    return np.take_along_axis(positions, which, axis).squeeze(axis)


def _along(op: str, name: str, call: Call, output: str) -> Positions | None:
    """Return an argument's positions, lined up with the axes of an output; None where its values do not stand at them."""
    ways = alternatives(REGISTRY[op].arrays[name].shape)
    which = next((i for i, way in enumerate(ways) if any(is_star(axis) for axis in way)), len(ways) - 1)
    tokens, of_input = list(ways[which]), bool(call.cotangents)  # a gradient has the axes of its input
    axes = alternative(op, REGISTRY[op].arrays[output].shape, which) if of_input else result_axes(op, output, which)
    positions = np.asarray(call.inputs[name], dtype=np.float64)
    if tokens and not is_star(tokens[0]) and tokens[0] not in axes:
        positions, tokens = _farthest(positions, 0), tokens[1:]
    if (
        len(tokens) > 1
        and is_star(tokens[0])
        and positions_of(op) == (name,)
        and not any(_same(tokens[-1], axis) for axis in axes)
    ):
        positions, tokens = _farthest(positions, -1), tokens[:-1]  # the coordinates of a point, or the tokens of a row
    if not tokens or not any(_same(tokens[-1], axis) for axis in axes):
        return None
    index: list[slice | None] = []
    for axis, left in zip(reversed(axes), [*reversed(axes[:-1]), ""], strict=True):
        if tokens and _same(tokens[-1], axis):
            if _fixed(axis, tokens[-1].lstrip("~"), positions, call):
                return None
            if is_star(tokens[-1]):
                break
            tokens.pop()
            index.append(slice(None))
        elif tokens and tokens[-1] == "1" and len(tokens) > 1 and _same(tokens[-2], left):
            tokens.pop()
            index.append(slice(None))
        else:
            index.append(None)
    while index and index[-1] is not None:  # axes that are lined up already
        index.pop()
    return positions[(..., *reversed(index))]


def _same(token: str, axis: str) -> bool:
    """Return whether an axis of a result is one of an argument, maybe under a condition."""
    name, axis = token.lstrip("~"), axis.lstrip("~")
    return name == axis or (name.isidentifier() and "(" in axis and name in names_in(axis))


def _fixed(axis: str, name: str, positions: Positions, call: Call) -> bool:
    """Return whether a condition on options makes an axis of the result 1, whatever the argument's size."""
    if axis.lstrip("~") == name or not positions.ndim:
        return False
    size = positions.shape[-1]
    return bool(value_of(axis.lstrip("~"), {**call.params, name: size}) != size)


def in_band(where: Positions, band: tuple[float, float | None]) -> npt.NDArray[Any]:
    """Return which positions lie in a band."""
    low, high = band
    return (where >= low) & (where < (np.inf if high is None else high))


@cache
def size_options(op: str) -> frozenset[str]:
    """Return the options that are the size of an axis, or a factor of one, without a limit: they say how much is computed."""
    record = REGISTRY[op]
    shapes = (*record.result, *(axes.shape for axes in record.arrays.values()))
    axes = {axis.lstrip("~") for shape in shapes if shape[:1] != "=" for way in alternatives(shape) for axis in way}
    named = {name for axis in axes if not is_star(axis) and "+" not in axis for name in names_in(axis)}
    unlimited = {name for name, domain in record.domains.items() if isinstance(domain, Integer) and domain.high is None}
    return frozenset(unlimited & named)
