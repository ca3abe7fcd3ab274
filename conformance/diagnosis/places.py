"""
Finds the place of wrong values, where no known mistake explains them: key 8 and later, the last token, positions from 2^17 on.

A place is said only if all wrong values lie in it, most values in it are wrong, and right values lie outside it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import round_to
from posref.spec import REGISTRY

from ..model import Call
from ..vocabulary.axes import places as positions_of_values
from ..vocabulary.traits import defaults
from .hypotheses import Observation, Question
from .shapes import axes_of, coordinates_of, pairs_of, rows_of_table

MOST = 0.8  # the least part of a place that must be wrong: a rotation by nothing is right by chance
TELLING = 0.6  # the least part of the outputs with wrong values that must have units outside a place
PARTLY = 0.25  # the least part of keys before or after the query that must be wrong in a mask
FEW = 2  # wrong tokens, heads, ... of one case that are counted where no place is common to all
MANY_WRONG = 32  # wrong values of a single case that tell as much as several cases
MANY = 8  # wrong reals that must have one quotient, and units of which a few in a row of one case are a place
ALIKE = 0.02  # how far apart quotients may be, and how far from 1 they must be
HELD = 1 / 2  # of right reals that a narrower dtype holds too, at most: else all of them have few bits
SURPRISE = 7.0  # bits: of a hundred places that are tried, one holds the wrong units of few outputs by chance
LEAST = 3  # wrong tokens, keys or heads, or else failing cases, that a place must explain
BLOCKS = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # in which kernels take tokens, heads and channels
NARROWER = ("bfloat16", "float16")
INTEGERS = {"int8": 2**8, "uint8": 2**8, "int16": 2**16, "uint16": 2**16, "int32": 2**32, "uint32": 2**32}
FEWEST = 5  # cases of which a place is said, though others are wrong elsewhere too
SHOWING = 3  # outputs, the largest, whose places are tried on others
LARGE = 2**22  # values of an output that are looked at one by one
SMALL = 2**14  # values of an output whose coordinates are asked
BESIDE = " beside "  # between a kind of units and a number of the call
Array = npt.NDArray[Any]
Masks = Callable[[Question, Observation], tuple[Array, Array]]  # which values are wrong, and which say something
IS_PART = re.compile(r"\bblock|\bfull\b|the (first|last)\b| from \d| up to \d| \d+ to \d")  # of equal units: an end, a block
NARROW_VALUES = "The wrong values are numbers that"  # a narrow dtype holds


@dataclass(frozen=True)
class UnitCounts:
    """
    The units of one kind in one output, such as its tokens: the number of each, how many there are, which are wrong.

    Units whose values are right and trivial, as a rotation by nothing is, are left out.
    """

    case: str
    failed: bool
    values: Array
    size: int
    wrong: Array
    mask: bool = False  # whether the output has True and False
    names: tuple[str, ...] = ()  # of units that have names: outputs


@dataclass(frozen=True)
class UnitPlace:
    """A place in words, and which units lie in it."""

    words: str
    holds: Callable[..., Array]
    least: float = MOST  # the least part of it that must be wrong
    rest: bool = False  # whether it is all units but one, or one of each block: few have it by chance
    row: bool = False  # whether it is one unit, or some in a row, and nothing more
    block: int = 0  # the size of its blocks, of which the first says nothing by itself


@dataclass(frozen=True)
class WrongPlace:
    """A place that holds all wrong values: how many of its units are wrong, and how many there are."""

    words: str
    wrong: int
    units: int
    outside: int
    as_well: tuple[str, ...] = ()  # other sizes of blocks that hold just these units

    @property
    def share(self) -> float:
        """The part of the place that is wrong."""
        return self.wrong / self.units


def place(questions: Sequence[Question]) -> str:
    """Return in words where values of failing cases are wrong; nothing where they are wrong everywhere."""
    lines = by_kind(questions)
    everywhere = best(lines, questions)
    failing = {kind: [line for line in of_kind if line.failed] for kind, of_kind in lines.items()}
    within = best(failing, [q for q in questions if q.failed])
    if everywhere and (everywhere[0].share == 1 or not within or within[0].share < 1):
        return f" Only {said(everywhere)}."
    if within:
        return f" In the failing cases, only {said(within)}."
    return _of_most(failing, _with_places(questions)) or _counted(failing, _with_places(questions))


def _of_most(lines: dict[str, list[UnitCounts]], cases: set[str]) -> str:
    """Return the place of the wrong values of most failing cases, where some others are wrong elsewhere too."""
    text, most = "", FEWEST
    for kind in (kind for kind in NAMED if lines.get(kind)):
        of_kind = lines[kind]
        units, some = _Units.of(of_kind), {line.case for line in of_kind if np.any(line.wrong)}
        telling = sorted(
            (line for line in of_kind if 0 < np.sum(line.wrong) < len(line.wrong)), key=lambda line: -len(line.wrong)
        )
        tried = (place for line in telling[:SHOWING] for place in _places(kind, [line]))
        for place in (place for place in tried if " to " not in place.words):  # a range of few numbers fits by chance
            beside = np.bincount(units.lines, units.wrong & ~place.holds(units.values, units.sizes), len(of_kind))
            within = cases & some - {of_kind[n].case for n in np.flatnonzero(beside)}
            if len(within) < max(most, MOST * len(cases)):
                continue
            judged = _judged(place, _Units.of([line for line in of_kind if line.case in within]), len(within))
            if judged:
                text, most = f" In {len(within)} of {len(cases)} failing cases, only {said([judged])}.", len(within) + 1
    return text


def _counted(lines: dict[str, list[UnitCounts]], cases: set[str]) -> str:
    """Return how many tokens, heads, ... of the plainest failing case are wrong, if they are one or two of several."""
    for kind in COUNTED:
        few = [line for line in lines.get(kind, []) if np.any(line.wrong)]
        if few and cases <= {line.case for line in few} and all(np.sum(line.wrong) <= FEW < line.size for line in few):
            line = min(few, key=lambda line: line.size)
            numbers = [f"{v + _first(kind):g}" for v in line.values[line.wrong]]
            verb = "is" if len(numbers) == 1 else "are"
            others = len({line.case for line in few}) - 1
            more = f"; in {'the' if others == 1 else 'each'} other failing case one or two are" if others else ""
            count = f"{len(numbers)} of {line.size} {_plural(kind)} {verb} wrong"
            return f" In {line.case}, {count}: {' and '.join(numbers)}{more}."
    return ""


def _first(kind: str) -> int:
    """Return the number of the first unit: calls are counted from 1, as in the lines of failures."""
    return int(kind == "call")


def _plural(kind: str) -> str:
    """Return the plural of a kind of units."""
    if kind == "query":
        return "queries"
    return kind.replace("row", "rows") if "row" in kind else f"{kind}s"


def common(questions: Sequence[Question]) -> str:
    """Return what all wrong values have in common: NaN, zero, infinite, True, what stands there in the input or elsewhere."""
    pairs = []
    for question in (q for q in questions if q.failed):
        for observation in question.observations:
            wrong = observation.wrong
            x = question.calls[observation.call].inputs.get("x", np.zeros(()))
            from_x = np.broadcast_to(x, wrong.shape) if np.shape(x) == wrong.shape else np.full(wrong.shape, np.nan)
            of_x = np.isin(observation.observed[wrong], x)
            pairs.append((observation.observed[wrong], from_x[wrong], observation.expected[wrong], of_x))
    values, inputs = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    if not values.size:  # no number is beyond the bounds that the diagnosis has: the judge has narrower ones
        return ""
    if REGISTRY[questions[0].op].returns == "mask":
        return f" All wrong values are {bool(values[0])}." if len(np.unique(values)) == 1 else ""
    rights = np.concatenate([p[2] for p in pairs])
    if values.dtype.kind != "f":
        return _of_integers(values, rights)
    if (times := _times(values, rights)) is not None:
        return f" The wrong values are {times:.5g} times what they should be."
    tests = {"NaN": np.isnan(values), "0": values == 0, "infinite": np.isinf(values), "the input's own": values == inputs}
    sentence = next((f" The wrong values are {word}." for word, same in tests.items() if np.all(same)), "")
    sizes = np.unique(np.abs(values))
    if not sentence and len(sizes) == 1 and len(values) >= LEAST:
        sentence = f" All wrong values are {' or '.join(f'{v:.9g}' for v in np.unique(values))}."
    moved = all(np.all(p[3]) for p in pairs)
    return sentence or (" The wrong values are numbers of x." if moved else _of_fewer_bits(values, rights, questions[0].dtype))


def _of_fewer_bits(values: Array, rights: Array, dtype: str) -> str:
    """Return which narrower dtype holds all of many wrong reals, although it does not hold the right ones."""
    if len(np.unique(values)) < MANY or dtype in NARROWER or not np.all(np.isfinite(values)):
        return ""
    for narrow in NARROWER:
        if np.all(_rounded(values, narrow) == values) and np.mean(_rounded(rights, narrow) == rights) < HELD:
            return f" {NARROW_VALUES} {narrow} holds."
    return ""


def _of_integers(values: Array, rights: Array) -> str:
    """Return how wrong integers come from the right ones: by one difference, or modulo a number."""
    apart = np.unique(values.astype(np.int64) - rights.astype(np.int64))
    if len(values) < LEAST or not apart.size:
        return ""
    if len(apart) == 1:
        return f" The wrong values are {abs(apart[0])} too {'large' if apart[0] > 0 else 'small'}."
    for name, size in INTEGERS.items():
        low = 0 if name.startswith("u") else size // 2
        if np.all(values == (rights + low) % size - low):
            return f" The wrong values are the right ones as {name} holds them."
    modulus = int(np.gcd.reduce(apart))
    wrapped = modulus > 1 and np.all(values == rights % modulus)
    return f" The wrong values are the right ones modulo {modulus}." if wrapped else ""


def _times(values: Array, rights: Array) -> float | None:
    """Return the number that wrong reals are a multiple of the right ones by; None without one, or if it is near 1."""
    usable = np.isfinite(values) & (rights != 0)
    if np.sum(usable) < MANY or not np.all(values[~usable] == rights[~usable]):
        return None
    ratios = values[usable] / rights[usable]
    middle = float(np.median(ratios))
    return middle if abs(middle) > ALIKE < abs(middle - 1) and np.all(np.abs(ratios - middle) < ALIKE * abs(middle)) else None


def held_are_right(questions: Sequence[Question], dtype: str, first: float) -> bool:
    """Return whether the integers that a dtype holds are right, with cases on either side of the first wrong one."""
    lines = [line for line in by_kind(questions).get("position", []) if line.size]
    values, wrong = (np.concatenate([np.abs(getattr(line, n)) for line in lines] or [[]]) for n in ("values", "wrong"))
    held = _rounded(values, dtype) == values
    if np.any(wrong.astype(bool) & held):
        return False
    return bool(np.any(values[held] > first) and np.any((values[held] >= first - 1) & (values[held] < first)))


def _rounded(values: Array, dtype: str) -> Array:
    """Return numbers as a dtype holds them."""
    if dtype == "int16":
        return np.where(np.abs(values) < 2**15, values, np.nan)
    return np.asarray(round_to(values, dtype), dtype=np.float64)


def wrong_and_telling(question: Question, observation: Observation) -> tuple[Array, Array]:
    """Return which values of an output are wrong, and which say something."""
    wrong = observation.wrong & np.full(observation.expected.shape, question.failed)
    return wrong, wrong | ~_trivial(question.calls[observation.call], observation)


def by_kind(questions: Sequence[Question], masks: Masks = wrong_and_telling) -> dict[str, list[UnitCounts]]:
    """Return tokens, keys, heads, positions, ... of all outputs, with which of them are wrong."""
    lines: dict[str, list[UnitCounts]] = {}
    for question in (q.whole for q in questions):
        names = REGISTRY[question.op].outputs
        both_of = np.zeros((2, len(question.calls), len(names)), dtype=bool)  # wrong and telling, by call and output
        for observation in question.observations:
            wrong, telling = masks(question, observation)
            call, mask = question.calls[observation.call], REGISTRY[question.op].returns == "mask"
            for kind, values, size, bad in _units(question, call, observation.name, wrong, telling):
                lines.setdefault(kind, []).append(UnitCounts(question.id, question.failed, values, size, bad, mask))
            both_of[:, observation.call, names.index(observation.name)] = np.any(wrong), np.any(telling)
        if len(question.calls) > 1:
            _append(lines.setdefault("call", []), question, np.any(both_of, axis=2))
        for both in np.moveaxis(both_of, 1, 0) if len(names) > 1 else ():
            _append(lines.setdefault("output", []), question, both, names)
    return lines


def _append(lines: list[UnitCounts], question: Question, both: Array, names: tuple[str, ...] = ()) -> None:
    """Append the calls or outputs of a question that tell something, and which of them are wrong."""
    wrong, telling = both
    lines.append(UnitCounts(question.id, question.failed, np.flatnonzero(telling), len(telling), wrong[telling], names=names))


def _trivial(call: Call, observation: Observation) -> Array:
    """Return which values say nothing if they are right: those of the input, and of reals 0, 1 and -1."""
    expected = observation.expected
    if expected.dtype.kind != "f":
        return np.zeros(expected.shape, dtype=bool)
    x = call.inputs.get("x", np.zeros(()))
    unchanged = expected == x if np.shape(x) == expected.shape else np.zeros(expected.shape, dtype=bool)
    return np.asarray(unchanged | np.isin(expected, (0.0, 1.0, -1.0)))


def _units(question: Question, call: Call, name: str, wrong: Array, told: Array) -> Iterator[tuple[str, Array, int, Array]]:
    """Yield the units of every kind in one output, each with which of them are wrong; those without a `told` value are not."""
    words = axes_of(question.op, call, name)
    along = [question.answer.along(name, axis, size) for axis, size in enumerate(wrong.shape)]
    both = np.stack([wrong, told])

    def kept(values: Array, size: int, any_of: Array) -> tuple[Array, int, Array]:
        return values[any_of[1]], size, any_of[0][any_of[1]]

    for axis, word in enumerate(words):
        others = tuple(1 + k for k in range(wrong.ndim) if k != axis)
        units = kept(*along[axis], np.any(both, axis=others))
        if axis in (wrong.ndim - 2, wrong.ndim - 3):
            yield (f"row of axis {axis - wrong.ndim}", *units)
        if words.count(word) == 1:
            yield (word, *units)
    if not wrong.size:
        return
    if wrong.ndim > 1:
        shape = tuple(size for _, size in along[:-1])
        numbers = np.ravel_multi_index(np.ix_(*(indices for indices, _ in along[:-1])), shape).reshape(-1)
        yield ("row counted through all axes", *kept(numbers, math.prod(shape), np.any(both, axis=-1).reshape(2, -1)))
    pairs = pairs_of(question.op, call, wrong.shape[-1]) if wrong.ndim else None
    if pairs is not None:
        lanes = np.any(both.reshape(2, -1, wrong.shape[-1]), axis=1)[:, pairs >= 0]
        bad = np.stack([np.bincount(pairs[pairs >= 0], lane) > 0 for lane in lanes])
        yield ("pair", *kept(np.arange(bad.shape[1]), bad.shape[1], bad))
        first = np.isin(np.arange(len(pairs)), np.unique(pairs, return_index=True)[1])[pairs >= 0]
        of_members = np.stack([[np.any(lane[first]), np.any(lane[~first])] for lane in lanes])
        yield (MEMBER, *kept(np.arange(2), 2, of_members))
    of = coordinates_of(question.op, call, name) if wrong.size <= SMALL else None
    if of is not None and of.shape == wrong.shape[-1:]:
        lanes = np.any(both.reshape(2, -1, wrong.shape[-1]), axis=1)[:, of >= 0]
        count = len(call.inputs["positions"])
        bad = np.stack([np.bincount(of[of >= 0], lane, count) > 0 for lane in lanes])
        yield ("coordinate", *kept(np.arange(count), count, bad))
    if wrong.size <= LARGE:
        for kind, values, size, any_of in _of_values(question.op, call, name, both, words):
            yield (kind, *kept(values, size, any_of))


def _of_values(op: str, call: Call, name: str, both: Array, words: Sequence[str]) -> Iterator[tuple[str, Array, int, Array]]:
    """Yield positions, distances and rows of a table, each with masks of the wrong and of the told values."""
    shape = both.shape[1:]
    places = _signed(call, shape)
    where = positions_of_values(op, call, name) if places is None else places
    apart = _distances(call, words, shape)
    for kind, of_values in (("position", where if "query" not in words[-2:] else None), ("distance", apart)):
        if of_values is not None:
            values, size, bad = _grouped(of_values, both)
            yield kind, values, size, bad
            yield from ((f"{kind}{BESIDE}{word}", values, n, bad) for word, n in _numbers(op, call).items())
    rows = rows_of_table(op, call, name)
    if rows is not None:
        values, _, bad = _grouped(rows[0], both)
        from_table = values >= 0
        if not np.any(bad[0][~from_table]):  # else some wrong values do not come from the table
            yield "row of the table", values[from_table], rows[1], bad[:, from_table]


def _numbers(op: str, call: Call) -> dict[str, int]:
    """Return the whole numbers of a call that limits may be: its options, and how many rows a table has."""
    options = {name: n for name, n in {**defaults(op), **call.params}.items() if type(n) is int and n > 1}
    return options | ({"the number of rows of the table": len(call.inputs["table"])} if "table" in call.inputs else {})


def _grouped(where: Array, both: Array) -> tuple[Array, int, Array]:
    """Return the different numbers of the places, with masks of those with a wrong value and of those with a told value."""
    values, index = np.unique(np.broadcast_to(where, both.shape[1:]), return_inverse=True)
    index = index.reshape(-1)
    bad = [np.bincount(index, which.reshape(-1).astype(float), len(values)) > 0 for which in both]
    return values, len(values), np.stack(bad)


def _signed(call: Any, shape: tuple[int, ...]) -> Array | None:
    """Return positions with their sign, of tokens of x; None where there are none, or several axes of them."""
    if "relative_positions" in call.inputs:
        return np.asarray(call.inputs["relative_positions"], dtype=np.float64)
    positions = call.inputs.get("positions", call.inputs.get("position"))
    if positions is None:
        return None
    try:
        return np.broadcast_to(np.asarray(positions, dtype=np.float64)[..., None], shape)
    except ValueError:
        return None


def _distances(call: Any, words: Sequence[str], shape: tuple[int, ...]) -> Array | None:
    """Return the query's position less the key's."""
    q, k = (call.inputs.get(name) for name in ("q_positions", "k_positions"))
    if q is None or k is None or list(words[-2:]) != ["query", "key"]:
        return None
    apart = np.asarray(q, dtype=np.float64)[..., :, None] - np.asarray(k, dtype=np.float64)[..., None, :]
    while apart.ndim < len(shape) and apart.ndim > 2:  # heads stand between rows and queries
        apart = apart[..., None, :, :]
    try:
        return np.broadcast_to(apart, shape)
    except ValueError:
        return None


def best(lines: dict[str, list[UnitCounts]], questions: Sequence[Question], *, sure: bool = False) -> list[WrongPlace]:
    """Return the places that hold all wrong values and little else, the fullest first; nothing else if it is `sure`."""
    failing = _with_places(questions)
    enough = len(failing) == 1 and sum(_wrong(q) for q in questions if q.failed) >= MANY_WRONG
    candidates = []
    named = {kind: k for k, kind in enumerate(NAMED)}  # what has a name of its own comes first
    ranks = {kind: named.get(kind, len(NAMED) + ("axis" in kind) + 2 * ("axes" in kind)) for kind in lines}
    for order, (kind, of_kind) in enumerate(sorted(lines.items(), key=lambda item: ranks[item[0]])):
        if len(failing) == 0 or not failing <= {line.case for line in of_kind if np.any(line.wrong)}:
            continue
        fullest: tuple[tuple[float, int], WrongPlace] | None = None
        units = _Units.of(of_kind)
        several = enough and max(line.size for line in of_kind) >= MANY
        for place in _places(kind, of_kind):
            judged = _judged(place, units, LEAST if several and place.row else len(failing), sure=sure)
            key = (judged.share, judged.outside) if judged else (0.0, 0)
            if judged and fullest is not None and key == fullest[0] and _alike(judged) == _alike(fullest[1]):
                fullest = key, replace(fullest[1], as_well=(*fullest[1].as_well, *re.findall(r"block of (\d+)", judged.words)))
            elif judged and (fullest is None or key > fullest[0]):
                fullest = key, judged
        if fullest:
            candidates.append((-fullest[1].share, order, _with_its_word(fullest[1], kind, questions)))
    return [f for _, _, f in sorted(candidates, key=lambda item: item[:2])]


def _with_its_word(place: WrongPlace, kind: str, questions: Sequence[Question]) -> WrongPlace:
    """Return a place in rows of an axis with the word for the axis, or all words that it has in failing cases."""
    number = kind.partition("row of axis ")[2]
    if not number:
        return place
    failing = [(q, o) for q in questions if q.failed for o in q.observations if o.expected.ndim >= -int(number)]
    every = Counter(axes_of(q.op, q.calls[o.call], o.name)[int(number)] for q, o in failing)
    word, *others = (word for word, _ in every.most_common())
    if others:
        many = " or ".join(map(_plural, (word, *others)))
        return replace(place, words=place.words.replace(f"axis {number}", f"axis {number} ({many})", 1))
    words = re.sub(rf"\brow (\d+) of axis {number}", rf"{word} \1 (axis {number})", place.words)
    words = re.sub(rf"\brows of axis {number}", f"{_plural(word)} (axis {number})", words)
    return replace(place, words=re.sub(rf"\brow of axis {number}", f"{word} (axis {number})", words))


def _wrong(question: Question) -> int:
    """Return how many values of a case are wrong."""
    return sum(int(np.sum(o.wrong)) for o in question.whole.observations)


def _alike(place: WrongPlace) -> str:
    """Return the words of a place without their numbers."""
    return re.sub(r"\d+", "", place.words)


def _with_places(questions: Sequence[Question]) -> set[str]:
    """Return the failing cases that have places: whose outputs have more than the channels of one token."""
    axes = ((q.id, axes_of(q.op, q.calls[o.call], o.name)) for q in questions if q.failed for o in q.observations)
    return {id_ for id_, words in axes if not {*words} <= {"channel", "pair"}}


MEMBER, ORDINALS = "member", ("first", "second")  # the two channels of a pair
COUNTED = ("call", "batch row", "token", "query", "key", "head", "row", "column", "value")
NAMED = ("output", "call", "token", "query", "key", "head", "position", "distance", "batch row", "coordinate", "pair")


@dataclass(frozen=True)
class _Units:
    """All units of a kind in one row: number, total in its output, whether it is wrong, and output."""

    values: Array
    sizes: Array
    wrong: Array
    lines: Array

    @classmethod
    def of(cls, lines: Sequence[UnitCounts]) -> _Units:
        """Return the units of several outputs."""
        counts = [len(line.values) for line in lines]
        values, wrong = (np.concatenate([getattr(line, name) for line in lines]) for name in ("values", "wrong"))
        sizes = np.repeat(np.asarray([line.size for line in lines], dtype=np.int64), counts)
        return cls(values, sizes, wrong.astype(bool), np.repeat(np.arange(len(lines)), counts))


def _judged(place: UnitPlace, units: _Units, cases: int, *, sure: bool = False) -> WrongPlace | None:
    """
    Return a place with its counts, if all wrong units lie in it, most of it is wrong, and something lies outside.

    Where the mistake is known, it is `sure`: all of the place must be wrong, and right units of any output tell.
    """
    inside = np.asarray(place.holds(units.values, units.sizes))
    if np.any(units.wrong & ~inside) or not np.any(units.wrong & (units.values >= place.block)):
        return None
    bad = np.bincount(units.lines, units.wrong) > 0  # by output
    without = np.bincount(units.lines, ~inside)
    wrong, count, outside = int(np.sum(units.wrong)), int(np.sum(inside)), int(np.sum(without if sure else without[bad]))
    parted = int(np.sum(without[bad] > 0))  # outputs with wrong units inside and right ones outside
    fits = wrong == count and parted >= LEAST <= int(np.sum(without[~bad] > 0))  # as all units do, of right outputs too
    telling = sure or fits or parted >= TELLING * int(np.sum(bad))
    enough = (cases >= 2 or wrong >= LEAST) and telling
    if place.rest and wrong < count:  # the bits of saying which units are wrong, of outputs in which some are
        counts = zip(np.bincount(units.lines), np.bincount(units.lines, units.wrong), strict=True)
        if sum(math.log2(math.comb(int(n), int(k))) for n, k in counts) < SURPRISE:
            return None
    least = 1.0 if sure else place.least
    return WrongPlace(place.words, wrong, count, outside) if enough and outside and wrong >= least * count else None


def _places(kind: str, lines: Sequence[UnitCounts]) -> Iterator[UnitPlace]:
    """Yield the places that the wrong units of a kind may be."""
    bad = np.concatenate([line.values[line.wrong] for line in lines])
    good = np.concatenate([line.values[~line.wrong] for line in lines])
    first, last = float(np.min(bad)), float(np.max(bad))
    if kind in ("position", "distance"):
        yield from _of_numbers(kind, lines, good, bad)
        return
    if BESIDE in kind:
        yield from _beside_a_number(*kind.split(BESIDE))
        return
    if kind == "output":
        yield from (UnitPlace(f"the output {name}", lambda v, n, k=k: v == k) for k, name in enumerate(lines[0].names))
        return
    if kind == MEMBER:
        yield from (UnitPlace(f"the {word} channel of each pair", lambda v, n, k=k: v == k) for k, word in enumerate(ORDINALS))
        return
    many, shown = _plural(kind), _first(kind)
    if first == last and max(line.size for line in lines) == 2 and " of " not in kind:  # it may be odd-numbered, or the last
        yield UnitPlace(f"{kind} {first + shown:g} of 2", lambda v, n: v == first)
        return
    yield UnitPlace(f"the first {kind}", lambda v, n: v == 0)
    yield UnitPlace(f"{many} after the first", lambda v, n: v >= 1, rest=True)
    yield UnitPlace(f"the last {kind}", lambda v, n: v == n - 1)
    yield UnitPlace(f"{many} before the last", lambda v, n: v < n - 1, rest=True)
    yield UnitPlace(f"{many} from {_from(first, good, shown)}", lambda v, n: v >= first)
    if kind not in ("channel", "pair"):
        yield UnitPlace(f"{many} up to {last + shown:g}", lambda v, n: v <= last)
    noun, of, rest = kind.partition(" of axis ")
    yield UnitPlace(f"{noun} {first + shown:g}{of}{rest}", lambda v, n: v == first, row=True)
    yield from _of_blocks(kind, many, good, bad) if kind != "coordinate" else ()
    if last > first:
        yield UnitPlace(f"{many} {first + shown:g} to {last + shown:g}", lambda v, n: (v >= first) & (v <= last), row=True)


def _of_blocks(kind: str, many: str, good: Array, bad: Array) -> Iterator[UnitPlace]:
    """Yield the places that the wrong units of a kind may be in blocks."""
    yield UnitPlace(f"odd-numbered {many}", lambda v, n: v % 2 == 1)
    yield UnitPlace(f"even-numbered {many}", lambda v, n: v % 2 == 0)
    if kind == "channel":
        yield UnitPlace("channels of the second half", lambda v, n: v >= n // 2)
        yield UnitPlace("channels of the first half", lambda v, n: v < n // 2)
    yield UnitPlace(f"the last of an odd number of {many}", lambda v, n: v >= n - n % 2)
    for m in BLOCKS:
        if m > 2:
            yield UnitPlace(f"{many} after the last full block of {m} (n mod {m} of them)", lambda v, n, m=m: v >= n - n % m)
            yield UnitPlace(f"{many} in full blocks of {m}", lambda v, n, m=m: v < n - n % m, rest=True)
        yield UnitPlace(f"{many} in the last block of {m} or less", lambda v, n, m=m: v >= (n - 1) // m * m)
        if m > 3:
            yield UnitPlace(f"{many} that begin a block of {m}", lambda v, n, m=m: (v % m == 0) & (v > 0))
            yield UnitPlace(f"{many} that end a block of {m}", lambda v, n, m=m: v % m == m - 1)
            yield UnitPlace(f"{many} up to {m - 1}", lambda v, n, m=m: v < m)
            yield UnitPlace(f"{many} of the first half of a block of {m}", lambda v, n, m=m: v % m < m // 2, block=m)
            yield UnitPlace(f"{many} of the second half of a block of {m}", lambda v, n, m=m: v % m >= m // 2, block=m)
        yield from _of_residues(many, m, {*(good % m)}, {*(bad % m)}) if m > 2 else ()


def _of_residues(many: str, m: int, good: set[float], bad: set[float]) -> Iterator[UnitPlace]:
    """Yield the places of one number in each block, and of all others."""
    if len(bad) == 1:
        (k,) = bad
        yield UnitPlace(f"number {k:g} in each block of {m} {many}", lambda v, n: v % m == k, rest=True)
    if len(good) == 1:
        (k,) = good
        yield UnitPlace(f"{m - 1} of every {m} {many} (all but number {k:g} of a block)", lambda v, n: v % m != k, rest=True)


def _of_numbers(kind: str, lines: Sequence[UnitCounts], good: Array, bad: Array) -> Iterator[UnitPlace]:
    """Yield the places that wrong positions or distances may be."""
    if kind == "distance":
        partly = PARTLY if all(line.mask for line in lines) else MOST
        yield UnitPlace("values whose key comes after the query", lambda v, n: v < 0, partly)
        yield UnitPlace("values whose key comes before the query", lambda v, n: v > 0, partly)
        yield UnitPlace("values at odd distances", lambda v, n: v % 2 == 1, partly)
        yield UnitPlace("values at even distances", lambda v, n: v % 2 == 0, partly)
        yield UnitPlace("values whose key is at the query's position", lambda v, n: v == 0)
        yield UnitPlace("values whose key is not at the query's position", lambda v, n: v != 0)
        near, far = float(np.min(np.abs(bad))), float(np.max(np.abs(bad)))
        yield UnitPlace(f"values at distances from {_from(near, np.abs(good))}", lambda v, n: np.abs(v) >= near)
        yield UnitPlace(f"values at distances up to {far:g}", lambda v, n: np.abs(v) <= far)
        return
    yield UnitPlace("negative positions", lambda v, n: v < 0)
    yield UnitPlace("positions that are not integers", lambda v, n: v != np.round(v))
    near, far = float(np.min(np.abs(bad))), float(np.max(np.abs(bad)))
    if near > 2:  # a rotation by nothing is right by chance
        yield UnitPlace(f"positions from {_from(near, np.abs(good))}", lambda v, n: np.abs(v) >= near)
    yield UnitPlace(f"values at position {near:.9g}", lambda v, n: np.abs(v) == near)
    yield UnitPlace(f"positions up to {far:.9g}", lambda v, n: np.abs(v) <= far)


def _beside_a_number(kind: str, word: str) -> Iterator[UnitPlace]:
    """Yield the places that wrong positions or distances may be beside a number of the call."""
    many = "positions" if kind == "position" else "values at distances"
    yield UnitPlace(f"{many} of {word}", lambda v, n: np.abs(v) == n)
    yield UnitPlace(f"{many} of {word} or more", lambda v, n: np.abs(v) >= n)
    yield UnitPlace(f"{many} above {word}", lambda v, n: np.abs(v) > n)
    yield UnitPlace(f"{many} below {word}", lambda v, n: np.abs(v) < n)
    yield UnitPlace(f"{many} that are multiples of {word}", lambda v, n: (v % n == 0) & (v != 0))
    yield UnitPlace(f"{many} that are no multiples of {word}", lambda v, n: v % n != 0, rest=True)


def _from(first: float, good: Array, shown: int = 0) -> str:
    """Return from where on units are wrong, and the last right one before where others are between."""
    below = float(np.max(good[good < first], initial=-1.0))
    power = f" (2^{np.log2(first):.0f})" if first > 512 and np.log2(first) == int(np.log2(first)) else ""
    right = f" ({below + shown:.9g} is right)" if 0 <= below < first - 1 else ""
    return f"{first + shown:.9g} on{power}{right}"


def said(places: Sequence[WrongPlace]) -> str:
    """Return the fullest place, and one more that is as full, in words."""
    best = places[0]
    as_well = f" (a block of {' or '.join(best.as_well)} fits as well)" if best.as_well else ""
    same = [p for p in places[1:] if p.share == best.share == 1 and not re.search("axis|axes| of every ", p.words)]
    also = f", and only {same[0].words}" if same else ""
    one = best.words.startswith("the ") or re.match(
        r"(?!values|.* (?:up to|blocks? of) )[a-z ]+ \d+( of axis -\d( \([a-z ]+\))?| \(axis -\d\)| of 2)?$", best.words
    )
    noun = re.search(r"\b(batch rows|queries|positions|values|[a-z]+s)\b", best.words.partition(" of axis ")[0])
    of = "times" if one else f"such {noun[1] if noun else 'places'}"
    count = "" if best.wrong == best.units else f" ({best.wrong} of {best.units} {of})"
    return f"{best.words}{as_well} {'is' if one else 'are'} wrong{count}{also}"
