"""
What a case asks of an implementation: words and kinds on named axes, and sizes. Scopes and diagnoses use these terms.

A case of several calls has the traits of all. Options that are left out have the defaults of the reference's signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.scaling import RECORDS, Llama3, Scaling
from posref.spec import REGISTRY, Domain, Flag, Integer, Integers, OneOf, Real, Record

from ..calls import PLACED, array_names, broadcast_axes, parameters_of, positions_of
from ..model import TABLE_FORMS, Call, LoadedCase
from .axes import alternatives, is_star, names_in, value_of

FORMS = ("from zero", "consecutive", "sorted", "any")  # of positions, each wider than the one before
LETTERS = {"T": "tokens", "Q": "queries", "K": "keys"}
HAVING: Mapping[str, tuple[str, str]] = {  # traits, as a case has them, and what a scope has that excludes them
    "sequence": ("several calls in order", "no calls in sequence"),
    "strided": ("an input that is not contiguous", "contiguous arrays"),
    "partial": ("a partial rotation", "no partial rotation"),
    "negative": ("negative positions", "no negative positions"),
    "per_row": ("positions that differ from row to row", "the same positions in all rows"),
    "shared_rows": ("positions that are the same in all rows", "positions without an axis for rows"),
    "tokens_before_heads": ("tokens before heads", "heads before tokens"),
    "unequal": ("sections of unequal size", "equal sections"),
    "unequal_coordinates": ("coordinates that differ from axis to axis", "the same coordinate along every axis"),
    "heads_not_power_of_two": ("a number of heads that is not a power of two", "heads a power of two"),
    "step": ("a ramp that begins where it ends", "no ramp that begins where it ends"),
    "odd_dim": ("an odd width", "even widths"),
    "odd_taps": ("an odd number of taps", "an even number of taps"),
    "free_tables": ("tables that are no cosines and sines", "tables of cosines and sines"),
    "right_padding": ("padding on the right", "no padding on the right"),
    "gap": ("padding between tokens", "no padding between tokens"),
    "below_padding": ("an id below the padding's", "no ids below the padding's"),
    "not_square": ("a grid that is not square", "square grids"),
    "other_queries": ("queries that are not the last of the keys", "queries the last of the keys"),
    "unequal_lengths": ("not as many queries as keys", "as many queries as keys"),
    "heads_before_tokens": ("heads before tokens", "only tokens before heads"),
    "off_grid": ("coordinates that are not the cells of a grid, row by row", "only the cells of a grid, row by row"),
    "marked": ("entries of -1", "no -1"),
}
RELATED = {  # traits of some options besides
    "unequal_old_size": ("a table that is not square", "a square table"),
    "unequal_size": ("a new size that is not square", "a square new size"),
    "one_old_size": ("a table of one row or column", "no table of one row or column"),
    "one_size": ("a new grid of one row or column", "no new grid of one row or column"),
    "other_length": ("a length that is not one more than the largest position", "length one more than the largest position"),
    "other_centre": ("a centre that is not at half of all positions", "centre at half of all positions"),
}
HAS = {axis: has for axis, (has, _) in {**HAVING, **RELATED}.items()}
LACKS = {axis: lacks for axis, (_, lacks) in {**HAVING, **RELATED}.items()}
COORDINATES, TAPS = "*P c", " k"  # how the shape of points ends, and that of the weights of a convolution
ONE = {"T": "token", "Q": "query", "K": "key"}
GRIDS = (("H", "W"), ("I", "J"))  # the letters of the rows and columns of a grid
SIDES = (("height", "width"), ("k_rows", "k_columns"))  # the options
MASKS = ("none", "causal", "other")  # causal: every query sees the keys up to its own, the last query the last key
BANDS = ("powers of two", "other")  # frequencies 1, 2, 4, ..., which much code makes itself
SHARES = {0.25: "a quarter", 0.375: "three eighths", 0.5: "half", 0.75: "three quarters"}  # of the head, that rotate
OTHER_SHARE = "other"
LISTS = {"one": ("token", "query", "key", "column"), "empty": ("tokens", "heads", "batch", "lanes")}
RELATIONS: dict[str, Callable[[float], float]] = {  # what most code assumes
    "length": lambda largest: largest + 1, "centre": lambda largest: (largest + 1) // 2,
}  # fmt: skip
UNIT = 2.0**-6  # how far squares of cosines and sines may be from 1
GIVEN, DEFAULT = "given", "default"


@dataclass(frozen=True)
class Traits:
    """One case in one dtype: the words that it has on every axis, and all numbers of every size, the smallest first."""

    words: Mapping[str, frozenset[Any]]
    sizes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def traits_of(case: LoadedCase, dtype: str) -> Traits:
    """Return the traits of a case."""
    return in_dtype(_traits(case), dtype)


def in_dtype(traits: Traits, dtype: str) -> Traits:
    """Return the traits of the same case in another dtype."""
    return Traits({**traits.words, "dtype": frozenset({dtype})}, traits.sizes)


def option_traits(case: LoadedCase, dtype: str) -> Traits:
    """Return of the traits of a case those of its options and its gradients, which are found without looking at arrays."""
    words = {axis: frozenset(values) for axis, values in _begun(case).items()}
    for call in case.calls:
        for axis, value in _options(case.op, call):
            words[axis] = words.get(axis, frozenset()) | {value}
    return Traits({**words, "dtype": frozenset({dtype})})


def _begun(case: LoadedCase) -> dict[str, set[Any]]:
    """Return the words on the first of the axes: the dtype, and the gradients."""
    words: dict[str, set[Any]] = {"dtype": set()}
    if case.kind == "vjp":
        words["gradient"] = {name for call in case.calls for name in call.expected}
    return words


def _traits(case: LoadedCase) -> Traits:
    """Return the traits that a case has in every dtype."""
    words, sizes = _begun(case), dict[str, set[float]]()
    for axis, there in (("sequence", case.kind == "sequence"), ("strided", case.form == "non-contiguous")):
        if there:
            words[axis] = {True}
    for call in case.calls:
        for axis, value in (*_options(case.op, call), *_arrays(case, call)):
            words.setdefault(axis, set()).add(value)
        for axis, value in (*_numbers(case.op, call), *_sizes(case.op, call)):
            sizes.setdefault(axis, set()).add(value)
    return Traits({a: frozenset(values) for a, values in words.items()}, {a: tuple(sorted(n)) for a, n in sizes.items()})


# ---- options --------------------------------------------------------------------------------------------------------------
@cache
def defaults(op: str) -> Mapping[str, Any]:
    """Return the options of an operation that have a default."""
    parameters = parameters_of(REGISTRY[op].function)
    return {n: p.default for n, p in parameters.items() if p.default is not p.empty and n not in PLACED}


@cache
def numbers_or_none(op: str) -> frozenset[str]:
    """Return the options of an operation that are a number or None, and have no default."""
    domains = REGISTRY[op].domains
    return frozenset(n for n, d in domains.items() if isinstance(d, Integer | Real) and d.optional and n not in defaults(op))


def is_word(domain: Domain | None) -> bool:
    """Return whether an option is a word, a flag or a record: one of few things that code has or lacks."""
    return isinstance(domain, OneOf | Flag | Record)


def _options(op: str, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield what the options of a call are; numbers without a default are sizes, or fixed."""
    for name, domain in REGISTRY[op].domains.items():
        value = call.params.get(name, defaults(op).get(name))
        if isinstance(domain, Record):
            yield name, None if value is None else type(value).__name__
            yield from _fields(value)
        elif is_word(domain):
            yield name, value
        elif name in defaults(op):
            yield name, DEFAULT if value == defaults(op)[name] else GIVEN
        elif name in numbers_or_none(op):
            yield name, None if value is None else GIVEN
        elif isinstance(domain, Integers):
            yield from _list(name, value, domain)
        elif isinstance(domain, Real):
            yield name, float(value)
        elif name == "heads" and value & (value - 1):
            yield "heads_not_power_of_two", True
        elif name == "dim" and value % 2:
            yield "odd_dim", True


