"""Finds the feature that failing cases have and passing cases lack: an option, a form of input, a size not a multiple of 8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from posref.scaling import Scaling
from posref.spec import REGISTRY

from ..model import VIEWS, Call, LoadedCase
from ..vocabulary import traits
from .shapes import sizes

VOWELS = "aeiou"
LONGEST = "longest axis"  # of all arguments
LARGE = 32
CHANCE_FROM = 3  # from this size on: one against several is a difference of its own
CHANCE = 20  # ways to take as many of an option's values, from which a limit says something: few values are apart by chance
MUCH = 1.25  # times the largest passing case: cases so large were made for their size
LEAST = 2  # failing cases that a feature must explain
MADE_FOR_SIZE = "kernel"  # the tier whose cases are large; their options are those of no other case, and say nothing
EXCEPTIONS = 2  # passing cases that are named, beside many failing ones
FEWER = 4  # times as many cases must fail then
ALL_BUT_ONE = re.compile(r" not \S+$")  # a feature of all cases but those with one number
MULTIPLES = (4, 8, 16, 32, 64, 128)
VARIED = 6  # different sizes among cases, from which a multiple says something
FITS_BY_CHANCE = re.compile("^an odd |power of two|multiple|^([3-9]|[1-9][0-9]+) .* or more$")
ENOUGH = 10  # cases, from which such a feature, or a limit, says something: of so many features one fits fewer cases by chance
FAR = 64  # the least position from which a limit says something: smaller ones differ by chance
RARER = 0.125  # the same for sizes that are no powers of two: most cases have one
RARE = 0.5  # passing cases with a feature, to failing ones, up to which it is worth a word where it is not exact
FORM_WORDS = {"non-contiguous": "an input that is not contiguous", "broadcast-view": "an input that is a broadcast view",
              "either": "an input that is not contiguous, or is a broadcast view"}  # fmt: skip
CLUSTERS = ("form", "option", "given", "trait", "place", "axes")  # by which failing cases are told apart: no numbers
KINDS = ("form", "option", "given", "trait", "place", "size", "axes", "number", "most")  # the plainest first
PLAIN = ("form", "option", "given", "trait", "place")  # of which two say something together: with numbers they fit by chance
SAID = frozenset({"strided", "expanded", "gradient", "dtype"})  # traits that are told as a form, or never
Facts = dict[str, Any]
Has = Callable[[Facts], bool]
_KNOWN: ContextVar[dict[int, tuple[LoadedCase, list[Facts]]] | None] = ContextVar("facts by case", default=None)


def shared(failing: Sequence[LoadedCase], passing: Sequence[LoadedCase], *, sure: bool = False) -> str:
    """
    Return in words which feature tells failing cases from passing ones; nothing where none does.

    Where it is `sure` already in which places values are wrong, only one feature that fits exactly is worth a word.
    """
    exact = exactly(failing, passing)
    if exact or sure:
        return exact
    if len(failing) < LEAST or not passing:
        return ""
    if _are_few(passing, failing):
        verb = "passes" if len(passing) == 1 else "pass"
        return f" Of the cases that have values, only {' and '.join(case.id for case in passing)} {verb}."
    by_words = features([*failing, *passing])
    count, total = len(failing), len(failing) + len(passing)
    wanted = {c.id for c in failing}
    both = _pair(features([*failing, *passing], PLAIN if count > LEAST else PLAIN[:3]), wanted)  # others are chance in so few
    made = {c.id for c in [*failing, *passing] if c.tier == MADE_FOR_SIZE}
    if both and wanted != made:
        return f" Exactly the cases with {both} fail."
    if count <= LEAST:
        return ""
    near = {words: len(cases - wanted) for words, cases in by_words.items() if wanted < cases and _is_telling(words)}
    rare = {words: n for words, n in near.items() if n <= (RARER if "power of two" in words else RARE) * count}
    best = min(rare, key=rare.__getitem__, default="")
    if not best or rare[best] > (total - count) / 4:
        return ""
    also = f"{rare[best]} case{'s' * (rare[best] > 1)} with it pass{'es' * (rare[best] == 1)}"
    return f" All {count} failing cases have {best}; {also}."


def _are_few(passing: Sequence[LoadedCase], failing: Sequence[LoadedCase]) -> bool:
    """Return whether one or two cases pass, and many fail: a number tells them apart by chance."""
    return len(passing) <= EXCEPTIONS and FEWER * len(passing) < len(failing)


def _is_telling(words: str) -> bool:
    """Return whether a feature that some passing cases have too says something: small sizes and multiples fit by chance."""
    least = re.search(r"(\d+) (.* )?or more$", words)
    return not words.startswith("an odd") and "multiple" not in words and (least is None or int(least[1]) >= LARGE)


def _is_no_small_limit(words: str) -> bool:
    """Return whether a feature is another than a limit of a small size from below, which a few cases have by chance."""
    least = re.match(r"(\d+) .* or more$", words)
    return least is None or not CHANCE_FROM <= int(least[1]) < LARGE


def exactly(failing: Sequence[LoadedCase], passing: Sequence[LoadedCase]) -> str:
    """Return in words which feature all failing cases have and no passing case; nothing where there is none."""
    larger = _larger(failing, passing)
    if len(failing) < LEAST or not passing:
        return f" The failing case alone has {larger}." if larger else ""
    wanted = {c.id for c in failing}
    by_size = all(case.tier == MADE_FOR_SIZE for case in failing)
    kinds = tuple(sorted(KINDS, key=lambda kind: kind != "size")) if by_size else KINDS
    exact = [words for words, cases in features([*failing, *passing], kinds).items() if cases == wanted]
    if FEWER * min(len(failing), len(passing)) < max(len(failing), len(passing)):
        exact = [words for words in exact if _is_no_small_limit(words)]
    if _are_few(passing, failing):
        exact = [words for words in exact if not (FITS_BY_CHANCE.search(words) or ALL_BUT_ONE.search(words))]
    if len(failing) + len(passing) < ENOUGH:
        exact = [words for words in exact if not (FITS_BY_CHANCE.search(words) or re.search(r" reach | axes$", words))]
    if len(failing) <= LEAST:
        exact = [words for words in exact if " reach " not in words]
    if larger:
        return f" Exactly the cases with {larger} fail."
    exact = [words for words in exact if "multiple" not in words or 2 * len(passing) >= len(failing)]
    return f" Exactly the cases with {exact[0]} fail." if exact else ""


def _larger(failing: Sequence[LoadedCase], passing: Sequence[LoadedCase]) -> str:
    """Return in words by which size every failing case is much larger than every passing one; nothing if by none."""
    facts = {case.id: _facts(case) for case in (*failing, *passing)}

    def largest(case: LoadedCase, name: str) -> float:
        return max((f[name] for f in facts[case.id] if isinstance(f.get(name), int | float)), default=0)

    for name in dict.fromkeys(name for several in facts.values() for f in several for name in f if name.startswith("size ")):
        least = min((largest(case, name) for case in failing), default=0)
        most = max((largest(case, name) for case in passing), default=0)
        if passing and least >= max(LARGE, MUCH * most) and most > 0:
            word = name.removeprefix("size ")
            return f"{_many(word, least)} or more ({most:.9g} is right)"
    return ""


def features(cases: Sequence[LoadedCase], kinds: Sequence[str] = KINDS) -> dict[str, frozenset[str]]:
    """
    Return every feature in words, with the ids of the cases that have it. Those that all cases have are left out.

    A case of several calls has a feature if one of its calls has it.
    """
    facts_of = {case.id: _facts(case) for case in cases}
    made = {case.id for case in cases if case.tier == MADE_FOR_SIZE}
    by_words: dict[str, set[str]] = {}
    for kind in kinds:
        for words, has in _candidates([facts for several in facts_of.values() for facts in several], kind):
            ids = {id_ for id_, several in facts_of.items() if any(has(facts) for facts in several)}
            if 0 < len(ids) < len(cases) and (ids != made or kind == "size"):
                by_words.setdefault(words, ids)
    return {words: frozenset(ids) for words, ids in by_words.items()}


def _pair(found: Mapping[str, frozenset[str]], wanted: set[str]) -> str:
    """Return two features in words that only failing cases have together, if there are two that are no numbers."""
    wide = [(words, ids) for words, ids in found.items() if wanted <= ids]
    narrow = (f"{a} and {b}" for (a, x), (b, y) in combinations(wide, 2) if x & y == wanted)
    return next(narrow, "")


@contextmanager
def remembered() -> Iterator[None]:
    """Compute the facts of each case once: a diagnosis asks for them many times."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def _facts(case: LoadedCase) -> list[Facts]:
    """Return the facts of the calls of a case: its form, options, traits, sizes and positions, by words."""
    known = _KNOWN.get()
    if known is None:
        return _read(case)
    if id(case) not in known:
        known[id(case)] = case, _read(case)
    return known[id(case)][1]


