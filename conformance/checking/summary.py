"""What all answers of an operation say together: achieved classes, positions, diagnoses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posref.composition import stages

from ..calls import ladder
from ..model import Answer, Operation, decides
from ..suite import value_positions
from ..target import comparing
from . import coverage, curves, kernel, meaning, systematic, telling


def finish(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add to operations with their answers what all cases together say: achieved classes, positions, diagnoses."""
    judged = [(operation, [answer.part or answer for answer in answers]) for operation, answers in operations]
    for operation, answers in judged:
        _summarise(operation, answers)
    for operation, answers in operations:
        coverage.fill(operation, answers)
        _tell(operation, answers)
    _explain(operations)


def _tell(operation: Operation, answers: list[Answer]) -> None:
    """Say of every failing case what its call is."""
    asked = {answer.case.id: answer.asked or answer.case for answer in answers}
    for case in operation.cases:
        if decides(case.kind, case.verdict) and case.id in asked:
            case.call = telling.told(asked[case.id])


def _summarise(operation: Operation, answers: list[Answer]) -> None:
    """Fill in an operation's achieved class, overall and by band of positions, and its first failing position."""
    judged = [c for c in operation.cases if c.kind != "reject" and c.verdict in ("pass", "fail")]
    classes = ladder(operation.op, operation.dtype, operation.claim)
    operation.achieved = _loosest([c.achieved for c in judged], classes)
    by_id = {a.case.id: a for a in answers}
    complete = [by_id[c.id] for c in judged if len(by_id[c.id].outputs) == len(by_id[c.id].case.calls)]
    for low, high in value_positions.BANDS:
        found = [cls for answer in complete for cls in _classes_in_band(answer, operation, (low, high), classes)]
        if found:
            operation.bands.append({"from": low, "to": high, "achieved": _loosest(found, classes)})
    ratios, failing = [], []
    for answer in complete:
        for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
            for name, output in outputs.items():
                error, width = comparing.errors(operation.op, call, name, output, operation.claim, answer.dtype)
                ratio = curves.ratios(error, width)
                if np.any((width > 0) | (ratio > 0)):
                    ratios.append(float(np.max(ratio)))
                where = value_positions.places(operation.op, call, name)
                if where is not None and where.shape == error.shape and np.any(ratio > 1):
                    failing.append(float(np.min(where[ratio > 1])))
    operation.worst_ratio = max(ratios, default=None)
    operation.first_failing_position = min(failing, default=None)
    if operation.first_failing_position:
        below = [c for a in complete for c in _classes_in_band(a, operation, (0, operation.first_failing_position), classes)]
        operation.achieved_below = _loosest(below, classes)
    curves.fill(operation, answers)
    meaning.fill(operation, complete)
    systematic.fill(operation, complete)


def _classes_in_band(
    answer: Answer, operation: Operation, band: tuple[float, float | None], classes: tuple[str, ...]
) -> Iterator[str | None]:
    """Yield the tightest class that holds for the values of one case that stand at positions of a band."""
    for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
        for name, output in outputs.items():
            where = value_positions.places(operation.op, call, name)
            if where is None:
                continue
            chosen = value_positions.in_band(where, band)
            if not np.any(chosen):
                continue
            for accuracy in classes:
                error, width = comparing.errors(operation.op, call, name, output, accuracy, answer.dtype)
                if np.all(error[chosen] <= width[chosen]):
                    yield accuracy
                    break
            else:
                yield None


def _loosest(found: list[str | None], classes: tuple[str, ...]) -> str | None:
    """Return the loosest of classes, or None if one is none of them."""
    if not found or None in found:
        return None
    return max((f for f in found if f), key=classes.index)


def _explain(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add diagnoses, those of stages first: a stage that fails explains what is composed of it."""
    failing = [(o, answers) for o, answers in operations if any(c.kind != "reject" and c.verdict == "fail" for c in o.cases)]
    if not failing:
        return
    from ..diagnosis.explanation import diagnose  # the deviations take long to load, and what conforms needs none

    wrong = {o.op: [c for c in o.cases if c.kind in ("value", "sequence") and c.verdict == "fail"] for o, _ in failing}
    known: dict[str, Any] = {}
    for operation, answers in sorted(failing, key=lambda pair: len(stages(pair[0].op))):
        verdicts = {c.id: c.verdict for c in operation.cases}
        relevant = [(_few(a), verdicts[a.case.id] == "fail") for a in answers if verdicts[a.case.id] in ("pass", "fail")]
        below = [s for s in stages(operation.op) if wrong.get(s)]
        operation.diagnosis = diagnose(
            operation.op, relevant, operation.claim, below[0] if below else None,
            known={s: known[s] for s in below if s in known}, first=operation.first_failing_position,
        )  # fmt: skip
        if operation.diagnosis["names"]:
            known.setdefault(operation.op, operation.diagnosis["explanations"])


def _few(answer: Answer) -> Answer:
    """Return what hypotheses are tried on: of a large case some rows."""
    return kernel.with_few(answer).few or answer
