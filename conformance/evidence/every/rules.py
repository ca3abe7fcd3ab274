"""
Calls of any operation, by six rules. No operation is named: axes, domains and requirements of the registry decide.

- word: each word of each option, in several forms, and without each array that may be left out;
- size: each axis alone just beyond what a tile holds, and odd, and two together;
- value: ties, huge and tiny numbers, 24 bits, positions that float32 lacks;
- number: each number of an option at its ends, odd, small and large;
- limit: more rows through several axes, and more places of a table or cache, than 16 bits count;
- pair: two words on which the usual call agrees, with lists of numbers in an order on which they differ.

The suite stores the first of them, where they are small. The kernel tier asks all, judged live.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY, Flag, Integer, Integers, OneOf, Real

from ...calls import parameters_of
from ...model import Case
from ...vocabulary.axes import alternative, holds, is_star, names_in, result_axes, size_options, value_of, within
from .facts import Options, facts_of
from .made_calls import (
    SIZES,
    Places,
    answers,
    call,
    differ,
    far,
    has_coordinates,
    has_one_position,
    is_bounded,
    letters,
    shape_of,
    shifted,
    spread,
    triangular,
    usual_way,
    way_by_rows,
)

KERNEL = "kernel"
WORDS = 12  # words of options together, in calls of the kernel tier
LARGEST, LONGEST = 2500, 10_000  # numbers that a stored call takes and gives, and one of many tokens
LADDER = (33, 259, 1, 3, 7, 9, 65, 130, 517)
STORED_SIZES = {"Q": (259,), "K": (1, 259), "T": (259,), "P": (259,)}  # of tokens; of other axes 33
TOGETHER = ((65, 517), (33, 259), (3, 259))  # sizes of two axes, the first that a call can have
PERIOD = 509  # of positions in calls of many rows
LONG = 1030  # of tokens and keys
HEAVY = 1 << 18  # numbers that any call takes, or gives
ROWS, FARTHEST = (259, 254), 65_700  # more than 16 bits count: rows of two axes, and the last place
GROUPS = ((3, 2), (5, 1), (6, 2), (1, 6))  # queries of a group, and groups of keys
SMALL: Options = {"G": 1, "g": 1, "H": 1, "T": 2, "Q": 2, "K": 3}  # beside an axis that is large
FEW_CHANNELS: Options = {"D": 4, "n": 2, "d": 2, "e": 2, "c": 2, "m": 2}
NUMBERS = (3, 5, 7, 9, 12, 40, 64, 129, 1000)
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Form:
    """
    What calls of a word differ in: positions, leading axes, sizes by letter, and how arrays lie in memory.

    The suite stores calls of every word (``stored="words"``), of the usual ones alone (``"usual"``), or none.
    """

    name: str
    stored: str = ""
    bare: bool = False  # asked without optional arrays too
    rows: bool = False
    places: Places = spread
    form: str = ""
    how: Options = field(default_factory=dict)


FORMS = (
    Form("plain", "words", bare=True),
    Form("one-query", "usual", bare=True, rows=True, places=shifted(29), how={"R": (3,), "B": 3, "Q": 1, "T": 1, "last": True}),
    Form("two-rows", "usual", rows=True, how={"R": (3, 2), "B": 3, "P": (3, 2, 4), "T": 4, "Q": 2, "K": 4}),
    Form("strided", "usual", rows=True, form="non-contiguous", how={"R": (3,), "B": 3, "T": 4, "Q": 3}),
    Form("strided-rows", "usual", rows=True, form="non-contiguous", how={"R": (2,), "B": 2, "T": 5, "Q": 2}),
    Form("distant", "words", places=far),
    Form("first", "usual", places=shifted(0), how={"T": 9, "Q": 3, "K": 9, "last": True}),
    Form("lengths", "words", bare=True, places=shifted(0), how={"Q": 4, "K": 7, "last": True}),
    Form("square", "words", bare=True, places=shifted(0), how={"Q": 6, "K": 6, "last": True}),
    Form("lengths-decode", "words", places=shifted(0), how={"Q": 1, "K": 6, "last": True}),
    Form("lengths-more", "usual", places=shifted(0), how={"Q": 5, "K": 12, "last": True}),
    Form("square-more", "usual", places=shifted(0), how={"Q": 9, "K": 9, "last": True}),
    Form("negative", "usual", places=lambda count: np.arange(count) * 3 - 11),
    Form("far-negative", "usual", places=lambda count: -5 - np.arange(count) * 40),
    Form("quarters", "usual", places=lambda count: ((np.arange(count) * 9 + 3) % 23) / 4),
    Form("eighths", "usual", places=lambda count: 3.125 + (np.arange(count) * 29 % 31) / 8),
    Form("vector", "usual", places=shifted(6), how={"way": 0}),
    Form("expanded", "usual", rows=True, form="broadcast-view", how={"alike": True, "R": (3,), "G": 2, "T": 4, "Q": 3}),
    Form("expanded-rows", "usual", rows=True, form="broadcast-view", how={"alike": True, "R": (2,), "G": 2, "T": 3}),
    Form("rows", bare=True, rows=True, how={"R": (2,), "B": 2, "G": 2}),
    Form("long", bare=True, places=shifted(0), how={"T": 131, "Q": 70, "K": 133, "G": 1, "g": 1, "H": 1}),
)
LENGTHS = tuple(
    form.name for form in FORMS if form.name.startswith(("lengths", "square"))
)  # forms of code that takes numbers of queries and keys
UNBOUNDED = ("distant", "negative", "far-negative")  # forms whose positions no table holds


@dataclass(frozen=True)
class Asked:
    """One call that a rule asks for: what `made_calls.call` takes, and what becomes of its arrays."""

    rule: str
    name: str
    params: Options
    how: Options
    stored: bool = False
    form: str = ""
    changed: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)
    axis: str = ""  # the letter whose size is asked for
    most: int = HEAVY  # numbers that it takes, or gives

    def id(self, op: str) -> str:
        """Return the id of its case: that of a stored one, or of the kernel tier."""
        words = re.sub(r"[^a-z0-9]+", "-", self.name.replace(".", "p").lower()).strip("-")
        return f"{op}/{self.rule}/{words}" if self.stored else f"{op}/{KERNEL}/{self.rule}-{words}"


@dataclass(frozen=True)
class Word:
    """Words of options together, by what differs from the usual ones, and the sizes that they need."""

    name: str
    params: Options
    sizes: Options
    stored: bool  # the suite has calls of it: no more differs from the usual call than one word needs


# ---- words of options ------------------------------------------------------------------------------------------------------
def words(op: str) -> list[Word]:
    """Return the usual words, every other word of every option alone, and then their products up to `WORDS`."""
    domains = REGISTRY[op].domains
    choices = {name: domain for name, domain in domains.items() if isinstance(domain, OneOf | Flag)}
    each = {name: domain.words if isinstance(domain, OneOf) else (False, True) for name, domain in choices.items()}
    usual = {name: _usual(op, name) for name in each}
    products = [dict(zip(each, several, strict=True)) for several in product(*each.values())]
    single = [
        _admitted(op, [{**usual, name: word}, *(chosen for chosen in products if chosen[name] == word)])
        for name, several in each.items()
        for word in several
        if word != usual[name]
    ]
    first = [usual, *single]
    every = [*first, *products]
    different = [chosen for k, chosen in enumerate(every) if chosen not in every[:k]]
    return [_word(op, usual, chosen, stored=chosen in first) for chosen in different[: max(WORDS, len(first))]]


def _admitted(op: str, several: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first words together that the registry's requirements admit, the first of all where none are."""
    of_words = [text for text in REGISTRY[op].requires if names_in(text) <= several[0].keys()]
    return next((chosen for chosen in several if all(holds(text, chosen) for text in of_words)), several[0])


