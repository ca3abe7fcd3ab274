"""
A remark on half precision: passing values that show which number was rounded though correct code keeps it in float32.

Class "low" lets code round whatever it computes, and "mixed" nearly all: 1 + weight, slopes, a sum. Values tell which. The
hypotheses are the registered roundings, and the expressions of the definition: that which fits best is rounded, then the next.

Where a rounding changes the result, the errors of right code are as often on its side as on the other, and seldom nearer to it.
So it is named if results are nearer to it more often than chance allows (Hoeffding, as in `better_fit`), among those that it
moves away from zero, and among those that it moves towards zero: code that truncates errs in one direction alone. What it
changes by the same factor counts once: a weight, or the norm of a row. Few factors suffice if it gives nearly all results bit
by bit. Results are compared after their last rounding.

Roundings that released code makes are left out: `evidence/half_precision.json` lists them. Class "fused" has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, zip_longest
from typing import Any, TypeVar

import numpy as np

from posref.backends.narrowed import Narrowed, Step, towards_zero
from posref.backends.rounding import round_to
from posref.spec import REGISTRY, Flag, Integer, OneOf

from ..accuracy import usual_roundings
from ..diagnosis.hypotheses import OTHERWISE, Budget, Hypothesis, Observation, Question, quiet
from ..evidence.index import deviations_touching
from ..model import Arrays
from ..proof.evaluation import call_of

CHANCE = 18.0  # minus the logarithm of the chance that right code gets a remark
FEWEST = 36  # results that are not those of code that rounds once
FACTORS = 8  # that suffice if all results agree
DIGITS = 9  # of the factor by which a rounding changes a result
WORK = 2_500_000  # values that are computed for registered roundings
OF_EXPRESSIONS = 24_000_000  # values for expressions
OF_A_STEP = 3  # a call of a definition with expressions rounded, in calls of NumPy
ENOUGH = 64  # factors that are not nearer to a rounding by half: it does not fit
CASES = 8  # in which expressions are looked for that are rounded
ALL = 24  # in which they are compared
ALONE = 0.1  # of the error is left by a known mistake that explains the values without others
SHOWN = 3  # of expressions that right code does not round
LESS = 0.999  # of the error that is left by an expression that is taken
Array = np.ndarray[Any, Any]
T = TypeVar("T")


@dataclass
class RoundingFit:
    """How many results a rounding changes towards zero and away from it, how many of these are nearer to it, and the errors."""

    name: str
    text: str
    counts: Array = field(default_factory=lambda: np.zeros((2, 2), dtype=int))  # factors, and nearer ones; by direction
    squares: Array = field(default_factory=lambda: np.zeros(2))  # of errors over their bounds, from the definition and from it
    results: int = 0
    equal: int = 0  # results that it gives bit by bit
    left: float = 0.0  # the largest error from it, over its bound

    @property
    def clear(self) -> bool:
        """Whether chance does not explain that so many results are nearer to it, in both directions, or equal."""
        factors, nearer = self.counts
        if not self.left <= 1 or self.squares[1] >= self.squares[0]:
            return False
        if self.equal >= (1 - OTHERWISE) * self.results and self.results >= FEWEST and factors.sum() >= FACTORS:
            return True
        return bool(factors.all()) and 4 * float(factors.min()) * max(float((nearer / factors).min()) - 0.5, 0.0) ** 2 >= CHANCE

    @property
    def taken(self) -> float:
        """The error that it takes away."""
        return float(self.squares[0] - self.squares[1])

    @property
    def lost(self) -> bool:
        """Whether enough results are not nearer to it."""
        factors, nearer = self.counts.sum(axis=1)
        return bool(factors >= ENOUGH and 2 * nearer <= factors)

    @property
    def share(self) -> float:
        """The part of the error that is left, in the root mean square."""
        return float(np.sqrt(self.squares[1] / self.squares[0])) if self.squares[0] else np.inf

    def add(self, dtype: str, observation: Observation, value: Any, expected: Array) -> None:
        """Count the results of one output, of which `expected` are without the rounding."""
        if value is None or np.shape(value) != expected.shape:
            self.left = np.inf
            return
        right, wrong = (np.asarray(round_to(np.asarray(x, float), dtype), float) for x in (expected, value))
        off, left = np.abs(observation.observed - right), np.abs(observation.observed - wrong)
        shows = np.isfinite(off) & np.isfinite(left) & (right != wrong) & (expected != 0) & (observation.width > 0)
        if not shows.any():
            return
        errors = np.stack([off, left])[:, shows] / observation.width[shows]
        self.squares += np.sum(errors**2, axis=1)
        self.left = max(self.left, float(np.max(errors[1])))
        self.results, self.equal = self.results + int(shows.sum()), self.equal + int(np.sum(errors[1] == 0))
        factor = (value[shows] - expected[shows]) / expected[shows]
        scale = 10.0 ** (np.floor(np.log10(np.abs(factor) + 1e-300)) - DIGITS)
        kinds, group = np.unique(np.round(factor / scale) * scale, return_inverse=True)
        gain = np.bincount(group, np.sign(off[shows] - left[shows]), len(kinds))
        for direction, chosen in enumerate((kinds > 0, kinds < 0)):
            self.counts[:, direction] += np.sum(gain[chosen] != 0), np.sum(gain[chosen] > 0)


def rounding_remark(op: str, dtype: str, verdict: str, questions: Sequence[Question], claim: str) -> str:
    """Return the rounding that fits best, if one does that right code of a class has not, with its numbers."""
    asked = by_mismatches(op, questions)
    if sum(_mismatches(question) for question in asked) < FEWEST:
        return ""
    for which, results, equal in _truncated(asked, dtype):
        if results >= FEWEST and equal >= (1 - OTHERWISE) * results:
            return (
                f"{op} {dtype} {verdict} fits rounding towards zero{which} better: where this is not rounding to the nearest, "
                f"it gives {equal} of {results} results"
            )
    usual = usual_roundings(op) if claim != "fused" else frozenset[str]()  # such code rounds results alone
    with quiet():
        known = [fit for fit in registered(op, dtype, questions) if fit.name not in usual]
        fits = expressions(op, dtype, asked)
    others = sorted((fit for fit in fits if fit.name not in usual), key=lambda fit: fit.taken, reverse=True)
    if not known and not others:
        return ""
    named = min(known, key=lambda fit: fit.share, default=None)
    best = named if named and (named.share < ALONE or not others) else others[0]
    text = best.text if best in known else f"the definition better with rounding to {dtype} of {_listed(others, len(fits))}"
    factors, nearer = best.counts.sum(axis=1)
    return (
        f"{op} {dtype} {verdict} fits {text}. Where {'that' if best in known else 'the first'} changes the result, it leaves "
        f"{best.share:.0%} of the error, and {nearer} of {factors} independent results are nearer"
    )


def _truncated(questions: Sequence[Question], dtype: str) -> Iterator[tuple[str, int, int]]:
    """Yield how many results differ if they are rounded towards zero, and how many of the answers are so: all, and by sign."""
    pairs = np.zeros((2, 2), dtype=int)
    for o in (o for question in questions for o in question.observations):
        truncated = towards_zero(o.expected, dtype)
        differs = np.isfinite(o.expected) & (truncated != round_to(o.expected, dtype))
        for sign, chosen in enumerate((differs & (o.expected < 0), differs & (o.expected > 0))):
            pairs[sign] += chosen.sum(), np.sum(o.observed[chosen] == truncated[chosen])
    for which, (results, equal) in (
        ("", pairs.sum(axis=0)),
        (" of negative results", pairs[0]),
        (" of positive results", pairs[1]),
    ):
        yield which, int(results), int(equal)


def _listed(others: Sequence[RoundingFit], found: int) -> str:
    """Return the first expressions in words, and how many more there are, usual ones too."""
    shown = [fit.text for fit in others[:SHOWN]]
    return " and ".join([", ".join(shown), *([f"{found - len(shown)} more"] if found > len(shown) else [])])


def registered(op: str, dtype: str, questions: Sequence[Question]) -> Iterator[RoundingFit]:
    """Yield the known roundings of an operation that fit clearly better than the definition, those of right code too."""
    budget = Budget(WORK)
    for mistake in budget.within(deviations_touching(op)):
        if mistake.name.endswith(f"-{dtype}") and not mistake.stateful:
            fit = RoundingFit(mistake.name, f"a known mistake better: {mistake.text} ({mistake.name})")
            hypothesis = Hypothesis(mistake, questions)
            for n in budget.within(range(len(questions))):
                values = hypothesis.predicted(n)(0.0)
                for o in questions[n].observations:
                    fit.add(dtype, o, values[o.call].get(o.name), o.expected)
                if not fit.left <= 1 or fit.lost:
                    break
            if fit.clear:
                yield fit


def expressions(op: str, dtype: str, questions: Sequence[Question]) -> list[RoundingFit]:
    """
    Return the expressions of a definition that fit clearly better if they are rounded, each besides all others.

    Code may round other expressions for other options.
    """
    budget, system = Budget(OF_EXPRESSIONS), Narrowed(dtype)
    by_step: dict[Step, RoundingFit] = {}
    for of_options in budget.within(by_options(op, questions, lambda question: question.calls[0].params)):
        known = _rounded(system, of_options, budget)
        for question in of_options if known else ():
            values = _values(system, question, budget, known)
            for step in known:
                fit = by_step.setdefault(step, RoundingFit(str(step), step.in_words))
                _add(fit, question, values, _values(system, question, budget, known - {step}))
    return [fit for fit in by_step.values() if fit.clear]


def _rounded(system: Narrowed, questions: Sequence[Question], budget: Budget) -> frozenset[Step]:
    """
    Return the expressions that leave least of the error if they are rounded.

    The search begins with none of them or with all, whichever is nearer, and changes one as long as that takes errors away.
    """

    def error(rounded: frozenset[Step], most: int = CASES) -> float:
        return sum(_error(question, _values(system, question, budget, rounded)) for question in questions[:most])

    steps = [step for question in questions[:CASES] for step in _steps(system, question, budget)]
    known = min(frozenset[Step](), frozenset(step for step in steps if not step.adds), key=error)
    least, left = error(known), 0
    for step in budget.within(cycle(dict.fromkeys(steps))):
        tried = error(known ^ {step})
        known, least, left = (known ^ {step}, tried, 0) if tried < LESS * least else (known, least, left + 1)
        if not least or left >= len(set(steps)):
            break
    least = error(known, ALL)
    for step in sorted(known, key=lambda step: (step.file, step.start), reverse=True):  # one rounding hides another
        known = known - {step} if error(known - {step}, ALL) <= least else known
    return known


def _error(question: Question, values: list[Arrays]) -> float:
    """Return the sum of the squares of errors over their bounds, after the last rounding."""
    total = 0.0
    for o in question.observations:
        error = o.observed - np.asarray(round_to(values[o.call][o.name], question.dtype), float)
        judged = np.isfinite(error) & (o.width > 0)
        total += float(np.sum((error[judged] / o.width[judged]) ** 2))
    return total


def _add(fit: RoundingFit, question: Question, values: list[Arrays], before: list[Arrays]) -> None:
    for o in question.observations:
        fit.add(question.dtype, o, values[o.call].get(o.name), before[o.call][o.name])


def _steps(system: Narrowed, question: Question, budget: Budget) -> list[Step]:
    system.steps.clear()
    _values(system, question, budget, frozenset())
    return list(system.steps)


def _values(system: Narrowed, question: Question, budget: Budget, rounded: frozenset[Step]) -> list[Arrays]:
    """Return what the definition gives for the calls of a question with some of its expressions rounded."""
    system.rounded = rounded
    budget.meter.done += OF_A_STEP * question.work
    results = [call_of(system, question.op, call.inputs, call.params) for call in question.calls]
    return [{name: np.asarray(getattr(value, "parts", (value,))[0]) for name, value in outputs.items()} for outputs in results]


def by_mismatches(op: str, questions: Sequence[Question], most: int = ALL) -> list[Question]:
    """Return questions whose answers have most results that are not those of code that rounds once, of all options in turn."""
    having = sorted((q for q in questions if _mismatches(q)), key=_mismatches, reverse=True)
    turns = zip_longest(*by_options(op, having, lambda question: question.calls[0].params))
    return [question for turn in turns for question in turn if question is not None][:most]


def by_options(op: str, given: Iterable[T], params: Callable[[T], Mapping[str, Any]]) -> list[list[T]]:
    """Return what has the same choices as options together: words, flags, and 0 or 1."""
    domains = REGISTRY[op].domains
    few = {name for name, domain in domains.items() if isinstance(domain, Integer) and (domain.low, domain.high) == (0, 1)}
    choices = [name for name, domain in domains.items() if name in few or isinstance(domain, OneOf | Flag)]
    by_choice: dict[tuple[Any, ...], list[T]] = {}
    for one in given:
        by_choice.setdefault(tuple(params(one).get(name) for name in choices), []).append(one)
    return list(by_choice.values())


def _mismatches(question: Question) -> int:
    return sum(int(np.sum(o.observed != round_to(o.expected, question.dtype))) for o in question.observations)
