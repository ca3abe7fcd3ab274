"""Reads which coordinate of a position rotates each channel pair: the sections of mrope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posref import axial_table, rope_table
from posref.core.composition import reaches

from ..evidence.tools.deviation import Deviation, Function, around
from ..model import Call
from .hypotheses import UNITS, Observation, Question, predict, quiet
from .shapes import pairs_of

TABLE = axial_table.__name__
TRIED = 8  # failing cases that are read, the smallest
LONGEST = 32  # pairs that are listed


def remark(questions: Sequence[Question]) -> str:
    """Return the coordinates by which the pairs of a failing case turn, if all are read and some are wrong."""
    op = questions[0].op
    failing = [q for q in questions if q.failed and len(q.calls) == 1 and len(q.calls[0].params.get("sections", ())) > 1]
    for question in failing[:TRIED] if TABLE in {op, *reaches(op)} else ():
        [call] = question.calls
        with quiet():
            by_axis = [
                predict(Deviation("", "", {TABLE: _of_axis(k)}), op, [call])[0] for k in range(len(call.params["sections"]))
            ]
        for observation in question.observations:
            pairs = _pairs(op, call, observation)
            observed = [_fits(question, observation, outputs, observation.observed) for outputs in by_axis]
            expected = [_fits(question, observation, outputs, observation.expected) for outputs in by_axis]
            read, right = (_by_pair(fits, pairs) for fits in (observed, expected))
            if not read or not right or len(read) > LONGEST or all(a & b for a, b in zip(read, right, strict=True)):
                continue
            turned = "".join(str(min(a & b or a)) for a, b in zip(read, right, strict=True))
            due = "".join(str(min(b)) for b in right)
            of_case = f"in {question.id}, with sections {tuple(call.params['sections'])}"
            return f" Pairs rotate by other coordinates: {of_case}, by {turned} from the first pair on, not by {due}."
    return ""


def _of_axis(axis: int) -> Any:
    """Return a wrap by which all pairs turn by one coordinate."""

    def deviating(_: Function, positions: Any, inv_freq: Any, /, *, sections: Any, arrangement: str, **options: Any) -> Any:
        return rope_table(positions[axis], inv_freq, **options)

    return around(deviating)


def _pairs(op: str, call: Call, observation: Observation) -> Any:
    """Return the pair of every channel of an output, -1 of one that does not turn."""
    channels = observation.expected.shape[-1]
    return np.arange(channels) if op == TABLE else pairs_of(op, call, channels)


def _fits(question: Question, observation: Observation, outputs: dict[str, Any], values: Any) -> Any:
    """Return which channels of an output have the values of a prediction."""
    predicted = np.broadcast_to(outputs.get(observation.name, np.nan), values.shape)
    close = np.abs(predicted - values) <= 2 * observation.width + UNITS[question.dtype] * np.abs(values)
    return np.all(close.reshape(-1, values.shape[-1]), axis=0)


def _by_pair(fits: Sequence[Any], pairs: Any) -> list[set[int]]:
    """Return the coordinates by which each pair may turn; nothing if a pair has none."""
    count = 0 if pairs is None else int(np.max(pairs, initial=-1)) + 1
    axes = [{k for k, fit in enumerate(fits) if np.all(fit[pairs == pair])} for pair in range(count)]
    return axes if all(axes) else []
