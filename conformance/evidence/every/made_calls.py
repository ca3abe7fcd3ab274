"""Calls of any operation, made from the registry's axes, for cases that all operations have."""

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY, Axes

from ...calls import bind, makes_constants
from ...vocabulary.axes import alternative, alternatives, arranged, folded, limits, value_of, within
from ..tools.numbers import floats
from .facts import facts_of

Places = Callable[[int], npt.NDArray[Any]]  # positions of a number of tokens

# Sizes by letter.
SIZES: dict[str, Any] = {
    "A": 2, "B": 2, "D": 6, "E": 5, "G": 1, "H": 3, "K": 5, "N": 3, "Q": 4, "R": (), "T": 5, "d": 4, "g": 2, "k": 3, "m": 2,
    "n": 3, "tail": 0,
}  # fmt: skip
NEAR = 2.0**-4  # sixteen units of bfloat16: its roundings do not hide what differs more
FAR = (131072, 1000003, 7, 262143, 131079, 1048575)
FREQUENCIES = (1.0, 0.3984375, 0.1171875, 0.03125, 0.013671875, 0.00390625)


def spread(count: int) -> npt.NDArray[Any]:
    """Return positions in no order, with a repeat and a gap, below 3 more than twice as many."""
    p = (np.arange(count) * 7 + 3) % max(2 * count + 1, 3)
    if count > 3:
        p[2] = p[1]
    return p


def shifted(start: int) -> Places:
    """Return what gives consecutive positions from `start` on."""
    return lambda count: np.arange(start, start + count)


