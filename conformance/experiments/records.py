"""
A call as a record of features, and the call that has the features of a record.

The features come from the registry: the value of every option, the size of every axis by its letter, the leading axes, which
alternative of the axes, the form and the start of positions, how queries lie to keys, whether rows differ, how the memory
lies, how many bits reals have, and which optional arrays there are. `read` describes a call, `make` makes one; a call that
was made has the features of its record, and numbers of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.scaling import Scaling
from posref.spec import REGISTRY, Flag, Integer, Integers, OneOf, Real, Record

from ..calls import broadcast_axes, positions_of
from ..evidence.every.facts import facts_of
from ..evidence.every.made_calls import SIZES, has_coordinates, is_bounded, usual_way
from ..evidence.every.made_calls import call as made_call
from ..model import VIEWS, Call
from ..vocabulary.axes import alternative, alternatives, meets, names_in, result_axes, value_of
from ..vocabulary.traits import (
    LETTERS,
    are_unit,
    are_whole,
    defaults,
    is_grid,
    last_cells,
    letters,
    main_array,
    marked,
    tokens_first,
    vocabulary,
    which_alternative,
)  # fmt: skip

Features = dict[str, Any]
FORMS = ("consecutive", "gaps", "unsorted", "fractional")
GRID, WHOLE = "grid", "whole"  # forms too: coordinates of a grid, row by row, and all positions that options allow
QUERIES = ("last", "first", "beyond")  # the last of the keys, from the first key on, or after the last key
NUMBERS = (*range(1, 10), 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 128, 129, 192, 256, 257, 512, 1030)
STARTS = (0, 1, 29, 1000, 2**15, 40_000, 2**16 - 1, 2**16 + 1, 70_000, 2**17 - 1, 2**24 + 1, -11)
FARTHER = (2**31 - 1, 2**31, 2**33 + 1)  # in float64 alone: else every value is allowed there
LEADING = ((), (1,), (2,), (3, 2), (2, 1, 2), (5, 3), (1, 6), (2, 8), (1, 33))
MOST = {"I": 33, "J": 33, "k": 9, "A": 3, "m": 9, "B": 9, "g": 9, "G": 9}  # of sizes by letter
BLIND = "a query without keys"  # of a mask
ORDERS = ("heads first", "tokens first")
AFTER = 2  # how far the queries of a call that is made stand behind its keys
LARGEST = 1 << 18  # numbers of a call's arguments
WORDS = {**LETTERS, "D": "head size", "H": "heads", "tail": "channels that do not rotate", "I": "rows of the grid",
         "J": "columns of the grid", "G": "key heads", "g": "GQA group size", "k": "taps",
         "A": "coordinates", "n": "pairs"}  # fmt: skip


@cache
def word_of(op: str, letter: str) -> str:
    """Return the word for the axis of a letter: H beside W is a height, and E that is added are channels behind others."""
    shapes = " ".join(axes.shape for axes in REGISTRY[op].arrays.values())
    if "H W" in shapes and letter in "HW":
        return WORDS["I"] if letter == "H" else WORDS["J"]
    if letter == "K" and "bands" in REGISTRY[op].arrays:
        return "bands"
    if letter == "E" and "+E" in shapes:
        return WORDS["tail"]
    of_matrix = letter == "n" and ("n n" in shapes or "n*" in shapes)  # the sides of a matrix, and blocks, are no pairs
    having = {
        name: axes.shape for name, axes in REGISTRY[op].arrays.items() if re.search(rf"\b{re.escape(letter)}\b", axes.shape)
    }
    known = "" if of_matrix else WORDS.get(letter)
    rows = (f"{name} rows" for name, shape in having.items() if letter == "N" and not shape.endswith(letter))
    return known or next(rows, None) or next((f"axis {letter} of {name}" for name in having), letter)


def is_number(value: Any) -> bool:
    """Return whether a value is an int or a float, and no flag."""
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---- every value that a feature may have ----------------------------------------------------------------------------------
def domains(op: str, records: Sequence[Features] = ()) -> dict[str, list[Any]]:
    """Return the values that every feature of an operation's calls may have, the usual one first, those of `records` too."""
    record, facts = REGISTRY[op], facts_of(op)
    usual = {n: tuple(v) if isinstance(v, list) else v for n, v in {**defaults(op), **facts.options}.items()}
    values: dict[str, list[Any]] = {"way": [usual_way(op)]}
    for name, domain in record.domains.items():
        default = [defaults(op)[name]] if is_number(defaults(op).get(name)) else []
        values[f"option {name}"] = _with(usual.get(name), [*_options(domain, usual.get(name)), *default])
    tokens = [axis.lstrip("~") for axes in record.arrays.values() for way in alternatives(axes.shape) for axis in way]
    named = {n for axis in tokens if not axis.startswith(("*", "=")) for n in names_in(axis)} - {*record.domains}
    named |= {"T"} if "*P" in tokens else set()
    for name in sorted(named):
        sizes = [n for n in NUMBERS if n <= MOST.get(name, n)]
        values[f"size {name}"] = _with({**SIZES, **facts.sizes}.get(name, 2), [0, *sizes] if name in ("tail", "E") else sizes)
    if any(axis.startswith("*") for axis in tokens):
        values["leading axes"] = list(LEADING)
    places = positions_of(op)
    if places or any(_may_lack_rows(op, name, 1) for name in record.arrays):
        values["rows"] = ["alike", "of their own", *(["shared"] if any(_may_share(op, name) for name in places) else [])]
    if places:
        whole = any(record.arrays[name].kind != "position" for name in places)
        values["form"] = [*(FORMS[:-1] if whole else FORMS), *([WHOLE] if last_cells(op) else [])]
        values["form"] += [GRID] if has_coordinates(op) and not is_bounded(op) else []
        values["start"] = [0] if is_bounded(op) else list(STARTS)
    if has_order(op):
        values["order"] = list(ORDERS)
    if has_coordinates(op):
        values["coordinates"] = ["unlike", "alike"]
    if {"q_positions", "k_positions"} <= {*places} and not is_bounded(op):
        values["queries"] = list(QUERIES)
    if "mask" in record.arrays and record.arrays["mask"].shape.endswith("~Q ~K"):
        values["mask"] = ["scattered", "causal", BLIND]
    if "bands" in record.arrays:
        values["bands"] = ["other", "powers of two"]
    if {"cos", "sin"} <= record.arrays.keys():
        values["circle"] = ["off", "on"]
    if marked(op):
        values["marks"] = ["none", "some"]
    if tokens:
        values |= {"memory": ["", *VIEWS], "bits": [8, 24]}
    values |= {f"array {name}": [True, False] for name, axes in record.arrays.items() if axes.optional}
    for one in records:
        for name in values.keys() & one.keys():
            values[name] = _with(values[name][0], [*values[name][1:], one[name]])
    for name in (f"option {n}" for n, domain in record.domains.items() if isinstance(domain, Record)):
        first = {type(value): value for value in reversed(values[name]) if isinstance(value, Scaling)}
        values[name] = _with(values[name][0], [*values[name][1:], *(other for one in first.values() for other in _beside(one))])
    lists = [name for name, domain in record.domains.items() if isinstance(domain, Integers)]
    return values | {
        (name := f"option {n}"): _with(values[name][0], [*values[name][1:], *_lists(values[name][0])]) for n in lists
    }