def _fields(value: Scaling | None) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a scaling that have a default, and whether they are at it; and whether a ramp is a step."""
    for part in fields(value) if value is not None else ():
        if part.default is not MISSING:
            yield f"{type(value).__name__}.{part.name}", DEFAULT if getattr(value, part.name) == part.default else GIVEN
    if isinstance(value, Llama3) and value.low_freq_factor == value.high_freq_factor:
        yield "step", True


def _list(name: str, value: tuple[int, ...], domain: Integers) -> Iterator[tuple[str, Any]]:
    """Yield how many numbers a list has, and whether they differ or one of them is 1."""
    yield "axes", len(value)
    if len(set(value)) > 1:
        yield from (("unequal", True), (f"unequal_{name}", True))
    if 1 in value and domain.low == 1:
        yield f"one_{name}", True


def _numbers(op: str, call: Call) -> Iterator[tuple[str, float]]:
    """Yield the numbers among the options of a call, of a list each; of those without a default, the whole ones."""
    for name, domain in REGISTRY[op].domains.items():
        value = call.params.get(name, defaults(op).get(name))
        if isinstance(domain, Integers):
            yield from ((name, float(number)) for number in value)
        elif value is not None and (isinstance(domain, Integer) or (isinstance(domain, Real) and name in defaults(op))):
            yield name, float(value)


# ---- arrays ---------------------------------------------------------------------------------------------------------------
@cache
def main_array(op: str) -> str | None:
    """Return the argument whose values an operation transforms, if it has one; a table of rows does not count."""
    arrays = REGISTRY[op].arrays
    if any(axes.index for axes in arrays.values()):
        return None
    return next((n for n, axes in arrays.items() if axes.kind == "real"), None)


@cache
def _ranked_array(op: str) -> str | None:
    """Return the argument whose number of axes traits mention: the transformed one, else the first with free axes."""
    arrays = REGISTRY[op].arrays
    return main_array(op) or next((n for n, axes in arrays.items() if is_star(axes.shape.split()[0])), None)


@cache
def _has_columns(op: str) -> bool:
    """Return whether what an operation transforms is a matrix: its last axis is of any size, and has no letter."""
    main = main_array(op)
    return main is not None and is_star(REGISTRY[op].arrays[main].shape.split()[-1])


def letters(op: str, call: Call) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the sizes of the axes of every array, by the letters of the first alternative that all arrays fit."""
    return _match(op, call)[1]