def far(count: int) -> npt.NDArray[Any]:
    """Return positions beyond 2**17, with one near."""
    return np.asarray([FAR[i % len(FAR)] + i // len(FAR) for i in range(count)])


def triangular(step: int = 1) -> Places:
    """Return what gives positions 0, 1, 3, 6, ..., between which the differences are all others, times a step."""
    return lambda count: np.arange(count) * (np.arange(count) + 1) // 2 * step


def call(
    op: str, name: str, params: Mapping[str, Any] | None = None, *, places: Places = spread, way: int | None = None,
    rows: bool = False, shared: bool = False, alike: bool = False, without: tuple[str, ...] = (), last: bool = False,
    bits: int = 8, **sizes: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """
    Return options and arrays of a call, its numbers being the case's own.

    `way` is the alternative of the registry's axes, by default the first one with tokens. With `rows` positions have the
    leading axes too; with `shared` parameters have none that they may lack; with `alike` nothing changes along the first of the
    axes ``*R``. With `last` the queries stand at the last keys. Optional arrays are left out if they are named in `without`.
    The axes' sizes go by their letters.
    """
    options = facts_of(op).options if params is None else dict(params)
    known = {**SIZES, **facts_of(op).sizes, **options, **sizes}
    known.setdefault("P", (*known["R"], known["T"]))
    known["after"] = max(known["K"] - known["Q"], 0) if last else 2  # how far queries stand behind keys
    which = usual_way(op) if way is None else way
    arrays: dict[str, Any] = {}
    for argument, axes in REGISTRY[op].arrays.items():
        if axes.optional and argument in without:
            continue
        same = axes.shape.startswith("=")
        like = REGISTRY[op].arrays[axes.shape[1:]] if same else axes  # its axes are another argument's
        if same:
            arrays[argument] = _numbers(op, name, argument, arrays[axes.shape[1:]].shape, known, bits)
        else:
            arrays[argument] = _array(op, name, argument, axes, which, known, places, rows, shared, bits)
        if alike and known["R"]:
            arrays[argument] = _alike(arrays[argument], like, which, known)
    return options, arrays


def usual_way(op: str) -> int:
    """Return the alternative of the axes that a call has: the first one with tokens, unless the operation says another."""
    way = facts_of(op).way
    return int(any("*R" in axes.shape and "|" in axes.shape for axes in REGISTRY[op].arrays.values())) if way is None else way


def way_by_rows(op: str) -> int | None:
    """Return the first alternative with leading axes in every array that may have them; None if there is only one."""
    ways = [alternatives(axes.shape.replace("~", "")) for axes in REGISTRY[op].arrays.values() if "*R" in axes.shape]
    if not ways or len(ways[0]) == 1:
        return None
    return next((k for k in range(len(ways[0])) if all("*R" in way[min(k, len(way) - 1)] for way in ways)), None)


def letters(op: str, way: int | None = None) -> set[str]:
    """Return the letters of the axes of all arrays of an operation, of one alternative or of all."""
    shapes = [axes.shape for axes in REGISTRY[op].arrays.values() if not axes.shape.startswith("=")]  # another's axes
    ways = [alternatives(shape.replace("~", "")) for shape in shapes]
    chosen = (each if way is None else [each[min(way, len(each) - 1)]] for each in ways)
    return {letter for each in chosen for axes in each for letter in axes}


def is_bounded(op: str) -> bool:
    """Return whether positions have a smallest or a largest value, as rows of a table do."""
    ends = [axes for axes in REGISTRY[op].arrays.values() if axes.kind in ("position", "integer")]
    beside = [axes for axes in ends if not axes.index] or ends  # rows of a table are no positions, if there are others
    return any((axes.low, axes.high) != (None, None) for axes in beside)


def has_coordinates(op: str, argument: str | None = None) -> bool:
    """Return whether the first axis of positions, of one argument or of any, is that of the coordinates."""
    firsts = (
        axes.shape.split()[:1]
        for name, axes in REGISTRY[op].arrays.items()
        if axes.kind in ("position", "integer") and argument in (None, name)
    )
    return any(first and (first[0] in ("A", "2") or first[0].startswith("len(")) for first in firsts)


def has_one_position(op: str) -> bool:
    """Return whether an operation is called with one position at a time."""
    return facts_of(op).sizes.get("P") == ()


def _array(
    op: str, name: str, argument: str, axes: Axes, which: int, known: Mapping[str, Any], places: Places, rows: bool,
    shared: bool, bits: int,
) -> npt.NDArray[Any]:  # fmt: skip
    """Return one array of a call."""
    tokens = alternative(op, axes.shape, which)
    if axes.kind in ("position", "integer"):
        return _positions(op, argument, tokens, known, places, rows)
    shape = shape_of(tokens, known, rows=not shared)
    if axes.kind == "mask":
        return np.asarray(np.indices(shape).sum(axis=0) % 3 != 1)
    return _numbers(op, name, argument, shape, known, bits)


def results_of(op: str, arrays: Mapping[str, Any], params: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
    """Return what the definition gives in NumPy, not far from the truth; its errors are those of the call."""
    positional, keywords = bind(op, arrays, params)
    with np.errstate(all="ignore"):
        results = REGISTRY[op].function(*positional, **keywords, **({"xp": np} if makes_constants(op) else {}))
    return [np.asarray(x) for x in (results if isinstance(results, tuple) else (results,))]


def answers(op: str, arrays: Mapping[str, Any], params: Mapping[str, Any]) -> list[npt.NDArray[Any]]:
    """Return the results of a call, none where the definition refuses it or float32 does not hold one."""
    try:
        results = results_of(op, arrays, params)
    except (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError):
        return []
    with np.errstate(over="ignore"):
        return results if all(np.all(np.isfinite(x.astype(np.float32))) for x in results if x.dtype.kind == "f") else []


def differ(op: str, params: Mapping[str, Any], arrays: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Return whether results with other arrays differ so much that half precision shows it."""
    pairs = zip(results_of(op, arrays, params), results_of(op, others, params), strict=True)
    return any(not np.allclose(x, y, rtol=NEAR, atol=NEAR * np.max(np.abs(x), initial=0)) for x, y in pairs)


def shape_of(tokens: list[str], known: Mapping[str, Any], *, rows: bool) -> tuple[int, ...]:
    """Return the shape that axes have; leading ones that may be missing are left out without `rows`."""
    shape: list[int] = []
    for token in tokens:
        axis = token.lstrip("~")
        if axis.startswith("*"):
            leading = known.get(axis[1:], ())
            leading = leading if isinstance(leading, tuple) else known["R"]  # B is also the letter of a single axis
            shape += leading if rows or not token.startswith("~") else ()
        else:
            shape.append(int(value_of(axis, known)))
    return tuple(shape)


def _positions(
    op: str, argument: str, tokens: list[str], known: Mapping[str, Any], places: Places, rows: bool
) -> npt.NDArray[Any]:
    """Return positions: those of queries after those of keys, of every axis and row others."""
    shape = shape_of(tokens, known, rows=rows)
    if not shape:
        return np.asarray(places(1)[0])
    coordinates = has_coordinates(op, argument)
    p = places(shape[-1])
    if REGISTRY[op].arrays[argument].kind == "integer":
        p = p.astype(np.int64)  # positions beside it may have fractions
    positions = np.empty(shape, dtype=p.dtype)
    for number, index in enumerate(np.ndindex(shape[:-1])):
        positions[index] = np.roll(p, index[0]) + number if coordinates and index else p + 3 * number
    if argument == "q_positions":
        positions = positions + positions.dtype.type(known["after"])
    if argument == "relative_positions":
        positions = positions * (1 - 2 * (np.arange(positions.shape[-1]) % 2))
    axes = REGISTRY[op].arrays[argument]
    low, high = limits(axes, known)
    behind = (
        -(-positions % -low) if low is not None and low < 0 else positions
    )  # of negative positions, where there may be some
    inside = positions if high is None else positions % high if high > 0 else np.minimum(positions, positions.dtype.type(high))
    positions = np.where(positions < 0, behind, inside).astype(positions.dtype)
    positions = positions if low is None else np.maximum(positions, low)
    return arranged(positions, axes)


def _numbers(
    op: str, name: str, argument: str, shape: tuple[int, ...], known: Mapping[str, Any], bits: int
) -> npt.NDArray[Any]:
    """Return reals of a call, within the domain that the registry states, and never their own mirror image."""
    axes = REGISTRY[op].arrays[argument]
    if argument == "inv_freq":
        return np.asarray((FREQUENCIES * (1 + shape[-1] // 6))[: shape[-1]])
    low, high = axes.usual
    seed = crc32(f"{op}/{name}/{argument}".encode())

    def drawn(seed: int) -> npt.NDArray[Any]:
        numbers = floats(*shape, seed=seed, bits=bits) * (max(-low, high) / 4)
        return within(numbers if low == -high else folded(numbers, low, high), axes, known, bits)

    numbers = drawn(seed)
    flat = numbers.ravel()
    return drawn(seed + 1) if flat.size > 2 and np.array_equal(flat, flat[::-1]) else numbers


def _alike(array: npt.NDArray[Any], axes: Axes, which: int, known: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return an array that does not change along the first of the leading axes."""
    ways = alternatives(axes.shape)
    tokens = [token.lstrip("~") for token in ways[min(which, len(ways) - 1)]]
    star = next((k for k, token in enumerate(tokens) if token in ("*R", "*B", "*P", "G")), None)
    if star is None or array.ndim <= star or array.shape[star] not in (known["R"][0], known["G"]):
        return array
    return np.broadcast_to(np.take(array, [0], axis=star), array.shape).copy()