def _lists(usual: Any) -> list[tuple[int, ...]]:
    """Return lists like another: in the other order, with equal entries, larger ones, one more, or one less."""
    if not isinstance(usual, tuple) or not usual:
        return []
    first, *rest = usual
    more = tuple(2 * n for n in usual)
    return [
        usual[::-1], (first,) * len(usual), (usual[-1],) * len(usual), more, (2 * first, *rest), (*usual[:-1], 2 * usual[-1]),
        (*more[:1], *usual[1:-1], *more[-1:]), (*usual, first), (*usual, usual[-1]), (first,) * 2, (first, 2 * first),
        (2 * first, first), (first, *more[1:]), (3 * first,) * len(usual), (4 * first, *rest), (first + 2, *rest),
        (first + 4, *rest), (first + 2,) * len(usual), (first,), (2 * first,),
    ]  # fmt: skip


def _beside(value: Scaling) -> Iterator[Scaling]:
    """Yield scalings like another, with one of its numbers larger, and no longer whole."""
    for name, number in vars(value).items():
        for other in (
            (2 * number, 3 * number, *((number + 0.5, number + 1) if type(number) is float else ()))
            if is_number(number)
            else ()
        ):
            with suppress(ValueError, TypeError):  # there is no such scaling
                yield replace(value, **{name: other})