def _usual(op: str, option: str) -> Any:
    """Return the value of an option in a generated call, by default that of the signature."""
    default = parameters_of(REGISTRY[op].function)[option].default
    return facts_of(op).options.get(option, default)


def _word(op: str, usual: Options, chosen: Options, *, stored: bool) -> Word:
    apart = [name for name, word in chosen.items() if word != usual[name]]
    options = facts_of(op).options
    for name in apart:
        options |= facts_of(op).with_option.get(name, {})
        options |= facts_of(op).with_option.get(f"{name}={chosen[name]}", {})
    options |= {name: word for name, word in chosen.items() if name in options or name in apart}
    name = "-".join(f"{option}-{chosen[option]}" for option in apart) or "usual"
    return Word(name, *_parted(op, options), stored)


def _parted(op: str, given: Options) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and the sizes by letter among what a call has."""
    options = {name: value for name, value in given.items() if name in REGISTRY[op].domains}
    return options, {name: value for name, value in given.items() if name not in options}


def optional(op: str) -> tuple[str, ...]:
    """Return the arrays that may be left out."""
    return tuple(name for name, axes in REGISTRY[op].arrays.items() if axes.optional)


def _word_calls(op: str) -> Iterator[Asked]:
    """Yield each word in every form, and without optional arrays: all of them, and each alone."""
    left_out = optional(op)
    for word in words(op):
        for form in forms(op):
            how = {"places": form.places, "rows": form.rows, **form.how, **word.sizes}
            if form.form:
                how["way"] = way_by_rows(op)
            stored = word.stored and (form.stored == "words" or (form.stored == "usual" and word.name == "usual"))
            yield Asked("word", f"{word.name}-{form.name}", word.params, how, stored, form.form)
            if left_out and form.bare:
                bare = {**how, "without": left_out}
                yield Asked("word", f"{word.name}-{form.name}-bare", word.params, bare, stored, form.form)
    usual = words(op)[0]
    for name in left_out if len(left_out) > 1 else ():
        yield Asked("word", f"without-{name}", usual.params, {**usual.sizes, "without": (name,)}, stored=True)


def forms(op: str) -> Iterator[Form]:
    """Yield the forms that an operation's calls can have."""
    kinds = {axes.kind for axes in REGISTRY[op].arrays.values()}
    placed = {"position", "integer"} & kinds
    ways = any("|" in axes.shape for axes in REGISTRY[op].arrays.values())
    apart = not {"T", "Q", "*R"} & letters(op, 0)  # an alternative without leading axes
    bounded = {*REGISTRY[op].arrays} if is_bounded(op) or has_coordinates(op) else set()
    lacking = {
        *(() if placed and not is_bounded(op) else UNBOUNDED),
        *(() if "position" in kinds else ("quarters", "eighths")),
        *(() if ways and apart and not has_coordinates(op) else ("vector",)),
        *(() if {"q_positions", "k_positions"} <= {*REGISTRY[op].arrays} - bounded else LENGTHS),
        *(() if any(is_star(axis) for axis in letters(op)) else ("strided", "strided-rows", "expanded", "expanded-rows")),
    }
    if has_one_position(op) or not letters(op) & {"T", "Q", "K", "*R", "*B", "*P"}:
        lacking |= {form.name for form in FORMS} - {"plain", *UNBOUNDED, "quarters", "eighths"}
    yield from (form for form in FORMS if form.name not in lacking)


