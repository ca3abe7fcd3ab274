"""
The systematic part of an error: slope and offset of the output against what is expected, by least squares over a call.

Each is a weighted sum of errors, and so is its bound. Roundings of scalars (1/sqrt(D) in bfloat16) move all values together and
count at their full size. The others are independent in different rows, in different columns, or of different values, whichever
says less: the chance that a sum of independent errors, each within its bound, is beyond six times the root of their squares is
2 exp(-18) (Hoeffding).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..accuracy import TRIG
from ..calls import makes_constants
from ..model import Answer, Arrays, Call, LoadedCase, Operation, number
from ..proof.computed import of_scalars
from ..target import comparing

Reals = npt.NDArray[np.float64]
SPREAD = 6.0  # of independent errors, in roots of the sum of their squares
FEWEST = 8  # values of which a slope says something


@dataclass(frozen=True)
class Systematic:
    """The slope, less 1, and the offset of one output, each with what a class allows."""

    output: str
    slope: float
    slope_bound: float
    offset: float
    offset_bound: float

    @property
    def ratio(self) -> float:
        """The larger of both over its bound."""
        return max(abs(self.slope) / self.slope_bound, abs(self.offset) / self.offset_bound)


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
    measured = measure(operation.op, call, name, outputs[name], operation.claim, answer.dtype)
    if measured is not None:
        values = {n: number(getattr(measured, n)) for n in ("slope", "slope_bound", "offset", "offset_bound")}
        operation.systematic = {"case": answer.case.id, "output": name, **values}


def beyond(case: LoadedCase, answer: Answer, claim: str, dtype: str) -> str | None:
    """Return what is systematically off in a case, in words; only a claim of class fused is held to it."""
    if TRIG.sub("", claim) != "fused" or makes_constants(case.op):
        return None
    for call, outputs in zip(case.calls, answer.outputs, strict=True):
        for name, output in outputs.items():
            found = measure(case.op, call, name, output, claim, dtype) if not call.cotangents else None
            if found is not None and found.ratio > 1:
                return (
                    f"{name} is systematically off: {1 + found.slope:.6g} times what is expected, plus {found.offset:.2g}; "
                    f"{claim} allows {found.slope_bound:.2g} and {found.offset_bound:.2g}"
                )
    return None


def measure(op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str) -> Systematic | None:
    """Return the systematic error of one output; None where there are too few values, or all must be exact."""
    found = _functionals(op, call, name, output, accuracy, dtype)
    if found is None:
        return None
    weights, error, width = found
    common = np.minimum(of_scalars(op, call, dtype)[name].astype(np.float64), width)
    values = [float(np.sum(w * error)) for w in weights]
    common = np.where(np.isnan(common), width, common)
    slope, offset = (_bound(np.abs(w), width, common, call.expected[name]) for w in weights)
    return Systematic(name, values[0], slope, values[1], offset)


def _slopes(op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str) -> Iterator[tuple[str, float]]:
    """Yield the slope of every output, over the worst that its class allows."""
    for name, output in outputs.items() if not call.cotangents else ():
        found = _functionals(op, call, name, output, accuracy, dtype)
        if found is not None:
            (weights, _), error, width = found
            yield name, abs(float(np.sum(weights * error))) / float(np.sum(np.abs(weights) * width))


def _functionals(
    op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str
) -> tuple[tuple[Reals, Reals], Reals, Reals] | None:
    """Return the weights of errors in slope and offset, the errors with their signs, and what the class allows each."""
    expected = call.expected[name]
    if expected.dtype.kind != "f" or expected.size < FEWEST:
        return None
    _, width = comparing.errors(op, call, name, output, accuracy, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.broadcast_to(output, expected.shape).astype(np.float64) - expected
        apart = expected - np.mean(expected)
        square = float(np.sum(apart**2))
    if not (np.all(np.isfinite(error)) and np.all(np.isfinite(width)) and np.any(width) and np.isfinite(square) and square):
        return None
    slope = apart / square
    return (slope, 1 / expected.size - np.mean(expected) * slope), error, width


def _bound(weights: Reals, width: Reals, common: Reals, expected: Reals) -> float:
    """Return how far a sum of errors may be off, of which `common` are roundings that all values share."""
    own = weights * (width - common)
    sums = [np.sum(np.moveaxis(own, axis, 0).reshape(own.shape[axis], -1), axis=1) for axis in range(own.ndim)]
    sums.append(np.bincount(np.unique(expected, return_inverse=True)[1].ravel(), weights=own.ravel()))
    spread = SPREAD * max(float(np.sqrt(np.sum(group**2))) for group in sums)
    return min(float(np.sum(weights * width)), float(np.sum(weights * common)) + spread) + 1e-300