def _options(domain: Any, usual: Any) -> list[Any]:
    """Return values of an option; of records and lists there are those that calls have."""
    match domain:
        case OneOf():
            return list(domain.words)
        case Flag():
            return [False, True]
        case Record():
            return [None]
        case Real():
            few = [domain.usual[0], usual * 50] if is_number(usual) else [domain.usual[0], domain.usual[1]]
            return [*few, *([None] if domain.optional else ())]
        case Integer():
            high = math.inf if domain.high is None else domain.high
            numbers = [n for n in (domain.low, *NUMBERS) if domain.low <= n <= high and n % domain.step == 0]
            return [*([None] if domain.optional else ()), *numbers]
    return []


def _with(usual: Any, values: Iterable[Any]) -> list[Any]:
    """Return values without repeats, the usual one first."""
    return list({repr(value): value for value in (usual, *values)}.values())


# ---- a call as a record ---------------------------------------------------------------------------------------------------
@np.errstate(all="ignore")
def read(op: str, call: Call, form: str = "") -> Features:
    """Return the features of a call, as near as a record comes to it."""
    if tokens_first(op, call):
        return read(op, exchanged(op, call), form) | {"order": ORDERS[1]}
    record = REGISTRY[op]
    features: Features = {"way": which_alternative(op, call)} | options_and_sizes(op, call)
    loose = [name for name in call.inputs if _may_lack_rows(op, name, features["way"])]
    tokens = {name: alternative(op, record.arrays[name].shape, features["way"]) for name in loose}
    full = [
        name for name, axes in tokens.items() if call.inputs[name].ndim >= len(axes) - 1 + len(features["leading axes"] or ())
    ]
    features["rows"] = "of their own" if full and features["leading axes"] else "alike"
    features |= _positions(op, call, features["way"])
    features |= {"order": ORDERS[0]} if has_order(op) else {}
    if "mask" in call.inputs:
        mask = call.inputs["mask"]
        causal = mask.ndim > 1 and np.all(mask == np.tril(np.ones_like(mask), mask.shape[-1] - mask.shape[-2]))
        features["mask"] = "causal" if causal else BLIND if mask.size and not mask.any(-1).all() else "scattered"
    if "bands" in call.inputs:
        bands = call.inputs["bands"]
        powers = bands.ndim == 1 and np.array_equal(bands, 2.0 ** np.arange(bands.size))
        features["bands"] = "powers of two" if powers else "other"
    if {"cos", "sin"} <= call.inputs.keys():
        features["circle"] = "on" if are_unit(call) else "off"
    if marked(op):
        features["marks"] = "some" if np.any(call.inputs[marked(op)] < 0) else "none"
    is_view = form in VIEWS and (form != "broadcast-view" or any(map(broadcast_axes, call.inputs.values())))
    features["memory"] = form if is_view else ""
    reals = [x for name, x in call.inputs.items() if record.arrays[name].kind == "real" and x.size]
    features["bits"] = 24 if any(np.any(x.astype(np.float32) * 2.0**12 % 1 != 0) for x in reals) else 8
    features |= {f"array {name}": name in call.inputs for name, axes in record.arrays.items() if axes.optional}
    return features