# ---- sizes of axes ---------------------------------------------------------------------------------------------------------
def _sized_axes(op: str) -> tuple[set[str], set[str], set[str], dict[str, Any]]:
    """Return the axes whose sizes are asked for, the leading ones, all letters, and what other axes are beside a large one."""
    axes = letters(op, usual_way(op))
    used = {name for axis in axes if not is_star(axis) for name in names_in(axis)}
    leading = {axis.lstrip("*") for axis in axes if is_star(axis)} - ({"P"} if "T" in used or has_one_position(op) else set())
    small = {"without": optional(op), "places": shifted(0), "last": True, **{n: size for n, size in SMALL.items() if n in used}}
    return (axes & used | leading) - REGISTRY[op].domains.keys(), leading, used, small


def _size_calls(op: str) -> Iterator[Asked]:
    """Yield calls in which one axis is larger than a tile, or odd; no other one is large."""
    axes, leading, used, small = _sized_axes(op)
    for word in words(op)[:4]:
        for axis in sorted(axes):
            for size in (*LADDER, *((LONG,) if axis in STORED_SIZES else ())):
                how = {**small, **word.sizes, **({axis: (size,), "rows": True} if axis in leading else {axis: size})}
                name = f"{word.name}-{_apart(axis)}-{size}"
                stored = word.name == "usual" and size in STORED_SIZES.get(axis, (33,))
                yield Asked("size", name, word.params, how, stored, axis=axis)
    if {"G", "g"} <= used:
        usual = words(op)[0]
        for queries, keys in GROUPS:
            how = {"without": optional(op), **usual.sizes, "g": queries, "G": keys, "H": queries * keys}
            yield Asked("size", f"groups-{queries}-{keys}", usual.params, how, stored=True)


