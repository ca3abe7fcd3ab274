"""
A remark on half precision: passing values that fit a known mistake better than the definition.

Class "low" allows a rounding at every operation, and so some real mistakes. Where code is right, its roundings push a row of
values towards what a mistake gives as often as away from it. So a mistake is named if the rows nearer to it than to the
definition are too many for chance: more than half of n rows by a share whose chance is at most exp(-18) (Hoeffding). `judge`
holds systematic errors to the same chance.

A row is a slice along one axis, that with the fewest: what its values share, such as a norm or the rounding of a weight, counts
once. Only values count that a mistake moves by more than two roundings of the result and of scalars: one rounding cannot bring
a right one nearer to it. Mistakes that are roundings themselves, by the dtype in their name, are left out: "low" allows them.

If none fits, another scale of the products of queries and keys is named: if the factor that leaves the least errors is farther
from 1 than six of its standard errors, and than three roundings of a scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ..accuracy import FLOOR, ROUNDING, UNIT
from ..calls import makes_constants, returns_reals
from ..diagnosis.hypotheses import Budget, Hypothesis, Question, quiet
from ..evidence.index import deviations_touching
from ..evidence.tools.deviation import Deviation, before
from ..model import Answer, Arrays, Operation
from ..proof.evaluation import of_scalars
from .rounding_fit import rounding_remark
from .scope_result import caught

WORK = 2_500_000  # values that are computed for one operation in one dtype: about 0.2 seconds of CPU
CHANCE = 18.0  # minus the logarithm of the chance that right code gets a remark
FEWEST = 36  # rows of which a standard error says something, and all of them nearer to a mistake are beyond chance
SPREAD = 6.0  # standard errors that chance does not explain
STEP = 1 / 64  # of the scale, by which its effect is measured
LOST = 8  # one row of so many, and two besides, may be nearer to the definition
NARROW = (*ROUNDING, "tf32")


@dataclass
class _Fit:
    """How well a mistake fits: rows in which it shows, and of these nearer to it; the largest errors over their bounds."""

    mistake: Deviation
    rows: int = 0
    nearer: int = 0
    off: float = 0.0  # from the definition
    left: float = 0.0  # from the mistake

    @property
    def lost(self) -> bool:
        """Whether too many rows are nearer to the definition for a conclusion."""
        return self.rows - self.nearer > 2 + self.rows // LOST

    @property
    def clear(self) -> bool:
        """Whether chance does not explain that so many rows are nearer to the mistake, and none is far from it."""
        share = self.nearer / self.rows - 0.5 if self.rows else 0.0
        return share > 0 and 2 * self.rows * share**2 >= CHANCE and self.left <= 1


def better_fit(operation: Operation, answers: Sequence[Answer], fine: Sequence[Answer] = ()) -> str:
    """
    Return what fits an operation's values in half precision clearly better than the definition, if anything.

    That is a known mistake, or another scale of the products of queries and keys; the scale also where values fail. Else it is
    a rounding, which `fine` answers show too; where values fail, if no mistake is named.
    """
    op, dtype, judged = operation.op, operation.dtype, {c.id for c in operation.cases if c.verdict in ("pass", "fail")}
    if dtype not in UNIT or makes_constants(op) or not returns_reals(op):
        return ""
    budget, verdict = Budget(WORK), "passes, but" if operation.conformant else "does not conform, but"
    questions = list(distinct(op, [a for a in answers if a.case.id in judged and a.part is None], operation.claim, budget))
    if operation.counts["fail"]:
        named = (operation.diagnosis or {}).get("names")
        found = _other_scale(op, dtype, "fails, and", questions, budget)
        return found if found or named else rounding_remark(op, dtype, "fails, but", questions, operation.claim)
    known = caught(op)
    fits = []
    mistakes = deviations_touching(op) if _beyond_one_rounding(questions) >= FEWEST else ()
    with quiet():
        for mistake in budget.within(mistakes):
            if mistake.name.rsplit("-", 1)[-1] not in NARROW and not mistake.stateful:
                shown = known.get(mistake.name, frozenset())
                shown_in = [q for q in questions if q.id in shown]
                fit = _fit(mistake, shown_in, budget)
                fit = _fit(mistake, shown_in, budget, scalars=True) if fit.clear else fit
                fits += [fit] if fit.clear else []
    if not fits:
        extra = distinct(op, fine, operation.claim, budget)
        return _other_scale(op, dtype, "passes, but", questions, budget) or rounding_remark(
            op, dtype, "passes, but", [*questions, *extra], operation.claim
        )
    best = min(fits, key=lambda fit: (fit.rows - fit.nearer, fit.left))
    return (
        f"{op} {dtype} {verdict} fits a known mistake better: {best.mistake.text} ({best.mistake.name}). Then the largest "
        f"error is {best.left:.2g} of its bound, not {best.off:.2g}, and {best.nearer} of {best.rows} rows are nearer"
    )


def _other_scale(op: str, dtype: str, verdict: str, questions: Sequence[Question], budget: Budget) -> str:
    """Return that products of queries and keys have another scale, if that leaves all values within their bounds."""
    arrays = REGISTRY[op].arrays
    queries = [n for n, (name, axes) in enumerate(arrays.items()) if name.startswith("q") and axes.kind == "real"]
    if "scale" not in REGISTRY[op].domains or not queries:
        return ""

    def larger(*args: Any, **options: Any) -> Any:
        return tuple((1 + STEP) * a if n in queries else a for n, a in enumerate(args)), options

    step, effects, errors = Hypothesis(Deviation("", "", {op: before(larger)}), questions), [], []
    with quiet():
        for n in budget.within(range(len(questions))):
            values = step.predicted(n)(0.0)
            for o in questions[n].observations:
                effect, error = (values[o.call][o.name] - o.expected) / STEP / o.width, (o.observed - o.expected) / o.width
                usable = np.isfinite(effect) & np.isfinite(error)
                effects.append(np.where(usable, effect, 0.0))
                errors.append(np.where(usable, error, 0.0))
    product, square = (
        np.concatenate([np.zeros(0), *(np.sum(e * x, axis=-1).ravel() for e, x in zip(effects, others, strict=True))])
        for others in (errors, effects)
    )
    if np.sum(square > 0) < FEWEST:
        return ""
    change = float(np.sum(product) / np.sum(square))
    spread = float(np.linalg.norm(product - change * square) / np.sum(square))
    explained = all(np.all(np.abs(x - change * e) <= 1) for x, e in zip(errors, effects, strict=True))
    if not explained or abs(change) <= max(SPREAD * spread, 3 * UNIT[dtype]):
        return ""
    return (
        f"{op} {dtype} {verdict} fits another scale better: products of queries and keys are {1 + change:.3g} times what "
        f"they should be, with a standard error of {spread:.1g}"
    )


def distinct(op: str, answers: Sequence[Answer], claim: str, budget: Budget) -> Iterator[Question]:
    """Yield the small answers first, as questions; of several with the same values one: their roundings are the same."""
    seen: set[bytes] = set()
    kept = [a for a in answers if a.case.kind in ("value", "sequence") and len(a.outputs) == len(a.case.calls)]
    for question in sorted((Question(op, a, budget.meter, failed=True, claim=claim) for a in kept), key=lambda q: q.size):
        values = b"".join(value.tobytes() for value in question.calls[0].expected.values())
        if question.size and values not in seen:
            seen.add(values)
            yield question


def _beyond_one_rounding(questions: Sequence[Question]) -> int:
    """Return how many values are farther from the definition than one rounding: a row without any is no nearer to a mistake."""
    return sum(
        int(np.count_nonzero(~(np.abs(o.observed - o.expected) <= _one_rounding(o.expected, question.dtype))))
        for question in questions
        for o in question.observations
    )


def _one_rounding(expected: np.ndarray, dtype: str) -> np.ndarray:
    """Return how far one rounding of a result moves it at most."""
    return np.asarray(UNIT[dtype] * np.abs(expected) + FLOOR[dtype])


def _fit(mistake: Deviation, questions: Sequence[Question], budget: Budget, *, scalars: bool = False) -> _Fit:
    """Return how well a mistake fits, as far as it is worth asking; roundings of `scalars` take long to find."""
    fit, hypothesis = _Fit(mistake), Hypothesis(mistake, questions)
    for n in budget.within(range(len(questions))):
        _add(fit, questions[n], hypothesis.predicted(n)(0.0), scalars=scalars)
        if fit.lost or not fit.left <= 1:
            break
    return fit


def _add(fit: _Fit, question: Question, predicted: list[Arrays], *, scalars: bool) -> None:
    """Count the rows of one answer."""
    for observation in question.observations:
        value = predicted[observation.call].get(observation.name)
        expected, width = observation.expected, observation.width
        if value is None or np.shape(value) != expected.shape:
            fit.left = np.inf
            return
        error, shift = observation.observed - expected, value - expected
        single = _one_rounding(expected, question.dtype)
        if scalars:
            single += of_scalars(question.op, question.calls[observation.call], question.dtype)[observation.name]
        shows = (np.abs(shift) > 2 * single) & (width > 0) & np.isfinite(shift) & np.isfinite(width)
        if not np.any(shows):
            continue
        e, s = np.where(shows, error / width, 0.0), np.where(shows, shift / width, 0.0)
        fit.off, fit.left = max(fit.off, float(np.max(np.abs(e)))), max(fit.left, float(np.max(np.abs(e - s))))
        rows = [_counted(np.moveaxis(e * s - s * s / 2, axis, 0), np.moveaxis(shows, axis, 0)) for axis in range(e.ndim)]
        count, nearer = min(rows, default=(1, int(np.sum(e * s - s * s / 2) > 0)))
        fit.rows, fit.nearer = fit.rows + count, fit.nearer + nearer


def _counted(gain: np.ndarray, shows: np.ndarray) -> tuple[int, int]:
    """Return in how many slices along the first axis a mistake shows, and how many of these are nearer to it."""
    there = shows.reshape(len(shows), -1).any(axis=1)
    return int(np.sum(there)), int(np.sum(gain.reshape(len(gain), -1).sum(axis=1)[there] > 0))
