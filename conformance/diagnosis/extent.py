"""
Says how far a named mistake explains the failures: all judged values, or a part of them.

Mistakes are searched for on few rows of a large call. Before one is named, it is tried on all rows that were judged. If it
gives every wrong value there, but not the right ones, it explains a part of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..evidence.tools.deviation import Deviation
from ..model import Answer
from .hypotheses import Outputs, Predict, Question, score
from .search import orders

WHOLE_CALL = 1 << 20  # values of a call that is computed in one piece; of a larger one only the judged rows are
Mask = npt.NDArray[np.bool_]


def holding(names: Sequence[Sequence[Deviation]], questions: Sequence[Question]) -> list[Sequence[Deviation]]:
    """Return the explanations, each of one mistake or several at once, that hold for all that was judged."""
    return [several for several in names if all(_holds(several, q) for q in questions if q.whole is not q)]


def of_wrong_values(names: Sequence[Sequence[Deviation]], questions: Sequence[Question]) -> list[Sequence[Deviation]]:
    """Return the explanations that give every wrong value of all that was judged."""
    return [several for several in names if all(_gives_wrong_values(several, q) for q in questions if q.failed)]


def counts_of_wrong(questions: Sequence[Question]) -> tuple[int, int]:
    """Return how many judged values of failing cases are wrong, and how many there are."""
    wrong = [o.wrong for q in questions if q.failed for o in q.whole.observations]
    return sum(int(np.sum(w)) for w in wrong), sum(w.size for w in wrong)


def _holds(several: Sequence[Deviation], question: Question) -> bool:
    if any(d.stateful for d in several):  # what it gives depends on the calls before
        return True
    whole = question.whole
    return any(score(whole, whole.observations, predicted(one, whole)) <= 1 for one in orders(several))


def _gives_wrong_values(several: Sequence[Deviation], question: Question) -> bool:
    whole = question.whole
    masks = [o.wrong for o in whole.observations]
    wrong = [
        replace(o, expected=o.expected[m], observed=o.observed[m], width=o.width[m])
        for o, m in zip(whole.observations, masks, strict=True)
    ]
    return any(score(whole, wrong, _masked(predicted(one, whole), whole, masks)) <= 1 for one in orders(several))


def _masked(predicted: Predict, whole: Question, masks: Sequence[Mask]) -> Predict:
    """Return a prediction of the wrong values alone."""

    def masked(jitter: float) -> Outputs:
        outputs = predicted(jitter)
        kept: Outputs = [{} for _ in outputs]
        for observation, mask in zip(whole.observations, masks, strict=True):
            value = outputs[observation.call].get(observation.name)
            if value is not None and value.shape == mask.shape:
                kept[observation.call][observation.name] = value[mask]
        return kept

    return cache(masked)


def predicted(deviation: Deviation, whole: Question) -> Predict:
    """Return what a mistake gives for the judged rows: of the whole call, where it is not too large to be computed."""
    full = whole.of(Answer(whole.case, whole.dtype))
    if not whole.answer.lies or full.size > WHOLE_CALL:
        return cache(lambda jitter: whole.outputs(deviation.operations(jitter)[whole.op]))

    def of_whole(jitter: float) -> Outputs:
        (outputs,) = full.outputs(deviation.operations(jitter)[whole.op])
        return [{name: rows for name, x in outputs.items() if (rows := _judged(x, name, whole)) is not None}]

    return cache(of_whole)


def _judged(x: npt.NDArray[Any], name: str, whole: Question) -> Any:
    """Return the judged rows of an output of the whole call; None if it has another shape."""
    indices, shape = whole.answer.lies[name]
    try:
        return np.broadcast_to(x, shape)[np.ix_(*indices)]
    except ValueError:
        return None