def _read(case: LoadedCase) -> list[Facts]:
    shared: Facts = {f"form {form}": form == case.form for form in VIEWS}
    shared["form either"] = case.form in VIEWS
    return [shared | _traits(replace(case, calls=(call,))) | _of_call(case, call) for call in case.calls]


def _traits(case: LoadedCase) -> Facts:
    """Return the traits of a case in words, those of scopes too."""
    named = ((axis, value) for axis, values in traits.traits_of(case, "").words.items() for value in values)
    texts = (traits.text_of(axis, value) for axis, value in named if axis not in SAID)
    return {f"trait {text}": True for text in texts if text}


def _of_call(case: LoadedCase, call: Call) -> Facts:
    """Return the facts of one call."""
    facts: Facts = {}
    rows = max((x.shape[0] for n, x in call.inputs.items() if n.rpartition("_")[2] == "table" and x.ndim == 2), default=0)
    facts |= {"size row of a table": rows} if rows else {}
    defaults = traits.defaults(case.op)
    for name, value in {**{n: defaults[n] for n in REGISTRY[case.op].domains if n in defaults}, **call.params}.items():
        facts[f"option {name}"] = type(value).__name__ if isinstance(value, Scaling) else _plain(value)
        if isinstance(value, Scaling):
            facts |= {f"option {type(value).__name__}'s {field}": _plain(v) for field, v in vars(value).items()}
    counted = sizes(case.op, call)
    facts |= {f"size {word}": size for word, size in counted.items() if word != "pair" or not rows}
    last = [x.shape[-2] for x in call.expected.values() if x.ndim > 1]
    facts |= {"size row of the last two axes": last[0]} if last else {}
    facts |= {f"trait one {word}": True for word in traits.ONE.values() if counted.get(word) == 1}  # a vector is one token
    facts[f"size {LONGEST}"] = max((n for v in call.inputs.values() for n in v.shape), default=0)
    real = {n: v for n, v in call.inputs.items() if "position" not in n}
    facts |= {f"given {n}": True for n in real} | {f"axes {n}": v.ndim for n, v in real.items()}
    missing = [n for n, axes in REGISTRY[case.op].arrays.items() if axes.optional and n not in call.inputs]
    facts |= {f"trait no {name}": True for name in missing}
    optional = [n for n, axes in REGISTRY[case.op].arrays.items() if axes.optional]
    facts |= {f"trait {' or '.join(optional)} missing": True} if missing and len(optional) > 1 else {}
    for name, value in call.inputs.items():
        if "position" in name:
            facts |= _of_positions(name, np.asarray(value, dtype=np.float64))
    return facts


