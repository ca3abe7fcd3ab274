"""An output beside what is expected: the error of every value, and what a class allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..accuracy import base_of, tolerance_of
from ..calls import judged_as
from ..model import Arrays, Call
from ..proof.computed import half_widths


@dataclass(frozen=True)
class Worst:
    """The value farthest outside its tolerance."""

    output: str
    index: tuple[int, ...]
    expected: float
    got: float
    error: float
    tolerance: float

    @property
    def ratio(self) -> float:
        """Error over tolerance; infinite where the value must be exact."""
        return self.error / self.tolerance if self.tolerance else (np.inf if self.error else 0.0)


def compare(op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str) -> Worst | None:
    """Return the value farthest outside the class's tolerance, or None if all are within."""
    worst: Worst | None = None
    for name, expected in call.expected.items():
        error, width = errors(op, call, name, outputs[name], accuracy, dtype)
        outside = ~(error <= width)
        if not np.any(outside):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(outside, np.where(np.isnan(error), np.inf, error / width), -1.0)
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape)) if ratio.ndim else ()
        got = np.broadcast_to(outputs[name], expected.shape)
        found = Worst(name, at, float(expected[at]), float(got[at]), float(error[at]), float(width[at]))
        if worst is None or found.ratio > worst.ratio:
            worst = found
    return worst


def errors(
    op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the absolute errors of an output and their tolerances."""
    expected = call.expected[name]
    accuracy, dtype = judged_as(op, accuracy, dtype, gradients=bool(call.cotangents))
    with np.errstate(invalid="ignore"):
        error = np.abs(np.broadcast_to(output, expected.shape).astype(np.float64) - expected)
    if expected.dtype.kind != "f":
        return error, np.zeros(expected.shape)
    stored = {c: widths[name] for c, widths in call.widths.items() if name in widths}
    base = base_of(accuracy, dtype)
    if base not in stored:
        stored[base] = half_widths(op, call, base)[name]
    return error, tolerance_of(stored, expected, accuracy, dtype)


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays have the same bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