def options_and_sizes(op: str, call: Call) -> Features:
    """Return those features of a call that are its options and the sizes of its axes."""
    options = {name: call.params.get(name, defaults(op).get(name)) for name in REGISTRY[op].domains}
    sizes = _sizes(op, call, options)
    features: Features = {f"option {name}": tuple(v) if isinstance(v, list) else v for name, v in options.items()}
    features |= {f"size {name}": size for name, size in sizes.items() if not isinstance(size, tuple)}
    features["leading axes"] = next((size for size in sizes.values() if not isinstance(size, int)), ())
    return features


def _sizes(op: str, call: Call, options: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the sizes of axes by letter, those of several leading axes as a tuple; expressions are solved for a letter.

    Where all axes are leading ones, the last is that of the tokens; without any the leading axes are None.
    """
    known: dict[str, Any] = {}
    expressions: list[tuple[str, int]] = []
    for sizes in letters(op, call).values():
        for axis, size in sizes.items():
            if axis.startswith("*"):
                leading = size if axis != "*P" else size[:-1] if size else None
                known["R"] = leading if len(leading or ()) >= len(known.get("R") or ()) else known["R"]
                known |= {"T": size[-1]} if axis == "*P" and size else {}
            elif axis.isidentifier():
                known[axis] = max(size[0], known.get(axis, 0))
            else:
                expressions.append((axis.rstrip("'"), size[0]))
    for axis, count in expressions:
        left = names_in(axis) - known.keys() - options.keys()
        if len(left) == 1:
            [name] = left
            solved = [n for n in range(count + 1) if value_of(axis, {**options, **known, name: n}) == count]
            known |= {name: solved[0]} if solved else {}
    return {name: size for name, size in known.items() if name not in options}


def _positions(op: str, call: Call, way: int) -> Features:
    """Return the form and the start of positions, whether rows and coordinates differ, and how queries lie to keys."""
    positions = {name: np.asarray(call.inputs[name]) for name in positions_of(op) if name in call.inputs}
    record: Features = {}
    keys = positions.get("k_positions", next(iter(positions.values()), np.empty(0)))
    if not keys.size:
        return record
    name = "k_positions" if "k_positions" in positions else next(iter(positions))
    behind = alternative(op, REGISTRY[op].arrays[name].shape, way)[-1:] == ["1"]  # an axis for heads, behind that of tokens
    keys = keys[..., 0] if behind and keys.ndim > 1 else keys
    first = keys.reshape(-1, keys.shape[-1])[0] if keys.ndim else keys.reshape(1)
    steps = np.diff(first)
    sorted_form = "consecutive" if np.all(steps == 1) else "gaps" if np.all(steps > 0) else "unsorted"
    record["form"] = "fractional" if np.any(keys != np.floor(keys)) else WHOLE if are_whole(op, call) else sorted_form
    record["start"] = int(np.floor(first.min()))
    rows, axes = keys.reshape(-1, keys.shape[-1]) if keys.ndim > 1 else keys.reshape(1, -1), keys.ndim - 1
    if has_coordinates(op):
        record["coordinates"] = "unlike" if np.any(keys != keys[:1]) else "alike"
        rows, axes = np.moveaxis(keys, 0, -1).reshape(-1, *keys.shape[-1:][: keys.ndim - 1], keys.shape[0]), keys.ndim - 2
        if np.any(rows[0] != rows[0][..., :1]) and is_grid(rows[0].T):  # one token at 0 is no grid yet
            record["form"] = GRID
    has_axes = axes > 0 and _may_share(op, name, way)
    record["rows"] = "of their own" if np.any(rows != rows[:1]) else "shared" if has_axes else "alike"
    if {"q_positions", "k_positions"} <= positions.keys() and positions["q_positions"].size:
        q, k = (positions[name].reshape(-1, positions[name].shape[-1])[0] for name in ("q_positions", "k_positions"))
        last = len(q) <= len(k) and np.array_equal(q, k[len(k) - len(q) :])
        record["queries"] = "last" if last else "beyond" if q.min() > k.max() else "first"
    return record


# ---- a record as a call ---------------------------------------------------------------------------------------------------
@np.errstate(all="ignore")
def make(op: str, record: Features, number: int = 0) -> Call | None:
    """
    Return a call that has the features of a record, its numbers drawn by `number`; None where there is no such call.

    What is expected is left out.
    """
    if record.get("order") == ORDERS[1]:
        plain = make(op, {**record, "order": ORDERS[0]}, number)
        has_heads = plain is not None and plain.inputs[main_array(op) or ""].ndim > 2 and not tokens_first(op, plain)
        call = exchanged(op, plain) if plain is not None and has_heads else None
        return call if call is not None and tokens_first(op, call) else None
    options, sizes = part(record, "option "), dict[str, Any](sizes_in(op, record))
    leading = record.get("leading axes", ()) or ()
    sizes["P"] = (*leading, sizes.get("T", 1)) if record.get("leading axes", ()) is not None else ()
    known = {**SIZES, **facts_of(op).sizes, **defaults(op), **options, **sizes, "R": leading}
    letters_of = [letters_in([*axes]) - {"tail", "E", *options} for axes in tokens_of(op, record["way"])]
    count = max((math.prod(n for name, n in sizes.items() if name in some) for some in letters_of), default=1)
    try:
        arguments = count_of_values(op, record, tokens_of(op, record["way"]))
        if max(count, arguments) * math.prod(leading) > LARGEST or not meets(REGISTRY[op], known):
            return None
        params, arrays = made_call(
            op, f"asked/{number}", options, places=lambda n: _places(n, record), way=record["way"],
            rows=record.get("rows") in ("of their own", "shared"), bits=record.get("bits", 8),
            alike=record.get("memory") == "broadcast-view",
            without=tuple(name for name, there in part(record, "array ").items() if not there), **{**sizes, "R": leading},
        )  # fmt: skip
        if "queries" in record and {"q_positions", "k_positions"} <= arrays.keys():
            arrays["q_positions"] = _queries(record["queries"], arrays["q_positions"], arrays["k_positions"])
        elif "q_positions" in arrays and "k_positions" not in arrays:
            arrays["q_positions"] = arrays["q_positions"] - AFTER
        if record.get("form") == GRID:
            arrays |= {n: _grid(arrays[n], record) for n in positions_of(op)}
        if record.get("form") == WHOLE:
            whole = {n: np.arange(value_of(end, known) + 1) for n, end in last_cells(op).items()}
            arrays |= {n: np.broadcast_to(cells, arrays[n].shape).copy() for n, cells in whole.items()}
        if "marks" in record:
            arrays[marked(op)] = _with_marks(arrays[marked(op)], record["marks"])
        if record.get("rows") in ("alike", "shared") and leading:
            loose = [name for name in arrays if _may_lack_rows(op, name, record["way"])]
            arrays |= {name: arrays[name][(0,) * len(leading)] for name in loose}
            first = (*([slice(None)] if has_coordinates(op) else []), *([slice(1)] * len(leading)))
            full = [n for n in positions_of(op) if arrays[n].ndim == len(first) + 1 and 0 not in leading]
            arrays |= {n: np.broadcast_to(arrays[n][first], arrays[n].shape).copy() for n in full}
        if record.get("coordinates") == "alike":
            arrays |= {n: np.broadcast_to(arrays[n][:1], arrays[n].shape).copy() for n in positions_of(op) if arrays[n].ndim}
        if record.get("mask") == "causal" and "mask" in arrays:
            arrays["mask"] = np.tril(np.ones_like(arrays["mask"]), arrays["mask"].shape[-1] - arrays["mask"].shape[-2])
        if record.get("mask") in ("scattered", BLIND) and "mask" in arrays:
            blind = np.arange(arrays["mask"].shape[-2])[:, None] == 0 if record["mask"] == BLIND else False
            arrays["mask"] = (arrays["mask"] | ~arrays["mask"].any(-1, keepdims=True)) & ~np.asarray(blind)
        if record.get("bands") == "powers of two":
            arrays["bands"] = np.broadcast_to(2.0 ** np.arange(arrays["bands"].shape[-1]), arrays["bands"].shape).copy()
        if record.get("circle") == "on":
            angles = np.arctan2(arrays["sin"], arrays["cos"])
            arrays |= {"cos": np.float64(np.float32(np.cos(angles))), "sin": np.float64(np.float32(np.sin(angles)))}
        inputs = {name: np.asarray(array) for name, array in arrays.items()}
        params = {name: value for name, value in params.items() if name in REGISTRY[op].domains and _is_told(op, name, value)}
    except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError):  # no such call
        return None
    call = Call(params, inputs)
    wraps = is_bounded(op) and _positions(op, call, record["way"]).get("form", FORMS[0]) != FORMS[0]  # at the end of a table
    is_made = sum(x.size for x in inputs.values()) <= LARGEST and not (record.get("form") == FORMS[0] and wraps)
    return call if is_made else None


def has_order(op: str) -> bool:
    """Return whether calls of an operation may have tokens before heads."""
    return bool(vocabulary(op).get("tokens_before_heads"))


def exchanged(op: str, call: Call) -> Call:
    """Return a call with the axes of tokens and heads in the other order; all heads have the positions of the first."""
    inputs, behind = dict(call.inputs), tokens_first(op, call)
    for name in {main_array(op) or "", "positions", "cos", "sin"} & inputs.keys():
        array = inputs[name][..., None] if name == "positions" else inputs[name]
        array = np.swapaxes(array if array.ndim > 2 else array[None], -3, -2)
        if name != main_array(op):
            array = array[..., :1, :] if not behind else array[0] if array.ndim == 3 else array
        inputs[name] = array[..., 0] if name == "positions" else array
    return replace(call, inputs=inputs)


def count_of_values(op: str, record: Features, axes: Sequence[Sequence[str]]) -> int:
    """Return how many values arrays of some axes have at least in a call, by its options and sizes: nothing is made."""
    known = {**SIZES, **facts_of(op).sizes, **defaults(op), **part(record, "option "), **sizes_in(op, record)}

    def size(axis: str) -> int:
        is_known = not axis.startswith(("*", "=")) and names_in(axis) <= known.keys()
        try:
            return int(value_of(axis, known)) if is_known else 1
        except (TypeError, ZeroDivisionError):  # of an option that is None, or the definition refuses it
            return 1

    return sum(math.prod(size(axis.lstrip("~")) for axis in one) for one in axes)


def count_of_results(op: str, record: Features) -> int:
    """Return how many values the results of a call have at least."""
    return count_of_values(op, record, [result_axes(op, name, record["way"]) for name in REGISTRY[op].outputs])


def count_of_work(op: str, record: Features) -> int:
    """Return how many values the results would have without empty axes: a definition may compute as many on its way."""
    return count_of_results(
        op, {name: 1 if name.startswith("size ") and value == 0 else value for name, value in record.items()}
    )


def part(record: Features, start: str) -> dict[str, Any]:
    """Return the features whose names begin with a word, by the rest of their names."""
    return {name.removeprefix(start): value for name, value in record.items() if name.startswith(start)}


def _is_told(op: str, name: str, value: Any) -> bool:
    """Return whether a call names an option: at its default it is left out."""
    return name not in defaults(op) or value != defaults(op)[name] or type(value) is not type(defaults(op)[name])


def tokens_of(op: str, way: int) -> list[list[str]]:
    """Return one alternative of the axes of every array of an operation."""
    return [[axis.lstrip("~") for axis in alternative(op, axes.shape, way)] for axes in REGISTRY[op].arrays.values()]


def letters_in(tokens: Sequence[str]) -> set[str]:
    """Return the letters of axes; the last of several axes of positions is that of tokens."""
    letters = {"T"} if "*P" in tokens else set[str]()
    return letters | {name for axis in tokens if not axis.startswith(("*", "=")) for name in names_in(axis)}


def _places(count: int, record: Features) -> npt.NDArray[Any]:
    """Return positions of a form, from a start on."""
    p, modulus = np.arange(count), max(2 * count + 1, 3)
    modulus += modulus % 7 == 0  # else most would be equal
    forms = {"gaps": p * 3, "unsorted": (p * 7 + 3) % modulus, "fractional": p + 0.5}
    return np.asarray(forms.get(record.get("form", ""), p) + record.get("start", 0))


def _may_share(op: str, name: str, way: int | None = None) -> bool:
    """Return whether positions of an operation may be without the leading axes, in one alternative or in any."""
    ways = alternatives(REGISTRY[op].arrays[name].shape)
    few = ways if way is None else [ways[min(way, len(ways) - 1)]]
    return any(axis.startswith("~*") for axes in few for axis in axes)


def _with_marks(x: npt.NDArray[Any], marks: str) -> npt.NDArray[Any]:
    """Return integers with -1 in the middle, or as they are if they have none to have; ValueError where that cannot be."""
    marked_x = x.copy()
    marked_x.reshape(-1)[x.size // 2 :][: marks == "some"] = -1
    if np.any(marked_x < 0) != (marks == "some"):
        msg = "there are no numbers, or too few others"
        raise ValueError(msg)
    return marked_x


def rows_of_grid(count: int) -> int:
    """Return the rows of the grid of so many cells that is nearest to a square."""
    return next((n for n in range(math.isqrt(count), 0, -1) if count % n == 0), 1)


def _grid(p: npt.NDArray[Any], record: Features) -> npt.NDArray[Any]:
    """Return positions of a shape that are those of a grid, row by row; ValueError where there is none."""
    if p.ndim < 2 or len(p) < 2 or record.get("coordinates") == "alike" or not p.size:
        msg = "a single coordinate"
        raise ValueError(msg)
    rows, count = rows_of_grid(p.shape[-1]), p.shape[-1]
    cells = np.zeros((len(p), count))
    cells[-2:] = np.indices((rows, count // rows)).reshape(2, count)
    starts = np.arange(math.prod(p.shape[1:-1])).reshape(1, *p.shape[1:-1], 1) + record.get("start", 0)
    return np.asarray(cells.reshape(len(p), *(1,) * (p.ndim - 2), count) + starts).astype(p.dtype)


def sizes_in(op: str, record: Features) -> dict[str, Any]:
    """Return the sizes of a record's call; where positions are all that options allow, these say how many there are."""
    sizes = part(record, "size ")
    if record.get("form") == WHOLE:
        known = {**defaults(op), **part(record, "option ")}
        shapes = {name: alternative(op, REGISTRY[op].arrays[name].shape, record["way"])[-1] for name in last_cells(op)}
        sizes |= {shapes[name].lstrip("~"): value_of(end, known) + 1 for name, end in last_cells(op).items()}
    return sizes


def _may_lack_rows(op: str, name: str, way: int) -> bool:
    """Return whether an array of an operation, which is no position, may be without the leading axes."""
    tokens = alternative(op, REGISTRY[op].arrays[name].shape, way)
    return bool(tokens) and tokens[0].startswith("~*") and REGISTRY[op].arrays[name].kind in ("real", "wide", "mask")


def _queries(lie: str, queries: npt.NDArray[Any], keys: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the positions of queries that lie to those of the keys in a way; ValueError where they cannot."""
    count, beside = queries.shape[-1], keys.shape[-1]
    if lie == "last":
        if count > beside or not beside:
            msg = "more queries than keys"
            raise ValueError(msg)
        last = keys[..., beside - count :]
        return np.broadcast_to(last, np.broadcast_shapes(last.shape, queries.shape)).copy()
    if lie == "first" and count == beside:
        msg = "these queries are the last of the keys too"
        raise ValueError(msg)
    first = queries - AFTER
    first = first + (keys.max() - first.min() + 1 if lie == "beyond" and keys.size and first.size else 0)
    return np.broadcast_to(first, (*np.broadcast_shapes(keys.shape[:-1], first.shape[:-1]), count)).copy()
