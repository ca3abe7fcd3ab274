"""Positions that an implementation keeps from one call to another: a table made once, and found again by its shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..calls import positions_of
from ..model import Call, LoadedCase
from .hypotheses import Question, distance_of, predicted_by

LEAST = 2  # failing cases that other calls' positions must explain, all there are
MOST = 64  # failing cases, and other calls of the same shape, that are looked at
Shapes = tuple[tuple[int, ...], ...]


def of_another_call(op: str, questions: Sequence[Question], before: Sequence[LoadedCase]) -> str:
    """
    Return in words that failing cases have the values of the positions of another call; nothing where one has not.

    `before` are cases that were asked before those of the questions, in another dtype.
    """
    failing = [q for q in questions if q.failed and q.asked is q.answer.case]  # of large cases other rows are looked at
    if not positions_of(op) or not LEAST <= len(failing) <= MOST:
        return ""
    others: dict[Shapes, list[tuple[str, Call]]] = {}
    for id_, call in _asked(questions, before):
        others.setdefault(_shapes(op, call), []).append((id_, call))
    shown = ""
    for question in failing:
        for k, call in enumerate(question.calls):
            if distance_of(question, k, predicted_by(op, call)) <= 1:
                continue
            found = _source(op, question, k, others[_shapes(op, call)][:MOST])
            if not found:
                return ""
            shown = shown or f"{question.id} those of {found}"
    return (
        f"in {len(failing)} failing cases, your output equals the definition at the positions of another call of the same "
        f"shape ({shown}, ...): a table is kept, and reused without comparing positions."
    )


def _asked(questions: Sequence[Question], before: Sequence[LoadedCase]) -> Iterator[tuple[str, Call]]:
    """Yield the calls that were made, with the ids of their cases, in their order."""
    yield from ((case.id, call) for case in before for call in case.calls)
    yield from ((q.id, call) for q in sorted(questions, key=lambda q: q.turn) for call in q.calls)


def _shapes(op: str, call: Call) -> Shapes:
    return tuple(np.shape(call.inputs[n]) for n in positions_of(op) if n in call.inputs)


def _source(op: str, question: Question, k: int, others: Sequence[tuple[str, Call]]) -> str:
    """Return the case at whose positions the definition gives what a call gave; empty where there is none."""
    own = question.calls[k]
    names = [n for n in positions_of(op) if n in own.inputs]
    for id_, other in others:
        given: dict[str, Any] = {n: other.inputs[n] for n in names if n in other.inputs}
        if any(not np.array_equal(given[n], own.inputs[n]) for n in given):
            call = replace(own, inputs={**own.inputs, **given})
            if distance_of(question, k, predicted_by(op, call)) <= 1:
                return id_ if id_ != question.id else "an earlier call of it"
    return ""
