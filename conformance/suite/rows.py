"""
Rows of a call: parts of its arguments that give the same part of its results, so that a few stand for a large call.

The registry names the letters (`posref.spec.encoding`, `rows`). Along such an axis every index stands for itself: cut
out of all arguments that have it, it is cut out of every result, and no bit of that changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..model import Arrays
from .axes import alternatives, holds, is_star, names_in, result_axes, value_of

Key = tuple[str, int]  # a letter, and for one that stands for several axes which of them, counted from the last
Selection = Mapping[Key, npt.NDArray[np.int64]]
Slices = Mapping[Key, slice]


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
