"""The systematic error of an operation, for its report: of the call where it is largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..judge import systematic, weighted
from ..model import Answer, Arrays, Call, Operation, number


def fill(operation: Operation, answers: Sequence[Answer]) -> None:
    """Add to an operation the systematic error of the call where it is largest, for its class."""
    worst, share = None, 0.0
    for answer in answers:
        for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
            for name, found in _slopes(operation.op, call, outputs, operation.claim, answer.dtype):
                if found >= share:
                    worst, share = (answer, call, outputs, name), found
    if worst is None:
        return
    answer, call, outputs, name = worst
    measured = systematic(operation.op, call, name, outputs[name], operation.claim, answer.dtype)
    if measured is not None:
        values = {n: number(getattr(measured, n)) for n in ("slope", "slope_bound", "offset", "offset_bound")}
        operation.systematic = {"case": answer.case.id, "output": name, **values}


def _slopes(op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str) -> Iterator[tuple[str, float]]:
    """Yield the slope of every output, over the worst that its class allows."""
    for name, output in outputs.items() if not call.cotangents else ():
        found = weighted(op, call, name, output, accuracy, dtype)
        if found is not None:
            (weights, _), error, width = found
            yield name, abs(float(np.sum(weights * error))) / float(np.sum(np.abs(weights) * width))
