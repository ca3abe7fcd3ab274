"""
The scope of an implementation: what it supports of an operation, as it states or as its answers show.

An unanswered case is *explained* by a word of an option, a dtype or a rank that no answered case has; by another trait that
none has and at least two cases of the suite ask for; by a size beyond all answered ones, where at least two cases lie; by a
number that is the same wherever answered and not its default, as an offset of 2, where at least two cases have others; and,
only where none of these explains it, by a pair of words, of two options or of an option and a trait, that never occurs among
the answered and at least two cases have (one, if the trait is an empty array). All else is *selective*. The scope is told with
the fewest axes: first the one that explains most cases, with all that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from posref.spec import REGISTRY

from ..model import LoadedCase
from ..vocabulary.traits import DEFAULT, GIVEN, Traits, defaults, is_word

BOUNDS = frozenset({"positions", "position", "tokens", "queries", "keys", "head_size", "rows"})  # from above alone
FEW = 3  # sizes of a head that are told one by one
TOKENS_FIRST = "tokens_before_heads"  # the trait
ENOUGH = 2  # cases of the suite that ask for what a restriction excludes
Axis = tuple[str, ...]  # one, or the two of a pair


@dataclass(frozen=True, eq=False)
class Asked:
    """A case in one dtype, with its traits, its verdict, and the class that is claimed."""

    case: LoadedCase
    dtype: str
    traits: Traits
    verdict: str
    claim: str

    @property
    def id(self) -> str:
        """The id of the case."""
        return self.case.id

    @property
    def answered(self) -> bool:
        """Whether the implementation did not call the case unsupported."""
        return self.verdict != "unsupported"


@dataclass(frozen=True)
class Bound:
    """The smallest and the largest number, answered or stated; `multiple_of` is always stated."""

    low: float | None = None
    high: float | None = None
    multiple_of: int | None = None

    def holds(self, sizes: Iterable[float]) -> bool:
        """Return whether every size lies within it."""
        return all(
            (self.low is None or size >= self.low)
            and (self.high is None or size <= self.high)
            and (self.multiple_of is None or size % self.multiple_of == 0)
            for size in sizes
        )


@dataclass(frozen=True)
class Restriction:
    """An axis, or pair of axes, that the target limits, with the cases that this limit alone excludes."""

    axis: Axis
    allowed: Any  # a frozenset of words, a Bound, or a set of pairs that are not offered
    excludes: Callable[[Traits], bool]
    outside: tuple[Asked, ...] = ()  # none yet while it may be told
    text: str = ""  # where no axis says it
    covers: frozenset[str] = frozenset()  # of one that was found by experiment, the cases that it excludes
    lacks: tuple[str, ...] = ()  # traits that it leaves out besides what its axis says
    fresh: tuple[int, int] = (0, 0)  # fresh calls that came out as it predicts, and all that were asked

    def leaves_out(self, one: Asked) -> bool:
        """Return whether a case lies outside by this alone."""
        return one.id in self.covers or self.excludes(one.traits)


def infer(
    op: str, asked: Sequence[Asked], enough: int = ENOUGH, *, besides: Container[str] = (),
    refused: Sequence[Asked] | None = None,
) -> tuple[list[Restriction], list[Asked]]:  # fmt: skip
    """
    Return the restrictions that explain what was not answered, and what none explains.

    At least `enough` cases must ask for what a restriction excludes. Nothing is said on the axes `besides`: these were asked.
    Those that were not answered are explained, or of these only some that were `refused`.
    """
    refused = [one for one in asked if not one.answered] if refused is None else refused
    if not refused:
        return [], []
    singles = [one for one in _singles(op, asked, enough) if one.axis[0] not in besides]
    restrictions, left = _fewest(op, (tokens_first(asked), singles), refused)
    if left:
        pairs = [one for one in _pairs(op, asked, enough) if one.axis[1] not in besides or _are_of_dtypes(one, asked)]
        of_pairs, left = _fewest(op, (pairs,), left)
        restrictions += of_pairs
    return [_of_empty(one, asked) if one.axis == ("empty",) else _only_needed(one) for one in restrictions], left


def _are_of_dtypes(restriction: Restriction, asked: Sequence[Asked]) -> bool:
    """Return whether a pair belongs to a dtype; an experiment has a single dtype."""
    return restriction.axis[0] == "dtype" and len({one.dtype for one in asked}) > 1


def apply(op: str, stated: Mapping[str, Any], asked: Sequence[Asked]) -> tuple[list[Restriction], list[Asked]]:
    """Return what a stated scope excludes of the cases that were not answered, and those that lie inside it."""
    singles, pairs = _stated(stated)
    return _fewest(op, (singles, pairs), [one for one in asked if not one.answered])


def is_inside(stated: Mapping[str, Any], traits: Traits) -> bool:
    """Return whether traits lie inside a stated scope."""
    singles, pairs = _stated(stated)
    return not any(one.excludes(traits) for one in (*singles, *pairs))


def _stated(stated: Mapping[str, Any]) -> tuple[list[Restriction], list[Restriction]]:
    """Return the restrictions of a stated scope: those of one axis, and what is not offered together."""
    singles = [on_axis(axis, allowed) for axis, allowed in stated.items() if axis != "not"]
    pairs = [Restriction((*words,), frozenset({(*words.values(),)}), _is_all_of(words)) for words in stated.get("not", ())]
    return singles, pairs


def on_axis(axis: str, allowed: Any) -> Restriction:
    """Return the restriction that excludes cases which have what an axis does not allow."""

    def excludes(traits: Traits) -> bool:
        words, sizes = traits.words.get(axis, frozenset()), traits.sizes.get(axis)
        if sizes is not None and words:  # a number, told in words or in numbers, that has a default or may be None
            in_words = not isinstance(allowed, Bound) and not allowed.isdisjoint((DEFAULT, GIVEN, None))
            words, sizes = (words, None) if in_words else (frozenset(), sizes)
        if isinstance(allowed, Bound):
            return not allowed.holds(_numbers(words, sizes or ()))
        return not words <= allowed or not allowed.issuperset(sizes or ())

    return Restriction((axis,), allowed, excludes)


def _is_all_of(words: Mapping[str, Any]) -> Callable[[Traits], bool]:
    """Return whether a case has several properties at once: on every axis a word or a size that is among those given."""

    def has(axis: str, allowed: Any, traits: Traits) -> bool:
        of_call, sizes = traits.words.get(axis, frozenset()), traits.sizes.get(axis, ())
        if isinstance(allowed, Bound):
            return any(allowed.holds((number,)) for number in _numbers(of_call, sizes))
        return not allowed.isdisjoint((*of_call, *sizes))

    return lambda traits: all(has(axis, allowed, traits) for axis, allowed in words.items())


def _numbers(words: Iterable[Any], sizes: Iterable[float]) -> list[float]:
    """Return the numbers that a case has on an axis: a word such as None is neither inside a bound nor outside."""
    return [*(word for word in words if isinstance(word, int | float)), *sizes]


# ---- inference ------------------------------------------------------------------------------------------------------------
def is_option(op: str, axis: str) -> bool:
    """Return whether an axis is an option of words, a flag, a scaling, or the dtype."""
    return axis == "dtype" or is_word(REGISTRY[op].domains.get(axis))


def _is_named(op: str, axis: str) -> bool:
    """Return whether an axis is a named trait: no number, and not whether an option that is one is at its default."""
    return axis not in REGISTRY[op].domains and "." not in axis and axis not in ("rank", "axes")


def is_fixed(op: str, axis: str) -> bool:
    """Return whether an axis is a number that has no default, and is one or any."""
    return axis in REGISTRY[op].domains and not is_option(op, axis) and axis not in defaults(op)


def _singles(op: str, asked: Sequence[Asked], enough: int) -> list[Restriction]:
    """Return what every single axis may explain."""
    restrictions = []
    for axis in dict.fromkeys(axis for one in asked for axis in one.traits.words):
        words = _words(asked, axis)
        allowed = words_on(axis, (one for one in asked if one.answered))
        once = is_option(op, axis) or axis in ("empty", "rank")  # of nothing, no value is wrong; a rank is had or not
        missing = frozenset(w for w in words if w not in allowed and (once or len(words[w]) >= enough))
        if is_fixed(op, axis) or axis == "axes":
            others = {case for w, cases in words.items() if w not in allowed for case in cases}
            missing = frozenset(words) - allowed if len(allowed) == 1 and len(others) >= enough else frozenset()
        if missing:
            restrictions.append(Restriction((axis,), allowed, _has_one_of(axis, missing)))
    for axis in dict.fromkeys(axis for one in asked for axis in one.traits.sizes):
        bound = _always(asked, axis, enough) if axis in defaults(op) else _bound(asked, axis, enough)
        if bound != Bound():
            restrictions.append(on_axis(axis, bound))
    sizes = frozenset(size for one in asked if one.answered for size in one.traits.sizes.get("head_size", ()))
    others = {one.id for one in asked if not sizes.issuperset(one.traits.sizes.get("head_size", ()))}
    if 0 < len(sizes) <= FEW and len(others) >= enough:  # as code compiled for a few sizes has
        restrictions.append(on_axis("head_size", sizes))
    return restrictions


def shown(op: str, asked: Sequence[Asked]) -> dict[str, frozenset[Any]]:
    """Return the answered words of each option that answered cases cover only in part."""
    options = [axis for axis in REGISTRY[op].domains if is_option(op, axis)]
    answered = {axis: words_on(axis, (one for one in asked if one.answered)) for axis in options}
    return {axis: words for axis, words in answered.items() if words and words != words_on(axis, asked)}


def words_on(axis: str, asked: Iterable[Asked]) -> frozenset[Any]:
    """Return all words that cases have on an axis."""
    return frozenset[Any]().union(*(one.traits.words.get(axis, ()) for one in asked))


def _words(asked: Iterable[Asked], axis: str) -> dict[Any, set[str]]:
    """Return the cases that ask for every word of an axis."""
    by_word: dict[Any, set[str]] = {}
    for one in asked:
        for word in one.traits.words.get(axis, ()):
            by_word.setdefault(word, set()).add(one.id)
    return by_word


def _bound(asked: Sequence[Asked], axis: str, enough: int) -> Bound:
    """Return the ends of an axis beyond which enough cases lie, none of them answered; of one value answered, both."""
    answered = [one.traits.sizes[axis] for one in asked if one.answered and axis in one.traits.sizes]
    if not answered:
        return Bound()
    low, high = min(sizes[0] for sizes in answered), max(sizes[-1] for sizes in answered)
    below = {one.id for one in asked if axis in one.traits.sizes and one.traits.sizes[axis][0] < low}
    above = {one.id for one in asked if axis in one.traits.sizes and one.traits.sizes[axis][-1] > high}
    if low == high and axis not in BOUNDS and len(below | above) >= enough:
        return Bound(low, high)
    return Bound(low if len(below) >= enough and axis not in BOUNDS else None, high if len(above) >= enough else None)


def _always(asked: Sequence[Asked], axis: str, enough: int) -> Bound:
    """Return the one number that every answered case has, not its default, where enough cases have others."""
    answered = {one.traits.sizes[axis] for one in asked if one.answered and axis in one.traits.sizes}
    if len(answered) != 1 or any(DEFAULT in one.traits.words[axis] for one in asked if one.answered):
        return Bound()
    [sizes] = answered
    others = {one.id for one in asked if axis in one.traits.sizes and one.traits.sizes[axis] != sizes}
    return Bound(*sizes, *sizes) if len(sizes) == 1 and len(others) >= enough else Bound()


def tokens_first(asked: Sequence[Asked]) -> list[Restriction]:
    """Return the reason for a scope with tokens before heads, if every answered case with values has this order."""
    plain = [one for one in asked if one.answered and not {"empty", "one"} & one.traits.words.keys()]
    having = [TOKENS_FIRST in one.traits.words for one in plain]
    if not having or not all(having):
        return []
    return [
        Restriction(
            (TOKENS_FIRST,),
            None,
            lambda traits: TOKENS_FIRST not in traits.words,
            text="only tokens before heads",
            lacks=("heads_before_tokens",),
        )
    ]


def _has_one_of(axis: str, missing: frozenset[Any]) -> Callable[[Traits], bool]:
    return lambda traits: bool(traits.words.get(axis, frozenset()) & missing)


def _pairs(op: str, asked: Sequence[Asked], enough: int) -> list[Restriction]:
    """Return what pairs of words may explain: of two options, or of an option and a named trait."""
    options = ["dtype", *(axis for axis in REGISTRY[op].domains if is_option(op, axis))]
    traits = [a for a in dict.fromkeys(a for one in asked for a in one.traits.words) if a not in options and _is_named(op, a)]
    having = {axis: [(one, one.traits.words) for one in asked if one.traits.words.get(axis)] for axis in options}
    restrictions = []
    for first, second in [*combinations(options, 2), *product(options, traits)]:
        least = 1 if second == "empty" else enough
        cases: dict[tuple[Any, Any], set[str]] = {}
        for one, words in having[first]:
            for pair in () if one.answered else product(words[first], words.get(second, ())):
                cases.setdefault(pair, set()).add(one.id)
        for one, words in having[first] if cases else ():
            for pair in product(words[first], words.get(second, ())) if one.answered else ():
                cases.pop(pair, None)
        missing = frozenset(pair for pair in cases if len(cases[pair]) >= least)
        if missing:
            restrictions.append(Restriction((first, second), missing, _has_pair(first, second, missing)))
    return restrictions


def _of_empty(restriction: Restriction, asked: Sequence[Asked]) -> Restriction:
    """Return a restriction without the words that explain no case: other axes explain the rest."""
    words = words_on("empty", restriction.outside) - restriction.allowed
    return replace(restriction, allowed=words_on("empty", asked) - words, excludes=_has_one_of("empty", words))


def _only_needed(restriction: Restriction) -> Restriction:
    """Return a restriction of two axes with those pairs alone that explain a case: single words explain the rest."""
    if len(restriction.axis) == 1:
        return restriction
    first, second = restriction.axis
    words = [one.traits.words for one in restriction.outside]
    pairs = {(a, b) for a, b in restriction.allowed if any(a in w.get(first, ()) and b in w.get(second, ()) for w in words)}
    return replace(restriction, allowed=frozenset(pairs), excludes=_has_pair(first, second, frozenset(pairs)))


def _has_pair(first: str, second: str, missing: frozenset[tuple[Any, Any]]) -> Callable[[Traits], bool]:
    def has(traits: Traits) -> bool:
        return any(a in traits.words.get(first, ()) and b in traits.words.get(second, ()) for a, b in missing)

    return has


# ---- the fewest axes ------------------------------------------------------------------------------------------------------
def _fewest(
    op: str, groups: Sequence[Sequence[Restriction]], refused: Sequence[Asked]
) -> tuple[list[Restriction], list[Asked]]:
    """Return restrictions that explain as much as all together, those of the first group before others, and what is left."""
    chosen: list[Restriction] = []
    left = list(refused)
    for candidates in groups:
        rest = [(candidate, [one for one in left if candidate.excludes(one.traits)]) for candidate in candidates]
        while rest:
            best, outside = max(rest, key=lambda pair: (len(pair[1]), _preference(op, pair[0].axis)))
            if not outside:
                break
            chosen.append(replace(best, outside=tuple(outside)))
            left = [one for one in left if one not in outside]
            rest = [(c, [one for one in explained if one not in outside]) for c, explained in rest if c is not best]
    return chosen, left


def _preference(op: str, axis: Axis) -> tuple[int, tuple[int, ...]]:
    """Return what decides between axes that explain as many: options before traits before bounds, then the name."""
    kind = 2 if is_option(op, axis[0]) else 0 if axis[0] in BOUNDS else 1
    return kind, tuple(-ord(c) for c in " ".join(axis))