def _plain(value: Any) -> Any:
    """Return a value that may be a key: of a list a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _of_positions(name: str, value: Any) -> Facts:
    """Return the facts of positions."""
    steps = np.diff(value, axis=-1) if value.ndim and value.shape[-1] > 1 else np.ones(1)
    first = value.reshape(-1)[0] if value.size else 0.0
    words = name.replace("_", " ")
    if value.ndim == 0 and words == "position":
        return {"place a position other than 0": bool(first != 0), f"most {words}": float(abs(first)), f"axes {words}": 0}
    return {
        f"place {words} that are not consecutive": bool(np.any(steps != 1)),
        f"place {words} that do not begin at 0": bool(first != 0),
        f"place {words} that go back": bool(np.any(steps < 0)),
        f"place {words} that occur twice": bool(np.any(steps == 0)),
        f"most {words}": float(np.max(np.abs(value), initial=0.0)),
        f"axes {words}": value.ndim,
    }


def _candidates(facts_of: Sequence[Facts], kind: str) -> Iterator[tuple[str, Has]]:
    """Yield features of a kind in words, each with a function that says whether a call has it."""
    start = "option " if kind == "number" else f"{kind} "
    for name in dict.fromkeys(name for facts in facts_of for name in facts if name.startswith(start)):
        values = list(dict.fromkeys(facts[name] for facts in facts_of if name in facts))
        yield from _of_values(kind, name.removeprefix(start), name, values)


def _of_values(kind: str, word: str, name: str, values: Sequence[Any]) -> Iterator[tuple[str, Has]]:
    """Yield the features that one fact gives."""

    def equal(value: Any) -> Has:
        return lambda facts: name in facts and facts[name] == value

    def number(test: Callable[..., bool]) -> Has:
        return lambda facts: isinstance(facts.get(name), int | float) and test(facts[name])

    if kind == "form":
        yield FORM_WORDS[word], lambda facts: bool(facts.get(name))
    elif kind in ("trait", "place", "given"):
        words = f"{word} given" if kind == "given" else word
        yield words, lambda facts: bool(facts.get(name))
    elif kind == "axes":
        for value in values:
            yield f"{word} of {value} ax{'i' if value == 1 else 'e'}s", equal(value)
    elif kind == "most":
        for value in sorted(v for v in values if v >= FAR):
            yield f"{word} that reach {value:.9g}", number(lambda v, value=value: v >= value)
    elif kind == "option":
        for value in values:
            if isinstance(value, str | bool | None):
                yield (f"no {word}" if value is None else f"{word}={_shown(value)}"), equal(value)
        yield f"{word} given", lambda facts: facts.get(name) is not None
    numeric = sorted(v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    if kind == "size" and numeric:
        yield from _of_sizes(word, numeric, number)
    elif kind == "number" and numeric:
        yield from _of_numbers(word, numeric, number)


def _many(unit: str, count: float) -> str:
    """Return a number of units in words."""
    return f"an axis of {count:.9g}" if unit == LONGEST else f"{count:.9g} {unit if count == 1 else _plural(unit)}"


def _plural(unit: str) -> str:
    noun, of, rest = unit.partition(" of ")
    many = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in VOWELS else f"{noun}s"
    return f"{many}{of}{rest}"


def _of_sizes(unit: str, values: Sequence[float], number: Callable[[Callable[..., bool]], Has]) -> Iterator[tuple[str, Has]]:
    """Yield the features that a size gives."""
    if unit == LONGEST:
        for value in (v for v in values[1:] if v >= LARGE):
            yield f"{_many(unit, value)} or more", number(lambda v, x=value: v >= x)
        return
    if unit not in traits.ONE.values():
        yield f"one {unit}", number(lambda v: v == 1)
    for value in values[1:]:
        yield f"{value} {_plural(unit)} or more", number(lambda v, x=value: v >= x)
    for m in MULTIPLES if len(values) >= VARIED else ():
        yield f"a number of {_plural(unit)} that is not a multiple of {m}", number(lambda v, m=m: v % m != 0)
    yield f"a number of {_plural(unit)} that is not a power of two", number(lambda v: v < 1 or 2 ** round(np.log2(v)) != v)


def _of_numbers(word: str, values: Sequence[float], number: Callable[[Callable[..., bool]], Has]) -> Iterator[tuple[str, Has]]:
    """Yield the features that a numeric option gives."""
    for value in values:
        yield f"{word}={value:.9g}", number(lambda v, x=value: v == x)
    yield f"{word} not {values[0]:.9g}", number(lambda v, x=values[0]: v != x)
    for k, value in enumerate(values[1:], 1):
        if comb(len(values), k) >= CHANCE:
            yield f"{word} of {value:.9g} or more", number(lambda v, x=value: v >= x)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
