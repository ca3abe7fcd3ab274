"""
Finds known mistakes that act in one place: in the last n mod 8 pairs, in odd-numbered heads, in one of two outputs.

A mistake acts in a place if it gives every wrong value, if all values that it would change there are wrong, and if all that it
would change elsewhere are right. So a mistake and a place together say the values of every case, as a mistake alone does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ..evidence.tools.deviation import Deviation
from . import extent, places
from .hypotheses import UNITS, Budget, Hypothesis, Observation, Question, plausible
from .side_by_side import moves

TIES = 3  # mistakes that may act in one place alike: more of them fit few values by chance
PLAIN = 4.0  # tolerances that a mistake must move a value by, before a right one speaks against it
Array = npt.NDArray[np.bool_]


def in_one_place(
    questions: Sequence[Question], deviations: Iterable[Deviation], budget: Budget
) -> tuple[str, list[Deviation]]:  # fmt: skip
    """
    Return the place of mistakes in a sentence, and the mistakes (ties) that act there and nowhere else; none without one.

    Of those in one place they are the ones that change most values: others have a place of their own, as "after the first".
    """
    failing = [q for q in questions if q.failed]
    by_place: dict[str, list[tuple[int, Deviation]]] = {}
    for deviation in budget.within(deviations):
        if deviation.stateful or not plausible(failing[0], Hypothesis(deviation, failing[:1]).predicted(0)):
            continue  # few rows of a large call say so soon
        if not extent.of_wrong_values([(deviation,)], failing):
            continue
        place, changed = _place(deviation, questions)
        if place:
            by_place.setdefault(place, []).append((changed, deviation))
    place, counted = max(by_place.items(), key=lambda item: len(item[1]), default=("", []))
    most = max((changed for changed, _ in counted), default=0)
    ties = [deviation for changed, deviation in counted if changed == most]
    return (place, ties) if len(counted) <= TIES else ("", [])


def _place(deviation: Deviation, questions: Sequence[Question]) -> tuple[str, int]:
    """Return the place where a mistake acts that gives every wrong value, in a sentence, and how many values it changes."""
    moved = {id(o): _moved(deviation, q, o) for q in questions for o in q.whole.observations}

    def wrong(question: Question, observation: Observation) -> tuple[Array, Array]:
        bad, _ = places.wrong_and_telling(question, observation)
        return bad, bad | moved[id(observation)]

    def right(question: Question, observation: Observation) -> tuple[Array, Array]:
        bad, telling = wrong(question, observation)
        return telling & ~bad, telling

    lines, others = places.by_kind(questions, wrong), places.by_kind(questions, right)
    both = {kind: zip(masks, others[kind], strict=True) for kind, masks in lines.items()}
    whole = {kind: lines[kind] for kind, pairs in both.items() if not any(np.any(a.wrong & b.wrong) for a, b in pairs)}
    best = places.best(whole, questions, sure=True)
    return f" Only {places.said(best)}." if best else "", sum(int(np.sum(changed)) for changed in moved.values())


def _moved(deviation: Deviation, question: Question, observation: Observation) -> Array:
    """Return which values of an output a mistake changes by more than rounding may do."""
    value = extent.predicted(deviation, question.whole)(0.0)[observation.call].get(observation.name)
    rounding = UNITS[question.dtype] * np.abs(observation.expected)
    return moves(value, observation.expected, PLAIN * observation.width + rounding)
