"""Searches for rules on numbers that separate calls of one outcome from the others: one rule, or two joined by and or or."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from .number_rules import ALIKE, COMPARED, RELATIONS, Numbers, Rule, is_power_of_two, is_relation

STEPS = (2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128)  # of which a number may be a multiple
SHOWN = 3  # remainders of a rule, at most
TIMES = range(2, 17)  # how many times a number another may have to be
FEW = 8  # samples, of which no two rules are put together
PLAIN = 24  # rules, the plainest first, of which two are put together
WIDEST = (" over ", " minus ", " mod ", " per ")  # first what excludes most: a right call refutes it
DIVIDED = (("least", 1.0), ("other", 0.0), ("equal", 0.0), ("most", 0.0))  # rules of a remainder by another number
Sample = tuple[Numbers, bool]  # the quantities of a call, and whether it had the outcome that a rule is of
Rank = tuple[float, ...]  # the lower, the plainer
Candidate = tuple[Rank, Rule, int]  # and which samples have the rule, as bits


@dataclass(frozen=True)
class Guess:
    """Rules that all hold in calls of an outcome; where there is an `other`, in some of them, and that in the rest."""

    rules: tuple[Rule, ...]
    other: Rule | None = None

    def holds(self, numbers: Numbers) -> bool:
        """Return whether a call has the outcome, if the guess is right."""
        return all(rule.holds(numbers) for rule in self.rules) or (self.other is not None and self.other.holds(numbers))


def candidates(name: str, having: set[float], lacking: set[float]) -> Iterator[Rule]:
    """Yield the rules of one quantity that all calls of an outcome meet, the plainest first."""
    if is_relation(name):
        yield from _compared(name, having, lacking)
        return
    low, high = min(having), max(having)
    yield Rule(name, "least", (low,))
    if low == high:
        yield Rule(name, "equal", (low,))
    yield Rule(name, "most", (high,))
    if len(lacking) == 1 and not lacking & having:
        yield Rule(name, "other", (*lacking,))
    are_whole = {float(n).is_integer() for n in having}
    if are_whole == {False}:
        yield Rule(name, "no multiple", (1,))
    if are_whole == {True} and not all(float(n).is_integer() for n in lacking):
        yield Rule(name, "multiple", (1,))
    if False in are_whole:
        return
    for step in STEPS:
        rests = {n % step for n in having}
        if rests == {0}:
            yield Rule(name, "multiple", (step,))
        if 0 not in rests:
            yield Rule(name, "no multiple", (step,))
            yield Rule(name, "no multiple", (step, low))
        several = len(rests) > 1 and not is_power_of_two(step)  # which no code has: chance
        if step > 2 and not several and len(rests) < min(step - 1, SHOWN + 1) and len(having) > len(rests):
            yield Rule(name, "remainders", (step, *sorted(rests)))
    if not any(map(is_power_of_two, having)):
        yield Rule(name, "no power of two")


def _compared(name: str, having: set[float], lacking: set[float]) -> Iterator[Rule]:
    """Yield the rules of two numbers: one is above, below or equal to the other, a multiple of it, or so many times it."""
    word = next(word for word in RELATIONS if word in name)
    if word == " per ":
        for kind, values in (("equal", having), ("other", lacking)):
            if len(values) == 1 and min(values) in TIMES and (kind == "equal" or not values & having):
                yield Rule(name, kind, (*values,))
        return
    kinds = {" mod ": DIVIDED, " minus ": (*ALIKE,), " over ": (*COMPARED,)}[word]
    kinds = (*sorted(kinds, key=lambda one: one[0] != "other"),)
    for kind, number in kinds:
        rule = Rule(name, kind, (number,))
        if all(rule.holds({name: n}) for n in having):
            yield rule


def exclusions(name: str, having: set[float], lacking: set[float]) -> Iterator[Rule]:
    """Yield the rules of one quantity that no call without an outcome meets, though some with it do."""
    if is_relation(name):
        for kind, number in (("other", 0.0), ("least", 1.0), ("most", -1.0)) if " per " not in name else ():
            if not any(Rule(name, kind, (number,)).holds({name: n}) for n in lacking):
                yield Rule(name, kind, (number,))
        if " per " in name and len(lacking) == 1 and min(lacking) in TIMES:
            yield Rule(name, "other", (*lacking,))
        return
    low, high = min(lacking), max(lacking)
    if above := [n for n in having if n > high]:
        yield Rule(name, "least", (min(above),))
    if below := [n for n in having if n < low]:
        yield Rule(name, "most", (max(below),))
    if low == high:
        yield Rule(name, "other", (low,))
    if not all(float(n).is_integer() for n in lacking):
        return
    for step in sorted(STEPS, reverse=True):
        if all(n % step == 0 for n in lacking):
            yield Rule(name, "no multiple", (step,))
    if all(map(is_power_of_two, lacking)) and len(lacking) > 2:
        yield Rule(name, "no power of two")


def fitting(
    samples: Sequence[Sample], names: Iterable[str], direct: Iterable[str], exceptions: float = 0.0, at: Numbers | None = None
) -> list[Guess]:  # fmt: skip
    """
    Return the rules that part samples, the plainest first: of a number that was changed itself, then by the order of kinds.

    Where no rule does, two of which one is of a `direct` quantity are tried: both, or either of them, where the first holds
    `at` the call whose cause is sought. A wrong call may be right by chance, where its values are weak: `exceptions` says
    which share of right ones may meet a rule.
    """
    having = sum(1 << k for k, (_, has) in enumerate(samples) if has)
    lacking = (1 << len(samples)) - 1 - having
    if not having or not lacking:
        return []
    direct = {*direct}
    wide, narrow = (_all_of(samples, names, direct, kind) for kind in (candidates, exclusions))
    against = [(entry, (entry[2] & lacking).bit_count()) for entry in wide if not having & ~entry[2]]
    exact = [rule for (_, rule, _), count in against if not count]
    if any(rule.quantity in direct for rule in exact):
        return [*(Guess((rule,)) for rule in exact), *_from_a_number_on(against, lacking)]
    plain = [entry for entry, count in against if 0 < count < lacking.bit_count()]
    direct_rules, several = [entry for entry in plain if entry[1].quantity in direct], len(samples) > FEW
    both = _pairs(direct_rules, plain, lambda one, other: not one[2] & other[2] & lacking) if several else []
    if exact:
        return [*(Guess((rule,)) for rule in exact), *(Guess(pair) for pair in both)]
    limit = exceptions * having.bit_count()
    weak = [((count, *rank), rule) for (rank, rule, _), count in against if count <= limit and count < lacking.bit_count()]
    left = [entry for entry in narrow if not entry[2] & lacking and entry[2] & having]
    direct_rules = [entry for entry in left if entry[1].quantity in direct or " mod " in entry[1].quantity]
    either = (
        _pairs(direct_rules, left, lambda one, other: not having & ~(one[2] | other[2])) if several and at is not None else []
    )
    turned = [(one, other) if one.holds(at or {}) else (other, one) for one, other in either]
    return [
        *(Guess(pair) for pair in both),
        *(Guess((rule,)) for _, rule in sorted(weak, key=lambda entry: entry[0])),
        *(Guess((one,), other) for one, other in turned),
    ]


def _from_a_number_on(entries: Sequence[tuple[Candidate, int]], lacking: int) -> list[Guess]:
    """Return a multiple or a remainder from a number on, where it parts samples as a rule of a larger step does."""
    steps = [entry for entry, count in entries if count and entry[1].kind in ("multiple", "remainders")]
    least = {entry[1].quantity: entry for entry, _ in entries if entry[1].kind == "least"}
    return [
        Guess((rule, least[rule.quantity][1]))
        for _, rule, met in steps
        if rule.quantity in least and not met & least[rule.quantity][2] & lacking
    ]


def _all_of(
    samples: Sequence[Sample], names: Iterable[str], direct: set[str],
    kind: Callable[[str, set[float], set[float]], Iterator[Rule]],
) -> list[Candidate]:  # fmt: skip
    """Return the rules of quantities, the plainest first, each with the samples that have it."""
    candidates: list[Candidate] = []
    for name in names:
        column = [(numbers.get(name), has) for numbers, has in samples]
        having, lacking = ({n for n, has in column if n is not None and has == wanted} for wanted in (True, False))
        if not having or not lacking:
            continue
        for place, rule in enumerate(kind(name, having, lacking)):
            holding = {n for n in having | lacking if rule.holds({name: n})}
            met = sum(1 << k for k, (n, _) in enumerate(column) if n in holding)
            related = next((k + 1 for k, word in enumerate(WIDEST) if word in name), 0)
            candidates.append(((name not in direct, related, place, len(rule.numbers)), rule, met))
    return sorted(candidates, key=lambda entry: entry[0])


def _pairs(
    first: Sequence[Candidate], second: Sequence[Candidate], part: Callable[[Candidate, Candidate], bool]
) -> list[tuple[Rule, Rule]]:  # fmt: skip
    """Return the pairs of rules that part samples together, the plainest first."""
    pairs = [
        ((*(a + b for a, b in zip(one[0], other[0], strict=True)),), one[1], other[1])
        for one, other in product(first[:PLAIN], second[: 4 * PLAIN])
        if one[1] != other[1] and part(one, other)
    ]
    return [(one, other) for _, one, other in sorted(pairs, key=lambda entry: entry[0])]


def parted(guesses: Sequence[Guess], numbers: Numbers) -> bool:
    """Return whether guesses differ about a call."""
    return len({guess.holds(numbers) for guess in guesses}) == 2
