"""
Finds two mistakes at once: any two of registered mistakes, numbers and edits of the formula.

Each mistake is tried alone on a few failing cases that differ in their options. Those that explain some of these, or leave
least of the error, are taken as the first of a pair; then each other mistake is tried beside them. A pair is named only if it
explains all cases, and each of the two shows in several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

import numpy as np

from posref.scaling import Scaling

from ..evidence.index import deviations_touching
from ..evidence.tools.deviation import Deviation, contradict
from . import formula_edits, numbers
from .formula_edits import Place
from .hypotheses import Budget, Hypothesis, Predict, Question, distances, plausible
from .search import LEAST, orders

PROBES = 4  # failing cases on which a mistake is tried alone
LARGEST = 2048  # values of such a case
EDITS = 900  # that are tried, the plainest
FIRST = 16  # mistakes that are taken as the first of a pair
ALONE, BESIDE = 8_000_000, 4_000_000  # values, the work of mistakes alone, and beside others
LEAST_ERROR = 2.0**-1000  # in place of 0
HALF = 1 / 2  # of the values of an output
MOST = 1.0  # of the error, that the first mistake leaves of a case on average
One = Deviation | Place


class Trial(NamedTuple):
    """Mistakes that give the same values of some cases, and which part of the error of each wrong output they leave."""

    ones: list[One]
    left: tuple[float, ...]  # 1 if they change nothing
    scaled: bool  # whether they give all of them up to a factor, which the other of a pair may be

    @property
    def explained(self) -> int:
        """How many of the outputs they explain."""
        return self.left.count(0.0)

    @property
    def sum(self) -> float:
        """What they leave of all of them."""
        return sum(self.left)


def candidates(questions: Sequence[Question], budget: Budget) -> list[tuple[Deviation, ...]]:
    """Return the first pair that explains all cases, each mistake with its words; none if none does."""
    probes = _probes(questions)
    if not probes:
        return []
    every: list[One] = [d for d in deviations_touching(questions[0].op) if not d.stateful]
    every += formula_edits.edits(*probes)[:EDITS]
    with formula_edits.bounded():
        return _beside_others(every, questions, probes, budget)


def _beside_others(
    every: Sequence[One], questions: Sequence[Question], probes: Sequence[Question], budget: Budget
) -> list[tuple[Deviation, ...]]:  # fmt: skip
    """Return the first pair of some mistakes that explains all cases, or of one of them and a number."""
    tried = _tried(every, probes, budget.limited(min(ALONE, budget.left)))
    likely = (t for t in tried if t.explained or t.scaled or t.sum < MOST * len(t.left))
    firsts = sorted(likely, key=lambda t: (-t.explained, not t.scaled, t.sum))[:FIRST]
    some = budget.limited(min(BESIDE, budget.left))
    beside = [(a, b) for a in firsts for b in tried if _may_be_beside(a, b)]
    beside.sort(key=lambda pair: (not pair[0].scaled, pair[0].sum + pair[1].sum - sum(len(t.left) * t.explained for t in pair)))
    alike = (pair for a, b in some.within(beside) if _give(a.ones[0], b.ones[0], probes) for pair in product(a.ones, b.ones))
    told = [_told(*pair) for pair in islice((pair for pair in some.within(alike) if _fits(*pair, questions)), 1)]
    return told or list(islice(_with_number([first.ones[0] for first in firsts], questions, budget), 1))


def _probes(questions: Sequence[Question]) -> list[Question]:
    """Return small failing cases, each with other words and other wrong outputs."""
    probes: dict[str, Question] = {}
    for question in questions:
        if not question.failed or not question.size or question.size > LARGEST:
            continue
        options = question.calls[-1].params.items()
        words = {
            name: type(value).__name__ if isinstance(value, Scaling) else value
            for name, value in options
            if not isinstance(value, int | float) or isinstance(value, bool)
        }
        wrong = sorted(o.name for o in question.observations if o.wrong.any())
        probes.setdefault(repr((words, wrong)), question)
    smallest = [q for q in questions if q.failed and 0 < q.size <= LARGEST]
    return list({q.id: q for q in (*list(probes.values())[:PROBES], *smallest)}.values())[:PROBES]


def _tried(every: Sequence[One], probes: Sequence[Question], budget: Budget) -> list[Trial]:
    """Return mistakes with what they leave of the errors of some failing cases, together those that leave the same."""
    tried: dict[tuple[float, ...], Trial] = {}
    for one in budget.within(every):
        hypothesis = Hypothesis(_alone(one), probes)
        left = tuple(part for n, q in enumerate(probes) for part in _left(q, hypothesis.predicted(n)))
        if set(left) != {1.0}:
            if left not in tried:
                tried[left] = Trial([], left, all(_is_scaled(q, hypothesis.predicted(n)) for n, q in enumerate(probes)))
            tried[left].ones.append(one)
    return list(tried.values())


def _left(question: Question, predict: Predict) -> Iterator[float]:
    """Yield which part of the error of each wrong output a mistake leaves, at most 2: 0 if it explains the output."""
    outputs = predict(0.0)
    for observation in question.observations:
        if not np.any(observation.wrong):
            continue
        value = outputs[observation.call].get(observation.name)
        if np.all(distances(question, observation, [value]) <= 1):
            yield 0.0
        elif value is None or value.shape != observation.expected.shape or not np.all(np.isfinite(value)):
            yield 2.0
        else:
            off, error = (np.asarray(x - observation.observed, dtype=np.float64) for x in (value, observation.expected))
            finite = np.isfinite(off) & np.isfinite(error)
            share = np.linalg.norm(off[finite]) / max(float(np.linalg.norm(error[finite])), LEAST_ERROR)
            yield round(min(float(share), 2.0), 9)


def _is_scaled(question: Question, predict: Predict) -> bool:
    """Return whether the outputs of a case are multiples of what a mistake gives, as far as half of the values tell."""
    outputs = predict(0.0)
    for observation in question.observations:
        value = outputs[observation.call].get(observation.name)
        if value is None or value.shape != observation.expected.shape or not np.all(np.isfinite(observation.observed)):
            return False
        product, square = (float(np.sum(x * value)) for x in (observation.observed, value))
        if not square or np.mean(distances(question, observation, [value * (product / square)]) <= 1) < HALF:
            return False
    return True


def _may_be_beside(first: Trial, other: Trial) -> bool:
    """Return whether a mistake changes the cases that another leaves wrong, and none of those that the other explains."""
    return all((b == 1) == (a == 0) for a, b in zip(first.left, other.left, strict=True))


def _alone(one: One) -> Deviation:
    return one if isinstance(one, Deviation) else formula_edits.mistake(one)


def _both(one: One, other: One) -> list[Deviation]:
    """Return two mistakes at once as one, in each order of nesting; edits are in one copy of the formula."""
    if isinstance(one, Place) and isinstance(other, Place):
        return [formula_edits.mistake(one, other)]
    if isinstance(one, Deviation) and isinstance(other, Deviation):
        return [] if contradict((one, other)) else orders((one, other))
    inner, outer = (one, other) if isinstance(one, Place) else (other, one)
    return orders((_alone(inner), _alone(outer)))[:1]


def _fits(one: One, other: One, questions: Sequence[Question]) -> bool:
    """Return whether two mistakes at once explain all cases, and neither alone all but one."""
    if one is other or not any(Hypothesis(both, questions).fits() for both in _both(one, other)):
        return False
    return all(_misses(_alone(alone), questions) >= LEAST for alone in (one, other))


def _give(one: One, other: One, probes: Sequence[Question]) -> bool:
    """Return whether two mistakes at once give most wrong values of some cases."""
    hypotheses = (Hypothesis(both, probes) for both in _both(one, other))
    return any(all(plausible(q, h.predicted(n)) for n, q in enumerate(probes)) for h in hypotheses)


def _misses(deviation: Deviation, questions: Sequence[Question]) -> int:
    """Return how many cases a mistake does not explain: up to two."""
    hypothesis = Hypothesis(deviation, questions)
    return len([*islice((n for n in range(len(questions)) if hypothesis.score(n) > 1), LEAST)])


def _told(one: One, other: One) -> tuple[Deviation, ...]:
    """Return a pair with its words: edits as one mistake, since they are in one copy of the formula."""
    if isinstance(one, Place) and isinstance(other, Place):
        return (formula_edits.told(one, other),)
    return tuple(formula_edits.told(each) if isinstance(each, Place) else each for each in (one, other))


def _with_number(firsts: Sequence[One], questions: Sequence[Question], budget: Budget) -> Iterator[tuple[Deviation, ...]]:
    """Yield one of the first mistakes and a number beside it that explain all cases together."""
    for one in budget.limited(min(BESIDE, budget.left)).within(firsts):
        known = formula_edits.told(one) if isinstance(one, Place) else one
        for number in numbers.solved(questions, budget, beside=known):
            if any(Hypothesis(both, questions).fits() for both in orders((known, number))):
                yield known, number