def _two_size_calls(op: str) -> Iterator[Asked]:
    """Yield calls in which two axes are large, in either order: a kernel may be wrong in later tiles of both alone."""
    axes, leading, _, small = _sized_axes(op)
    usual, low = words(op)[0], -(PERIOD // 2) if "negative" in {form.name for form in forms(op)} else 0

    def around(count: int) -> Array:
        return np.arange(count) % PERIOD + low  # all positions of many rows would be far ones

    for one, other in (*permutations(sorted(axes), 2), *((axis, axis) for axis in sorted(leading))):
        for sizes in TOGETHER:
            sizes_of_axes: dict[str, Any] = {one: sizes} if one == other else dict(zip((one, other), sizes, strict=True))
            sizes_of_axes = {
                axis: (size,) if axis in leading and one != other else size for axis, size in sizes_of_axes.items()
            }
            how = {**FEW_CHANNELS, **small, **usual.sizes, **sizes_of_axes, "rows": bool(leading)}
            how |= {"places": around} if one == other else {}
            name = f"{_apart(one)}-{sizes[0]}-{_apart(other)}-{sizes[1]}"
            asked = Asked("sizes", name, usual.params, how)
            if _arrays(op, asked, how) is not None:
                yield asked
                break


def _limit_calls(op: str) -> Iterator[Asked]:
    """Yield calls beyond what 16 bits count: a batch of heads, which is one axis of a grid, and rows of a table or cache."""
    axes, leading, used, small = _sized_axes(op)
    usual = words(op)[0]
    beside = {**FEW_CHANNELS, **small, **usual.sizes}
    for axis in sorted(leading):
        heads: dict[str, Any] = {letter: ROWS[1] for letter in ("H", "G" if "g" in used else "H") if letter in axes}
        rows = {axis: ROWS[:1], **heads} if heads else {axis: ROWS}
        how = {**beside, **rows, "rows": axis != "R", "shared": True, "places": lambda count: np.arange(count) % PERIOD}
        yield Asked("limit", f"{_apart(axis)}-of-two", usual.params, how, most=16 * HEAVY)
    known = _known(op, usual.params, beside)
    for name, array in REGISTRY[op].arrays.items():
        end = array.high or "0" if array.kind in ("position", "integer") else "0"
        for letter in sorted(names_in(end) - {*REGISTRY[op].domains, *array.shape.split()}):
            reached = (n for n in range(1, 2 * FARTHEST) if value_of(end, {**known, letter: n}) > FARTHEST)
            places = {letter: next(reached, None), "T": 9, "K": 9, "places": lambda count: FARTHEST - 8191 * np.arange(count)}
            if places[letter] is not None:
                yield Asked("limit", f"{name}-{_apart(letter)}", usual.params, {**beside, **places}, most=16 * HEAVY)


def _apart(axis: str) -> str:
    """Return the letter of an axis as it stands in an id, which has no capitals."""
    return axis if axis.isupper() else 2 * axis


# ---- values ----------------------------------------------------------------------------------------------------------------
def _powers(low: int, high: int, x: Array) -> Array:
    """Return numbers of five bits whose magnitudes lie between two powers of two."""
    k = np.arange(x.size).reshape(x.shape)
    return np.asarray(np.sign(x) * (1 + (k * 7 % 16) / 16) * 2.0 ** (low + k * 11 % (high - low + 1)))


def ties(x: Array) -> Array:
    """Return numbers half-way between two of few bits, of several magnitudes."""
    k = np.arange(x.size).reshape(x.shape)
    return np.asarray(np.sign(x) * (8 + k * 5 % 17 + 0.5) * 2.0 ** (k % 13 - 10))


def beyond_24_bits(count: int) -> Array:
    """Return positions that float32 cannot hold."""
    return np.asarray(2**24 + 1 + np.arange(count) * 2)


MAGNITUDES: dict[str, Callable[[Array], Array]] = {
    "ties": ties,
    "huge": partial(_powers, 14, 18),
    "large": partial(_powers, 2, 6),
    "wide": partial(_powers, -12, 12),
}
STORED_VALUES = ("ties", "huge")


def _value_calls(op: str) -> Iterator[Asked]:
    """Yield calls with numbers of other magnitudes and more bits than usual ones, one array at a time."""
    for word in words(op):
        usual = word.name == "usual"
        reals = [n for n, axes in REGISTRY[op].arrays.items() if axes.kind in ("real", "wide")]
        if reals:
            yield Asked("value", f"{word.name}-24-bits", word.params, {**word.sizes, "bits": 24}, usual)
            rows = {"rows": True, "R": (3,), "B": 3, "T": 4, "Q": 3, **word.sizes, "bits": 24}
            yield Asked("value", f"{word.name}-24-bits-rows", word.params, rows, usual)
        for name in (name for name in reals if not REGISTRY[op].arrays[name].ordered):
            for magnitude, changed in MAGNITUDES.items():
                stored = usual and magnitude in STORED_VALUES
                yield Asked(
                    "value", f"{word.name}-{name}-{magnitude}", word.params, word.sizes, stored, changed={name: changed}
                )
        if not is_bounded(op) and not has_one_position(op) and "distant" in {form.name for form in forms(op)}:
            yield Asked("value", f"{word.name}-beyond-24-bits", word.params, {**word.sizes, "places": beyond_24_bits}, usual)
            how = {"places": triangular(3), "T": 48, "Q": 6, "K": 48, **word.sizes}
            yield Asked("value", f"{word.name}-triangular", word.params, how)


# ---- numbers of options ----------------------------------------------------------------------------------------------------
def _number_calls(op: str) -> Iterator[Asked]:
    """Yield calls with one number of an option after another."""
    for option, domain in REGISTRY[op].domains.items():
        if not isinstance(domain, Integer | Real):
            continue
        for word in words(op)[:4]:
            options = {**word.params, **facts_of(op).with_option.get(option, {})}
            params, sizes = _parted(op, options)
            usual = params.get(option, _usual(op, option))
            how: dict[str, Any] = {} if has_one_position(op) else {"places": triangular(), "T": 9, "Q": 4, "K": 12}
            every = _integers(domain, usual) if isinstance(domain, Integer) else _reals(domain, usual)
            known = _known(op, params, {**how, **word.sizes, **sizes})
            values = [v for v in every if all(holds(text, {**known, option: v}) for text in REGISTRY[op].requires)]
            for k, value in enumerate(values):
                stored = word.name == "usual" and k < 2
                name = f"{word.name}-{option}-{value:g}"
                yield Asked("number", name, {**params, option: value}, {**how, **word.sizes, **sizes}, stored)


def _integers(domain: Integer, usual: int | None) -> list[int]:
    """Return numbers of a domain: its lowest ones, odd ones, large ones, and multiples of the usual one."""
    at = usual or domain.low
    high = domain.high
    near = (domain.low, *((high,) if high is not None else ()), 7, 40, domain.low + domain.step, 2 * at, 8 * at, *NUMBERS)
    steps = [max(domain.low, value // domain.step * domain.step) for value in near]
    return [value for value in dict.fromkeys(steps) if high is None or value <= high]


def _reals(domain: Real, usual: float | None) -> list[float]:
    """Return numbers of a domain: the ends of the usual ones, their middle, and multiples of the usual one."""
    low, high = domain.usual
    at = low if usual is None else usual
    values = (low, high, 3.0 * at, float((low * high) ** 0.5), 2.0 * at, 0.5 * at)
    return [value for value in dict.fromkeys(values) if value > domain.low]


# ---- two words of an option ------------------------------------------------------------------------------------------------
def _pair_calls(op: str) -> Iterator[Asked]:
    """Yield for every two words of an option on which the usual call agrees one on which they differ, with other lists."""
    for word in (word for word in words(op) if word.stored):
        chosen = {name: word.params.get(name, _usual(op, name)) for name in REGISTRY[op].domains}
        lists = {name: value for name, value in chosen.items() if isinstance(REGISTRY[op].domains[name], Integers)}
        orders = [dict(zip(lists, several, strict=True)) for several in product(*map(_orders, lists.values()))] if lists else []
        for name, domain in REGISTRY[op].domains.items():
            for other in domain.words if isinstance(domain, OneOf) and orders else ():
                if other == chosen[name] or not (word.name == "usual" or chosen[name] != _usual(op, name)):
                    continue
                trials = (Asked("pair", f"{word.name}-not-{other}", {**word.params, **order}, {}, True) for order in orders)
                differing = next((asked for asked in trials if _distinguishes(op, asked, {name: other})), None)
                if differing is not None and differing.params != word.params:
                    yield differing


def _orders(numbers: list[int]) -> list[list[int]]:
    """Return a list of an option, and the orders of as many different numbers."""
    return [numbers, *map(list, permutations(range(1, len(numbers) + 1)))]


def _distinguishes(op: str, asked: Asked, other: Options) -> bool:
    """Return whether a call and the one with another word are both answered, and otherwise."""
    arrays = _arrays(op, asked, asked.how)
    if arrays is None or not all(holds(text, {**asked.params, **other}) for text in REGISTRY[op].requires):
        return False
    both = [answers(op, arrays, {**asked.params, **more}) for more in ({}, other)]
    return bool(both[0] and both[1]) and not all(map(np.array_equal, *both))


RULES = (_word_calls, _size_calls, _value_calls, _number_calls, _pair_calls)


# ---- cases -----------------------------------------------------------------------------------------------------------------
def cases(op: str) -> Iterator[Case]:
    """Yield the cases of the suite."""
    yield from (case for case in _cases(op, RULES, lambda asked: asked.stored) if case.tier != KERNEL)


def kernel(op: str, only: str | None = None) -> Iterator[Case]:
    """Yield the calls of the kernel tier, or `only` the one of that id."""
    begin = None if only is None else only.split("/")[-1].partition("-")[0]
    wanted = _cases(op, (*RULES, _two_size_calls, _limit_calls), lambda asked: begin in (None, asked.rule))
    yield from (case for case in wanted if case.tier == KERNEL and only in (None, case.id))


def _cases(op: str, rules: Sequence[Callable[[str], Iterator[Asked]]], wanted: Callable[[Asked], bool]) -> Iterator[Case]:
    """Yield the cases of the wanted calls of some rules that the registry allows, each once."""
    seen: set[Any] = set()
    for asked in (asked for rule in rules for asked in rule(op) if wanted(asked)):
        case = _case(op, asked)
        if case is not None and (mark := _mark(case, asked)) not in seen:
            seen.add(mark)
            yield case


def _case(op: str, asked: Asked) -> Case | None:
    """Return the case of a call, None where the registry allows no such call or a result is not finite."""
    for how in _near(asked):
        arrays = _arrays(op, asked, how)
        results = () if arrays is None else answers(op, arrays, asked.params)
        if arrays is not None and results:
            asked = asked if _is_stored(op, asked, (*arrays.values(), *results)) else replace(asked, stored=False)
            tier = "core" if asked.stored else KERNEL
            return Case(asked.id(op), dict(asked.params), arrays, tier=tier, form=asked.form)
    return None


def _is_stored(op: str, asked: Asked, arrays: tuple[Array, ...]) -> bool:
    """Return whether a suite holds a call: it is small, and options that say how much is computed fit its values."""
    if asked.id(op).partition("/")[2] in facts_of(op).unstored:
        return False
    largest = max((size for x in arrays for size in x.shape), default=0)
    most = LONGEST if asked.axis in STORED_SIZES else LARGEST
    return sum(x.size for x in arrays) <= most and all(asked.params.get(n, 0) <= 2 * largest for n in size_options(op))


def _near(asked: Asked) -> Iterator[Options]:
    """Yield the parts of a call of the given size, or of the next even one, with few channels if possible."""
    for how in ({**FEW_CHANNELS, **asked.how}, asked.how) if asked.axis else (asked.how,):
        yield how
        if isinstance(how.get(asked.axis), int):
            yield {**how, asked.axis: how[asked.axis] + 1}


def _arrays(op: str, asked: Asked, how: Options) -> dict[str, Array] | None:
    """Return the arrays of a call, None where the registry does not admit it or it is too large."""
    known = _known(op, asked.params, how)
    if not all(holds(text, known) for text in REGISTRY[op].requires):
        return None
    try:
        results = [shape_of(result_axes(op, name, usual_way(op)), known, rows=True) for name in REGISTRY[op].outputs]
        if max(map(math.prod, results)) > asked.most or _given(op, how, known) > asked.most:
            return None
        with np.errstate(all="ignore"):
            _, arrays = call(op, f"{asked.rule}/{asked.name}", asked.params, **how)
    except (ValueError, TypeError, ZeroDivisionError):  # sizes that no axis can have
        return None
    if sum(x.size for x in arrays.values()) > asked.most or not asked.changed.keys() <= arrays.keys():
        return None
    for name, change in asked.changed.items():
        moved = within(change(arrays[name]), REGISTRY[op].arrays[name], known, 8)
        nearer = {**arrays, name: within(moved * 1.25, REGISTRY[op].arrays[name], known, 8)}
        arrays[name] = moved
        if not answers(op, arrays, asked.params) or not differ(op, asked.params, arrays, nearer):
            return None  # results that do not follow the numbers, as of a softmax with one key, ask nothing of them
    return arrays


def _given(op: str, how: Options, known: dict[str, Any]) -> int:
    """Return how many numbers a call takes, which need not be made to know it."""
    which = usual_way(op) if how.get("way") is None else how["way"]
    total = 0
    for name, axes in REGISTRY[op].arrays.items():
        if not (axes.optional and name in how.get("without", ())):
            rows = bool(how.get("rows")) or axes.kind not in ("position", "integer")
            total += math.prod(shape_of(alternative(op, axes.shape, which), known, rows=rows))
    return total


def _known(op: str, params: Options, how: Options) -> dict[str, Any]:
    """Return the options and the sizes of a call."""
    defaults = {n: p.default for n, p in parameters_of(REGISTRY[op].function).items() if n in REGISTRY[op].domains}
    known = {**SIZES, **facts_of(op).sizes, **defaults, **params, **how}
    known.setdefault("P", (*known["R"], known["T"]))
    return known


def _mark(case: Case, asked: Asked) -> Any:
    """Return what a call has that another one may lack: one that has no more is not asked again."""
    arrays = REGISTRY[case.op].arrays
    positions = {n: np.asarray(x) for n, x in case.inputs.items() if arrays[n].kind in ("position", "integer")}
    return (
        repr(sorted(case.params.items(), key=str)),
        tuple((name, np.shape(x)) for name, x in case.inputs.items()),
        tuple(x.tobytes() for x in positions.values()),
        (asked.form, asked.how.get("bits"), *((n, change) for n, change in asked.changed.items())),
    )
