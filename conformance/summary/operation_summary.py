"""
The summary of an operation's answers: classes and what they mean, positions, curves and coverage.

Errors, and what the claimed class allows, are measured in batches, many outputs side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from posref.core.composition import has_frequencies
from posref.spec import REGISTRY

from .. import judge
from ..calls import EXACT, ladder
from ..model import Answer, Operation, decides, number
from ..vocabulary.axes import BANDS
from .batches import Batch, Output, Places, batches_of, outputs_of
from .call_words import call_in_words
from .coverage import cover
from .curves import Figures

CLOSE = 1e-9  # sums in another order differ by less


def summarise(operation: Operation, answers: list[Answer], known: Places) -> None:
    """Add to an operation what its answers together say; positions of outputs are kept in `known`."""
    _measure(operation, [answer.part or answer for answer in answers], known)
    cover(operation, answers)
    asked = {answer.case.id: answer.asked or answer.case for answer in answers}
    for case in operation.cases:
        if decides(case.kind, case.verdict) and case.id in asked:
            case.call = call_in_words(asked[case.id])


def _measure(operation: Operation, answers: list[Answer], known: Places) -> None:
    """Fill in what an operation's answers come to: its classes, ratios, figures, meaning, and systematic error."""
    judged = [c for c in operation.cases if c.kind != "reject" and c.verdict in ("pass", "fail")]
    classes = ladder(operation.op, operation.dtype, operation.claim)
    operation.achieved = _loosest([c.achieved for c in judged], classes)
    place = classes.index(operation.achieved) if operation.achieved else 0
    tighter = classes[place - 1] if place else None
    outputs = outputs_of(operation.op, answers, known)
    figures, held = Figures(operation, outputs), {band: list[str | None]() for band in BANDS}
    ratios, failing, missed, slopes = list[float](), list[float](), list[float](), list[float]()
    farthest = -1.0, 0.0
    for batch in batches_of(operation, outputs):
        for band in BANDS:
            held[band] += batch.holding(band, classes)
        ratios += _largest_ratios(batch)
        failing += _failing(batch)
        missed += batch.largest(judge.ratios(batch.error, batch.width(tighter))) if tighter else []
        slopes += batch.slopes()
        farthest = farther(operation.op, batch, farthest)
        figures.add(batch)
    operation.bands = [
        {"from": low, "to": high, "achieved": _loosest(achieved, classes)} for (low, high), achieved in held.items() if achieved
    ]
    operation.worst_ratio = max(ratios, default=None)
    operation.first_failing_position = min(failing, key=abs, default=None)
    if operation.first_failing_position:
        below = 0, abs(operation.first_failing_position)
        near = [accuracy for batch in batches_of(operation, outputs) for accuracy in batch.holding(below, classes)]
        operation.achieved_below = _loosest(near, classes)
    figures.draw()
    if operation.achieved is not None:
        operation.meaning = meaning_of(operation, *farthest)
    if tighter:
        operation.missed = {"class": tighter, "ratio": max(missed, default=0.0)}
    _measure_systematic(operation, list(zip(slopes, outputs, strict=True)))


def _largest_ratios(batch: Batch) -> list[float]:
    """Return the largest ratio of every output that may have an error."""
    telling = np.logical_or.reduceat((batch.allowed > 0) | (batch.ratio > 0), batch.starts)
    return [largest for largest, tells in zip(batch.largest(batch.ratio), telling, strict=True) if tells]


def _failing(batch: Batch) -> Iterator[float]:
    """Yield the first failing position of every output that has one."""
    for i, (largest, output) in enumerate(zip(batch.largest(batch.ratio), batch.outputs, strict=True)):
        if output.where is not None and not largest <= 1:
            beyond = output.where[batch.part(batch.ratio, i) > 1]
            yield from [float(beyond[np.argmin(np.abs(beyond))])] if beyond.size else []


def _loosest(found: list[str | None], classes: tuple[str, ...]) -> str | None:
    """Return the loosest of classes, or None if one is none of them."""
    if not found or None in found:
        return None
    return max((f for f in found if f), key=classes.index)


# ---- the systematic error of the call where it is largest ------------------------------------------------------------------
def _measure_systematic(operation: Operation, slopes: Sequence[tuple[float, Output]]) -> None:
    """Add to an operation the systematic error of the call where it is largest, for its class; `slopes` say about how large."""
    most = max((slope for slope, _ in slopes if np.isfinite(slope)), default=0.0)
    worst, share = None, 0.0
    for output in [output for slope, output in slopes if slope >= max(most - CLOSE, 0.0)]:
        fitted = _slope(operation, output)
        if fitted is not None and fitted >= share:
            worst, share = output, fitted
    if worst is None:
        return
    call, name, y = worst.values
    measured = judge.systematic(operation.op, call, name, y, operation.claim, operation.dtype)
    if measured is not None:
        values = {n: number(getattr(measured, n)) for n in ("slope", "slope_bound", "offset", "offset_bound")}
        operation.systematic = {"case": worst.answer.case.id, "output": name, **values}


def _slope(operation: Operation, output: Output) -> float | None:
    """Return the slope of an output, over the worst that its class allows; None where there is none."""
    fit = judge.weighted(operation.op, *output.values, operation.claim, operation.dtype)
    if fit is None:
        return None
    (weights, _), error, width = fit
    return abs(float(np.sum(weights * error))) / float(np.sum(np.abs(weights) * width))


# ---- the meaning of a class: how far results are from the true ones at the longest position --------------------------------
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
