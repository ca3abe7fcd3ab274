"""Calls of any operation, made from the axes that the registry states: for cases that every operation is asked alike."""

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY, Axes

from ..evidence.order import evidence_of
from ..evidence.tools.numbers import floats
from ..suite.axes import alternatives, in_order, value_of

Places = Callable[[int], npt.NDArray[Any]]  # positions of a number of tokens

USUAL: dict[str, dict[str, Any]] = {  # options of an operation where nothing else is said
    op: evidence_of(op).USUAL for op in REGISTRY if hasattr(evidence_of(op), "USUAL")
}
# Sizes by letter. Some differ by operation: lanes that a block fills, buckets of a table, keys of a window.
SIZES: dict[str, Any] = {
    "A": 2, "B": 2, "D": 6, "E": 5, "G": 1, "H": 3, "K": 5, "N": 3, "Q": 4, "R": (), "T": 5, "d": 4, "g": 2, "k": 3, "m": 2,
    "n": 3, "tail": 0,
}  # fmt: skip
FREQUENCIES = (1.0, 0.3984375, 0.1171875, 0.03125, 0.013671875, 0.00390625)
SCALE = {"skew": 8, "generators": 8, "coefficients": 8, "frequencies": 4, "weights": 4, "q": 4, "cos": 4, "sin": 4}


def spread(count: int) -> npt.NDArray[Any]:
    """Return positions in no order, with a repeat and a gap, below 3 more than twice as many."""
    p = (np.arange(count) * 7 + 3) % max(2 * count + 1, 3)
    if count > 3:
        p[2] = p[1]
    return p


def shifted(start: int) -> Places:
    """Return what gives consecutive positions from `start` on."""
    return lambda count: np.arange(start, start + count)


def call(
    op: str, name: str, params: Mapping[str, Any] | None = None, *, places: Places = spread, way: int | None = None,
    rows: bool = False, alike: bool = False, without: tuple[str, ...] = (), far: bool = False, bits: int = 8, **sizes: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """
    Return options and arrays of a call, its numbers being the case's own.

    `way` is the alternative of the registry's axes, by default the first one with tokens. With `rows` positions have the
    leading axes too; with `alike` nothing changes along the first of the axes ``*R``. Optional arrays are left out if they are
    named in `without`. The axes' sizes go by their letters.
    """
    options = USUAL[op] if params is None else dict(params)
    known = {**SIZES, **getattr(evidence_of(op), "SIZES", {}), **options, **sizes}
    known.setdefault("P", (*known["R"], known["T"]))
    usual = 1 if "R" in _letters(op) or "rope" in op else 0
    which = getattr(evidence_of(op), "WAY", usual) if way is None else way
    arrays: dict[str, Any] = {}
    for argument, axes in REGISTRY[op].arrays.items():
        if axes.optional and argument in without:
            continue
        same = axes.shape.startswith("=")
        like = REGISTRY[op].arrays[axes.shape[1:]] if same else axes  # its axes are another argument's
        if same:
            arrays[argument] = _numbers(op, name, argument, arrays[axes.shape[1:]].shape, bits)
        else:
            arrays[argument] = _array(op, name, argument, axes, which, known, places, rows, bits)
        if alike and known["R"]:
            arrays[argument] = _alike(arrays[argument], like, which, known)
    return options, arrays


def reads_rows(op: str) -> bool:
    """Return whether positions are rows of a table that an operation is given: none may lie outside."""
    return any(axes.high is not None for axes in REGISTRY[op].arrays.values())


def _letters(op: str) -> str:
    """Return the letters of an operation's axes whose first alternative has no leading axes."""
    return " ".join("R" for axes in REGISTRY[op].arrays.values() if "*R" in axes.shape and "|" in axes.shape)


def _array(
    op: str, name: str, argument: str, axes: Axes, which: int, known: Mapping[str, Any], places: Places, rows: bool, bits: int
) -> npt.NDArray[Any]:
    """Return one array of a call."""
    ways = alternatives(axes.shape)
    tokens = ways[min(which, len(ways) - 1)]
    if axes.kind in ("position", "integer"):
        return _positions(op, argument, tokens, known, places, rows)
    shape = _shape(tokens, known, rows=True)
    if axes.kind == "mask":
        return np.asarray(np.indices(shape).sum(axis=0) % 3 != 1)
    return _numbers(op, name, argument, shape, bits)


def _shape(tokens: list[str], known: Mapping[str, Any], *, rows: bool) -> tuple[int, ...]:
    """Return the shape that axes have; leading ones that may be missing are left out without `rows`."""
    found: list[int] = []
    for token in tokens:
        axis = token.lstrip("~")
        if axis.startswith("*"):
            found += known.get(axis[1:], ()) if rows or not token.startswith("~") else ()
        else:
            found.append(int(value_of(axis, known)))
    return tuple(found)


def _positions(
    op: str, argument: str, tokens: list[str], known: Mapping[str, Any], places: Places, rows: bool
) -> npt.NDArray[Any]:
    """Return positions: those of queries after those of keys, of every axis and row others."""
    shape = _shape(tokens, {**known, "B": known["R"] if "*B" in " ".join(tokens) else known["B"]}, rows=rows)
    if not shape:
        return np.asarray(places(1)[0])
    coordinates = tokens[0] in ("A", "2", "len(dims)", "len(sections)", "len(widths)")
    p = places(shape[-1])
    found = np.empty(shape, dtype=p.dtype)
    for number, index in enumerate(np.ndindex(shape[:-1])):
        found[index] = np.roll(p, index[0]) + number if coordinates and index else p + 3 * number
    if argument == "q_positions":
        found = found + found.dtype.type(2)
    if argument == "relative_positions":
        found = found * (1 - 2 * (np.arange(found.shape[-1]) % 2))
    axes = REGISTRY[op].arrays[argument]
    if axes.high is not None:
        found = found % value_of(axes.high, known)
    return in_order(found) if axes.ordered else found


def _numbers(op: str, name: str, argument: str, shape: tuple[int, ...], bits: int) -> npt.NDArray[Any]:
    """Return reals of a call."""
    if argument == "inv_freq":
        return np.asarray((FREQUENCIES * (1 + shape[-1] // 6))[: shape[-1]])
    found = floats(*shape, seed=crc32(f"{op}/{name}/{argument}".encode()), bits=bits) / SCALE.get(argument, 2)
    return np.abs(found) if argument == "weights" and op == "rotated_values" else found


def _alike(array: npt.NDArray[Any], axes: Axes, which: int, known: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return an array that does not change along the first of the leading axes."""
    ways = alternatives(axes.shape)
    tokens = [token.lstrip("~") for token in ways[min(which, len(ways) - 1)]]
    star = next((k for k, token in enumerate(tokens) if token in ("*R", "*B", "*P", "G")), None)
    if star is None or array.ndim <= star or array.shape[star] not in (known["R"][0], known["G"]):
        return array
    return np.broadcast_to(np.take(array, [0], axis=star), array.shape).copy()