def which_alternative(op: str, call: Call) -> int:
    """Return which alternative of their axes the arrays of a call take; the first if none fits."""
    return _match(op, call)[0]


def _match(op: str, call: Call) -> tuple[int, dict[str, dict[str, tuple[int, ...]]]]:
    """Return which alternative the arrays of a call take, and the sizes of their axes by letter."""
    return _match_shapes(op, tuple((n, x.shape) for n, x in call.inputs.items() if n in REGISTRY[op].arrays))


@cache  # every trait of a call asks for them
def _match_shapes(
    op: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]
) -> tuple[int, dict[str, dict[str, tuple[int, ...]]]]:
    """Return the same of the shapes of arrays."""
    ways = {n: alternatives(REGISTRY[op].arrays[n].shape) for n, _ in shapes}
    for which in range(max((len(way) for way in ways.values()), default=0)):
        axes = {n: way[min(which, len(way) - 1)] for n, way in ways.items()}
        fits = {n: _fit(axes[n], shape) for n, shape in shapes}
        fitting = {n: sizes for n, sizes in fits.items() if sizes is not None}
        if len(fitting) == len(ways) and _agree(fitting, axes):
            return which, fitting
    return 0, {}


def _fit(axes: list[str], shape: tuple[int, ...]) -> dict[str, tuple[int, ...]] | None:
    """Return the sizes of a shape's axes, but for 1 that stands for any; None where there are more or fewer axes."""
    if axes and axes[0].startswith("="):
        return {}
    sizes: dict[str, tuple[int, ...]] = {}
    left = list(shape)
    for k, axis in reversed(list(enumerate(axes))):
        name = axis.lstrip("~")
        if is_star(axis):
            sizes[name] = tuple(left[k:])
            left = left[:k]
        elif left:
            size = left.pop()
            if name == "1" and size != 1:
                return None
            if not (axis.startswith("~") and size == 1):
                sizes[name if name not in sizes else f"{name}'"] = (size,)
        elif not axis.startswith("~"):
            return None
    return None if left else sizes


def _agree(by_array: Mapping[str, Mapping[str, tuple[int, ...]]], axes: Mapping[str, list[str]]) -> bool:
    """Return whether a letter has one size wherever it occurs, and leading axes that do not broadcast are the same."""
    every = {
        (n, size)
        for array, sizes in by_array.items()
        for n, size in sizes.items()
        if (n.isidentifier() and len(size) == 1) or (n.startswith("*") and n in axes[array])
    }
    return len(every) == len({name for name, _ in every})


