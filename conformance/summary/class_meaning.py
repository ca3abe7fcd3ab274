"""The meaning of a class, in words: how far results are from the true ones at the longest position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posref.core.composition import has_frequencies
from posref.spec import REGISTRY

from ..model import Operation
from .batches import Batch

EXACT = 1 << 24  # the largest number up to which float32 has all integers


def gives_waves(op: str) -> bool:
    """Return whether results are cosines and sines themselves: nothing is rotated by them."""
    return all(axes.kind != "real" for axes in REGISTRY[op].arrays.values())


def farther(op: str, batch: Batch, best: tuple[float, float]) -> tuple[float, float]:
    """
    Return the longest position so far, and the largest error there over the size of the result, with those of a batch.

    Positions beyond `EXACT` say nothing of angles in float32: every error is as large as the result.
    """
    if not has_frequencies(op):
        return best
    position, error = best
    far = [-1.0 if o.where is None else d for d, o in zip(batch.largest(batch.far), batch.outputs, strict=True)]
    for i in sorted(range(len(far)), key=lambda i: -far[i]):
        call, name, _ = batch.outputs[i].values
        if not max(position, 0.0) <= far[i] <= EXACT or call.cotangents:
            continue
        size = 1.0 if gives_waves(op) else float(np.max(np.abs(call.expected[name])))
        errors = batch.part(batch.error, i)[batch.part(batch.far, i) == far[i]]
        if size and np.all(np.isfinite(errors)):
            worst = float(np.max(errors)) / size
            position, error = far[i], worst if far[i] > position else max(worst, error)
    return position, error


def meaning_of(operation: Operation, position: float, error: float) -> dict[str, Any] | None:
    """Return the longest position, the error there, and a sentence; None without frequencies or positions."""
    if position < 0:
        return None
    within = f"within {_rounded_up(error)}"
    of = f"cosines are {within}" if gives_waves(operation.op) else f"results are {within} of their size"
    return {"position": position, "error": error, "text": f"at position {position:,.0f} your {of}"}


def _rounded_up(error: float) -> str:
    """Return an error in one digit, never too small."""
    if not error:
        return "0"
    power = math.floor(math.log10(error))
    digit = math.ceil(error / 10.0**power - 1e-9)
    return f"{digit * 10.0**power:.1g}".replace("e-0", "e-")
