"""What an achieved class means, in words: how far off results are at the longest position asked, and which class is missed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from posref.composition import has_frequencies
from posref.spec import REGISTRY

from .. import judge
from ..accuracy import UNIT
from ..calls import ladder
from ..model import Answer, Operation
from ..suite import value_positions

FINEST = {"float64": 1e-16, "float32": 1e-7, "bfloat16": 4e-3, "float16": 5e-4}  # one rounding of a cosine
REMEDY = {
    "float64": "form angles in float64",
    "frequency32": "keep frequencies as two floats",
    "product32": "keep frequencies as two floats and add the products",
}


def gives_waves(op: str) -> bool:
    """Return whether results are cosines and sines themselves: nothing is rotated by them."""
    return all(axes.kind != "real" for axes in REGISTRY[op].arrays.values())


def fill(operation: Operation, answers: Sequence[Answer]) -> None:
    """Add to an operation what its class means at the longest position, and the next tighter class with the worst ratio."""
    complete = [a for a in answers if len(a.outputs) == len(a.case.calls)]
    if operation.achieved is None or not complete:
        return
    operation.meaning = _meaning(operation, complete)
    classes = ladder(operation.op, operation.dtype, operation.claim)
    place = classes.index(operation.achieved)
    if place:
        missed = classes[place - 1]
        worst = max(float(np.max(r, initial=0.0)) for a in complete for r in _ratios(operation.op, a, missed))
        operation.missed = {"class": missed, "ratio": worst}


def _ratios(op: str, answer: Answer, accuracy: str) -> Iterator[Any]:
    for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
        for name, output in outputs.items():
            yield judge.ratios(*judge.errors(op, call, name, output, accuracy, answer.dtype))


def _meaning(operation: Operation, answers: Sequence[Answer]) -> dict[str, Any] | None:
    """Return the longest position, the error there, and a sentence; None for an operation without frequencies or positions."""
    if not has_frequencies(operation.op):
        return None
    found = [pair for answer in answers for pair in _farthest(operation, answer)]
    if not found:
        return None
    longest = max(position for position, _ in found)
    error = max(error for position, error in found if position == longest)
    noun = "cosines are" if gives_waves(operation.op) else "results are, for their size,"
    text = f"at position {longest:,.0f} your {noun} within {_rounded_up(error)}"
    finest = FINEST[operation.dtype]
    if error > (2 if operation.dtype in UNIT else 10) * finest:
        remedy = REMEDY["float64"] if operation.dtype == "float64" else REMEDY.get(str(operation.achieved), REMEDY["product32"])
        text += f"; {remedy} for {_rounded_up(finest)}"
    return {"position": longest, "error": error, "text": text}


def _farthest(operation: Operation, answer: Answer) -> Iterator[tuple[float, float]]:
    """Yield the farthest position of each output of values, and the largest error there."""
    for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
        for name, output in outputs.items() if not call.cotangents else ():
            where = value_positions.places(operation.op, call, name)
            expected = call.expected[name]
            if where is None or where.shape != expected.shape or not expected.size:
                continue
            error, _ = judge.errors(operation.op, call, name, output, operation.claim, answer.dtype)
            size = 1.0 if gives_waves(operation.op) else float(np.max(np.abs(expected)))
            last = where == np.max(where)
            if size and np.all(np.isfinite(error[last])):
                yield float(np.max(where)), float(np.max(error[last])) / size


def _rounded_up(error: float) -> str:
    """Return an error in one digit, never too small."""
    if not error:
        return "0"
    power = math.floor(math.log10(error))
    digit = math.ceil(error / 10.0**power - 1e-9)
    return f"{digit * 10.0**power:.1g}".replace("e-0", "e-")