def _arrays(case: LoadedCase, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield what the arrays of a call are like."""
    yield from _given(case.op, call)
    yield from _parts(case.op, call)
    yield from _contents(case.op, call)
    yield from _relations(case.op, call)
    yield from _forms(case, call)
    yield from _positions(case.op, call)


def _given(op: str, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield which arrays a call has, and of what kind."""
    for name, axes in REGISTRY[op].arrays.items():
        value = call.inputs.get(name)
        if name == "mask":
            yield "masks", _kind_of_mask(value)
        if value is None:
            continue
        if axes.optional:
            yield name, True
        if axes.shape.endswith(COORDINATES):
            yield "axes", value.shape[-1]
        if axes.shape.endswith(TAPS) and value.shape[-1] % 2:
            yield "odd_taps", True
        if axes.kind == "wide" and value.ndim > len(alternatives(axes.shape)[0]):
            yield "per_head", name
        if name == "bands":
            yield "bands", BANDS[0 if value.ndim == 1 and np.array_equal(value, 2.0 ** np.arange(value.size)) else 1]


def _parts(op: str, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield how many axes are leading, which part of an axis is transformed, and which axes have one."""
    main = main_array(op)
    yield from (("rank", rank) for rank in ranks_of(op, call))
    if main is not None and _is_partial(op, main, call):
        yield "partial", True
        yield from (("rotated", share) for share in _share(op, main, call))
    yield from (("one", ONE[letter]) for letter, size in _counts(op, call).items() if size == 1)
    if _has_columns(op) and call.inputs[main or ""].shape[-1] == 1:
        yield "one", "column"


def _contents(op: str, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield what is among the values of the arrays of a call, and whether a grid of theirs is square."""
    by_array = letters(op, call)
    for name, value in call.inputs.items():
        yield from ((word, True) for word in _padding(op, name, value, call.params))
        sizes = by_array.get(name, {})
        if any({a, b} <= sizes.keys() and sizes[a] != sizes[b] for a, b in GRIDS):
            yield "not_square", True
        if name == marked(op) and np.any(value < 0):
            yield "marked", True


def _relations(op: str, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield how sizes of a call stand to each other, and its axes."""
    if any({a, b} <= call.params.keys() and call.params[a] != call.params[b] for a, b in SIDES):
        yield "not_square", True
    counts = _counts(op, call)
    if counts.get("Q") != counts.get("K") and counts.keys() >= {"Q", "K"}:
        yield "unequal_lengths", True
    if tokens_first(op, call):
        yield "tokens_before_heads", True
    if _heads_first(op, call):
        yield "heads_before_tokens", True


def _forms(case: LoadedCase, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield how the arrays of a call lie in memory, and of what dtype and values its tables are."""
    if {"cos", "sin"} <= call.inputs.keys() and not are_unit(call):
        yield "free_tables", True
    by_array = letters(case.op, call)
    for name, value in call.inputs.items():
        yield from (("empty", kind) for kind in _empty(by_array.get(name, {}), value))
        if case.form == "broadcast-view" and broadcast_axes(value):
            yield "expanded", name
    if case.form in TABLE_FORMS:
        yield "tables", case.form.removesuffix("-tables")


def are_unit(call: Call) -> bool:
    """Return whether tables are cosines and sines, as far as half precision holds them."""
    cos, sin = (call.inputs[name].astype(np.float64) for name in ("cos", "sin"))
    return cos.shape == sin.shape and bool(np.all(np.abs(cos**2 + sin**2 - 1) <= UNIT))


def _padding(op: str, name: str, value: npt.NDArray[Any], params: Mapping[str, Any]) -> Iterator[str]:
    """Yield what padding an array has: after the tokens of a mask's row, or between them, or ids below that of the padding."""
    axes = REGISTRY[op].arrays[name]
    if axes.kind == "mask" and axes.shape.split()[-1] == "T" and value.size:
        before = np.logical_or.accumulate(value, axis=-1)  # whether a token stands here or before
        after = np.logical_or.accumulate(value[..., ::-1], axis=-1)[..., ::-1]
        if np.any(before[..., -1] & ~value[..., -1]):
            yield "right_padding"
        if np.any(before & ~value & after):
            yield "gap"
    if axes.kind == "integer" and "padding_idx" in params and np.any(value < params["padding_idx"]):
        yield "below_padding"


def _kind_of_mask(mask: npt.NDArray[Any] | None) -> str:
    """Return a word of `MASKS`."""
    if mask is None:
        return "none"
    causal = mask.ndim == 2 and np.array_equal(mask, np.tril(np.ones_like(mask), mask.shape[1] - mask.shape[0]))
    return "causal" if causal else "other"


def _counts(op: str, call: Call) -> dict[str, int]:
    """Return the numbers of tokens, queries and keys of a call, by letter."""
    result: dict[str, int] = {}
    for sizes in letters(op, call).values():
        for letter in LETTERS.keys() & sizes.keys():
            result[letter] = max(result.get(letter, 0), *sizes[letter]) if sizes[letter] != (0,) else 0
    if "T" in result and tokens_first(op, call):
        result["T"] = call.inputs[main_array(op) or ""].shape[-3]
    return result


def tokens_first(op: str, call: Call) -> bool:
    """Return whether tokens come before heads in the shape, so that each position holds for many rows."""
    main, place = main_array(op), next((n for n in ("positions", "cos") if n in call.inputs), None)
    if main is None or place is None or call.inputs[main].ndim < 3 or has_coordinates(op):
        return False
    shape = call.inputs[place].shape if place == "positions" else call.inputs[place].shape[:-1]
    return len(shape) > 1 and shape[-1] == 1 and shape[-2] > 1 and call.inputs[main].shape[-2] > 1


def _heads_first(op: str, call: Call) -> bool:
    """Return whether positions have no axis of 1 for heads behind that of the tokens."""
    main, place = main_array(op), next((n for n in ("positions", "cos") if n in call.inputs), None)
    if main is None or place is None or call.inputs[main].ndim < 3 or has_coordinates(op):
        return False
    shape = call.inputs[place].shape if place == "positions" else call.inputs[place].shape[:-1]
    return len(shape) < 2 or shape[-1] != 1


def _is_partial(op: str, main: str, call: Call) -> bool:
    """Return whether only a part of the last axis is rotated."""
    width, record = call.inputs[main].shape[-1] if call.inputs[main].ndim else 0, REGISTRY[op]
    if "rotary_dim" in record.domains:
        size = width
        if "heads" in record.domains:
            size = call.inputs[main].shape[0] // max(1, call.params["heads"])
        return call.params.get("rotary_dim") not in (None, size)
    pairs = next((call.inputs[n].shape[-1] for n in ("cos", "frequencies") if n in record.arrays), None)
    if pairs is not None:
        return bool(2 * pairs < width)
    option = next((n for n in ("dims", "sections") if n in record.domains), None)
    return option is not None and sum(call.params[option]) * (1 if option == "dims" else 2) < width


def _share(op: str, main: str, call: Call) -> Iterator[str]:
    """Yield which part of the head rotates, of operations whose calls say it by one number or by their table."""
    width = call.inputs[main].shape[-1] if call.inputs[main].ndim else 0
    if _has_share(op) and width:
        size = 2 * call.inputs["cos"].shape[-1] if "cos" in call.inputs else call.params["rotary_dim"]
        yield SHARES.get(size / width, OTHER_SHARE)


def _has_share(op: str) -> bool:
    """Return whether the calls of an operation say which part of the head rotates; the last axis of weights is no head."""
    record, main = REGISTRY[op], main_array(op)
    if main is not None and record.arrays[main].shape.split()[-1] == "K":
        return False
    return "heads" not in record.domains and not {"rotary_dim", "cos"}.isdisjoint({*record.domains, *record.arrays})


def _empty(sizes: Mapping[str, tuple[int, ...]], value: npt.NDArray[Any]) -> Iterator[str]:
    """Yield which kinds of axes of an array have no elements."""
    if value.size:
        return
    for name, size in sizes.items():
        for k, n in enumerate(size):
            if n == 0 and name in LETTERS:
                yield "tokens"
            elif n == 0 and name in ("H", "G", "G*g"):
                yield "heads"
            elif n == 0 and is_star(name):
                yield "heads" if len(size) > 1 and k == len(size) - 1 and name == "*R" else "batch"
            elif n == 0:
                yield "lanes"


def _positions(op: str, call: Call) -> Iterator[tuple[str, Any]]:
    """Yield what the positions of a call are like, but for their order and size."""
    positions = [np.asarray(call.inputs[n]) for n in positions_of(op) if n in call.inputs]
    for p in positions:
        yield "numbers", "fractional" if np.any(p != np.floor(p)) else "whole floats" if p.dtype.kind == "f" else "integers"
        if np.any(p < 0):
            yield "negative", True
        rows = p[..., 0] if tokens_first(op, call) else p
        if rows.ndim > 1 and not has_coordinates(op):
            yield "per_row" if np.any(rows != rows[:1]) else "shared_rows", True
        if has_coordinates(op) and np.any(p != p[:1]):
            yield "unequal_coordinates", True
        if "off_grid" in vocabulary(op) and not is_grid(p):
            yield "off_grid", True
        if REGISTRY[op].arrays[positions_of(op)[0]].shape.startswith("A"):
            yield "axes", p.shape[0]
    if "other_queries" in vocabulary(op) and len(positions) > 1 and not _are_last(*positions):
        yield "other_queries", True
    with_values = [float(np.max(p)) for p in positions if p.size]
    for name, usual in RELATIONS.items() if with_values else ():
        value = call.params.get(name)
        if name in REGISTRY[op].domains and value is not None and value != usual(max(with_values)):
            yield f"other_{name}", True


def _are_last(q: npt.NDArray[Any], k: npt.NDArray[Any]) -> bool:
    """Return whether queries stand where the last of the keys do."""
    count = min(q.shape[-1], k.shape[-1])
    return q.shape[-1] == count and bool(np.all(q == k[..., k.shape[-1] - count :]))


def is_grid(p: npt.NDArray[Any]) -> bool:
    """Return whether coordinates are in every row those of the cells of a grid, row by row, with zeros before these."""
    if p.ndim < 2 or len(p) < 2 or not p.size:
        return False
    cells = np.arange(p.shape[-1])
    columns = max(int(p[-1].max()), 0) + 1
    rows, left = cells // columns, cells % columns
    return not np.any(p[:-2]) and bool(np.all(p[-2] == rows) and np.all(p[-1] == left))


@cache
def marked(op: str) -> str:
    """Return the array whose integers may be -1, which marks what is not there; "" without one."""
    arrays = REGISTRY[op].arrays
    return next((name for name, axes in arrays.items() if axes.low == "-1" and not axes.earlier), "")


def ranks_of(op: str, call: Call) -> set[int]:
    """Return the numbers of axes of the array that traits mention; of positions alone, those of each."""
    ranked, places = _ranked_array(op), positions_of(op)
    names = [ranked] if ranked not in places else [n for n in places if is_star(REGISTRY[op].arrays[n].shape.split()[0])]
    return {call.inputs[name].ndim for name in names if name in call.inputs}


@cache
def has_coordinates(op: str) -> bool:
    """Return whether the first axis of an operation's positions is that of the coordinates."""
    firsts = [REGISTRY[op].arrays[n].shape.split()[:1] for n in positions_of(op)]
    return any(first and (first[0] == "A" or first[0].isdigit() or first[0].startswith("len(")) for first in firsts)


def form(p: npt.NDArray[Any], coordinates: bool = False) -> int:
    """Return the narrowest form that positions have, as an index of `FORMS`."""
    if p.size == 0:
        return 0
    p = p[..., 0] if p.ndim > 1 and p.shape[-1] == 1 and p.shape[-2] > 1 and not coordinates else p
    rows = p.reshape(-1, p.shape[-1]) if p.ndim else p.reshape(1, 1)
    steps = np.diff(rows, axis=-1)
    if np.all(steps == 1):
        return 0 if np.all(rows[:, 0] == 0) else 1
    return 2 if np.all(steps >= 0) else 3


def are_lengths(call: Call) -> bool:
    """Return whether two lengths give all positions of a call: keys count from 0, and the queries are the last keys."""
    q, k = (call.inputs.get(name, np.empty(0)) for name in ("q_positions", "k_positions"))
    if not (q.ndim and k.ndim and 0 < q.shape[-1] <= k.shape[-1]):
        return False
    keys = np.arange(k.shape[-1])
    return np.array_equal(k, np.broadcast_to(keys, k.shape)) and bool(np.all(q == keys[k.shape[-1] - q.shape[-1] :]))


@cache
def last_cells(op: str) -> Mapping[str, str]:
    """Return the expressions of the last positions, by the name of the array, where options alone say all of them."""
    record = REGISTRY[op]
    options = {name: names_in(axes.high or "0") for name, axes in record.arrays.items() if axes.low == "0"}
    if options.keys() != record.arrays.keys() or not all(
        names and names <= record.domains.keys() for names in options.values()
    ):
        return {}
    return {name: str(axes.high) for name, axes in record.arrays.items()}


def are_whole(op: str, call: Call) -> bool:
    """Return whether options say all positions of a call: from 0 on, to the last that a size allows."""
    return bool(last_cells(op)) and all(
        np.array_equal(call.inputs[name], np.arange(value_of(end, call.params) + 1)) for name, end in last_cells(op).items()
    )


@cache
def not_of_a_grid(op: str) -> bool:
    """Return whether H counts heads, and no rows of a grid."""
    return "W" not in _axes_of(op)


def _sizes(op: str, call: Call) -> Iterator[tuple[str, float]]:
    """Yield the sizes of a call: positions by their order and the largest of them, tokens, head size, rows of tables."""
    implied = are_whole(op, call) if last_cells(op) else are_lengths(call)
    for name in positions_of(op):
        if name in call.inputs:
            p = np.asarray(call.inputs[name])
            yield "positions", 0.0 if implied else float(max(form(p, has_coordinates(op)), bool(last_cells(op))))
            if p.size:
                yield "position", float(np.max(np.abs(p)))
    main = main_array(op)
    yield from ((LETTERS[letter], float(size)) for letter, size in _counts(op, call).items())
    for name, sizes in letters(op, call).items():
        for letter, size in sizes.items():
            if letter in ("N", "left+right+1") and REGISTRY[op].arrays[name].kind == "real" and len(sizes) == 2:
                yield "rows", float(size[0])
            elif letter == "k":
                yield "taps", float(size[0])
            elif letter in ("H", "G*g") and "heads" not in REGISTRY[op].domains and not_of_a_grid(op):
                yield "heads", float(size[0])
    if main is not None and call.inputs[main].ndim:
        yield "head_size", float(call.inputs[main].shape[-1])


# ---- traits in words -----------------------------------------------------------------------------------------------------
NUMBERS = {"fractional": "fractional positions", "whole floats": "positions that are floats", "integers": ""}
PHRASES = {
    "one": "one {}", "empty": "no {}", "tables": "tables in {}", "per_head": "{} for each head",
    "expanded": "{} as a view of one row",
}  # fmt: skip


def text_of(axis: str, value: Any) -> str:
    """Return a trait of a case in words, after "with"; nothing where another word says it, as that of an option."""
    if axis in HAS:
        return HAS[axis]
    if axis == "numbers":
        return NUMBERS[value]
    if axis == "masks":
        return f"a {value} mask" if value != "none" else "no mask"
    if axis == "rotated":
        return f"{value} of the head rotated" if value != OTHER_SHARE else ""
    if axis == "bands":
        return f"bands that are {value}" if value != "other" else "bands that are not powers of two"
    return PHRASES[axis].format(value) if axis in PHRASES else ""


# ---- what may be said of an operation ---------------------------------------------------------------------------------------
def _axes_of(op: str) -> list[str]:
    """Return the axes of all arrays of an operation, in all alternatives."""
    return " ".join(axes.shape for axes in REGISTRY[op].arrays.values()).replace("~", "").split()


def _having(op: str) -> list[str]:
    """Return which traits of `HAVING` a call of an operation can have."""
    domains, arrays, main, places = REGISTRY[op].domains, REGISTRY[op].arrays, main_array(op), positions_of(op)
    shapes = [way for name in places for way in alternatives(arrays[name].shape)]
    rows = not has_coordinates(op) and any(len(way) > 1 or any(map(is_star, way)) for way in shapes)
    lists = any(isinstance(domain, Integers) for domain in domains.values())
    width = domains.get("dim")
    able = {
        "sequence": True,
        "strided": bool({*_axes_of(op)} - {"|"}),
        "partial": main is not None
        and not {"rotary_dim", "dims", "sections", "cos", "frequencies"}.isdisjoint({*domains, *arrays}),
        "negative": any(arrays[name].low != "0" or "offset" in domains for name in places),
        "per_row": rows,
        "shared_rows": rows,
        "tokens_before_heads": main is not None and not has_coordinates(op) and not {"positions", "cos"}.isdisjoint(arrays),
        "unequal": lists,
        "unequal_coordinates": bool(places) and has_coordinates(op),
        "heads_not_power_of_two": isinstance(domains.get("heads"), Integer),
        "step": any(isinstance(domain, Record) for domain in domains.values()),
        "odd_dim": isinstance(width, Integer) and width.step == 1 and "dim" not in defaults(op),
        "odd_taps": any(axes.shape.endswith(TAPS) for axes in arrays.values()),
        "free_tables": {"cos", "sin"} <= arrays.keys(),
        **dict.fromkeys(
            ("right_padding", "gap"), any(axes.kind == "mask" and axes.shape.split()[-1] == "T" for axes in arrays.values())
        ),
        "below_padding": "padding_idx" in domains,
        "not_square": any({*grid} <= {*_axes_of(op)} for grid in GRIDS) or any({*pair} <= {*domains} for pair in SIDES),
        "other_queries": {"q_positions", "k_positions"} <= {*places} and not has_coordinates(op) and not last_cells(op),
        "unequal_lengths": {"Q", "K"} <= {*_axes_of(op)},
        "heads_before_tokens": main is not None and not has_coordinates(op) and not {"positions", "cos"}.isdisjoint(arrays),
        "off_grid": has_coordinates(op),
        "marked": bool(marked(op)),
    }
    return [name for name in HAVING if able[name]]


def _may_have_more(ways: list[list[str]]) -> bool:
    """Return whether an array may have more axes than in the first alternative."""
    return any(len(way) > len(ways[0]) for way in ways)


def _kinds(op: str) -> dict[str, tuple[str, ...]]:
    """Return the words of axes that name an operation's arrays, tokens or axes."""
    arrays, shapes = REGISTRY[op].arrays, {*_axes_of(op)}
    several = any(is_star(axis) for axis in shapes)
    empty = {
        "tokens": bool(shapes & LETTERS.keys()) or (several and bool(positions_of(op))),
        "heads": several or bool(shapes & {"H", "G", "G*g"}),
        "batch": several,
        "lanes": bool(shapes - {"|", "=cos"}),
    }
    reals = [name for name, axes in arrays.items() if axes.kind in ("real", "wide") and name not in positions_of(op)]
    return {
        "one": (*(ONE[letter] for letter in LETTERS if letter in shapes), *(("column",) if _has_columns(op) else ())),
        "empty": tuple(kind for kind in LISTS["empty"] if empty[kind]),
        "expanded": array_names(op) if several else (),
        "per_head": tuple(n for n, axes in arrays.items() if axes.kind == "wide" and _may_have_more(alternatives(axes.shape))),
        "tables": tuple(form.removesuffix("-tables") for form in TABLE_FORMS) if {"cos", "sin"} <= {*arrays} else (),
        "gradient": tuple(reals),
        "numbers": ("integers", "whole floats", "fractional") if positions_of(op) else (),
    }


@cache
def vocabulary(op: str) -> Mapping[str, tuple[Any, ...] | None]:
    """Return the axes that a scope of an operation may name: those of words with all words, and of sizes with None."""
    record = REGISTRY[op]
    table: dict[str, tuple[Any, ...] | None] = {"dtype": ("float64", "float32", "bfloat16", "float16")}
    for name, domain in record.domains.items():
        match domain:
            case OneOf():
                table[name] = domain.words
            case Flag():
                table[name] = (False, True)
            case Record():
                table[name] = (None, *(kind.__name__ for kind in RECORDS))
                settings = [(k, part) for k in RECORDS for part in fields(k) if part.default is not MISSING]
                table |= {f"{kind.__name__}.{part.name}": (DEFAULT, GIVEN) for kind, part in settings}
            case _ if name in defaults(op):
                table[name] = (DEFAULT, GIVEN)
            case _ if name in numbers_or_none(op):
                table[name] = (None, GIVEN)
            case _:
                table[name] = None
    table |= dict.fromkeys(_having(op), (True,))
    table |= {name: (True,) for name, axes in record.arrays.items() if axes.optional}
    table |= {"masks": MASKS} if "mask" in record.arrays else {}
    table |= {"rotated": (*SHARES.values(), OTHER_SHARE)} if main_array(op) is not None and _has_share(op) else {}
    table |= {"bands": BANDS} if "bands" in record.arrays else {}
    table |= {f"other_{name}": (True,) for name in RELATIONS if name in record.domains and positions_of(op)}
    lists = [(name, domain.low) for name, domain in record.domains.items() if isinstance(domain, Integers)]
    table |= {f"unequal_{name}": (True,) for name, _ in lists} | {f"one_{name}": (True,) for name, low in lists if low == 1}
    table |= {name: words for name, words in _kinds(op).items() if words}
    shapes = _axes_of(op)
    table |= {name: None for letter, name in LETTERS.items() if letter in shapes}
    table |= dict.fromkeys(("positions", "position") if positions_of(op) else ())
    table |= dict.fromkeys(("rank",) if _ranked_array(op) is not None else ())
    table |= dict.fromkeys(("head_size",) if main_array(op) is not None else ())
    tables = [alternatives(axes.shape)[0] for axes in record.arrays.values() if axes.kind == "real"]
    table |= dict.fromkeys(("rows",) if any(len(way) == 2 and {"N", "left+right+1"} & {*way} for way in tables) else ())
    table |= dict.fromkeys(("taps",) if "k" in shapes else ())
    table |= dict.fromkeys(("heads",) if "heads" not in table and {"H", "G*g"} & {*shapes} and not_of_a_grid(op) else ())
    coordinates = bool(lists) or any(
        axes.shape.startswith("A ") or axes.shape.endswith(COORDINATES) for axes in record.arrays.values()
    )
    return table | dict.fromkeys(("axes",) if coordinates else ())
