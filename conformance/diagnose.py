"""Why an implementation differs: the deviations that reproduce its outputs, ties and all; "unexplained" where nothing fits."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from posref.spec import REGISTRY

from . import invoke
from .calls import bind, takes_dtype
from .deviations import DEVIATIONS, Deviation
from .report import number
from .suite import Call

if TYPE_CHECKING:
    from .checker import Answer

MOST = 24  # cases that a hypothesis must reproduce: enough to tell any two apart, few enough to be quick


def diagnose(op: str, answers: list[tuple[Answer, bool]], claim: str, stage: str | None) -> dict[str, Any]:
    """
    Return an explanation of the failures among `answers` (each with whether it failed).

    A deviation explains them if it reproduces every failing case within the claimed class, and contradicts no passing one.
    """
    failing = [a for a, failed in answers if failed and len(a.outputs) == len(a.case.calls)]
    passing = [a for a, failed in answers if not failed]
    first = f"The first wrong stage is {stage}. " if stage else ""
    if not failing:
        return {"text": f"{first}unexplained: no failing case gave values to look at.".strip(), "names": []}
    scores = sorted(
        ((_score(d, op, failing[:MOST], claim), d) for d in DEVIATIONS.values() if d.touches(op)), key=lambda pair: pair[0]
    )
    fitting = [d for score, d in scores if score <= 1 and _harmless(d, op, passing, claim)]
    if not fitting:
        return {"text": f"{first}unexplained: no known deviation gives these values.".strip(), "names": []}
    others = [score for score, d in scores if d not in fitting]
    next_best = min(others, default=np.inf) / max(min(s for s, d in scores if d in fitting), 1e-3)
    return {
        "text": first + _sentence(fitting, claim, next_best),
        "names": [d.name for d in fitting],
        "hint": " ".join(dict.fromkeys(d.hint for d in fitting if d.hint)),
        "seen_in": "; ".join(dict.fromkeys(d.seen_in for d in fitting if d.seen_in)),
        "next_best": number(float(next_best)),
    }


def _sentence(fitting: list[Deviation], claim: str, next_best: float) -> str:
    """Return the diagnosis in words."""
    what = " or: ".join(f"{d.text} ({d.name})" for d in fitting)
    equal = f"the values equal, within {claim}, the definition's where " if claim else ""
    tie = " These give the same values on every case asked." if len(fitting) > 1 else ""
    rest = f" The next best explanation is {next_best:.0e} times worse." if np.isfinite(next_best) else ""
    return f"{equal}{what}.{tie}{rest}"


def predict(deviation: Deviation, op: str, calls: tuple[Call, ...]) -> list[invoke.Arrays]:
    """Return what an implementation with a deviation would give for the calls of one case, in float64."""
    function = deviation.operations()[op]
    names = REGISTRY[op].outputs
    found = []
    for call in calls:
        positional, keywords = bind(op, {n: v.copy() for n, v in call.inputs.items()}, call.params)
        if takes_dtype(op):
            keywords["dtype"] = np.float64
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*positional, **keywords)
        results = result if len(names) > 1 else (result,)
        found.append({n: np.asarray(r) for n, r in zip(names, results, strict=True)})
    return found


def _score(deviation: Deviation, op: str, failing: list[Answer], claim: str) -> float:
    """Return the worst distance, in tolerances, between failing outputs and what the deviation predicts; at most 1 explains."""
    worst = 0.0
    for answer in failing:
        try:
            predicted = predict(deviation, op, answer.case.calls)
        except Exception:  # noqa: BLE001 - a deviation may make no sense for a case: then it does not explain it
            return np.inf
        for call, told, got in zip(answer.case.calls, predicted, answer.outputs, strict=True):
            for name, value in told.items():
                worst = max(worst, _distance(op, call, name, value, got[name], claim, answer.dtype))
        if worst > 1e12:
            return worst
    return worst


def _distance(op: str, call: Call, name: str, told: Any, got: Any, claim: str, dtype: str) -> float:
    """Return the largest difference of two outputs in units of the tolerance (of the expected value's size, where it is zero)."""
    if told.size == 0:
        return 0.0
    if call.expected[name].dtype.kind != "f":
        return 0.0 if np.array_equal(told, got) else np.inf
    try:
        shape = np.broadcast_shapes(told.shape, got.shape, call.expected[name].shape)
    except ValueError:
        return np.inf
    _, width = invoke.errors(op, call, name, call.expected[name], claim, dtype)
    moved = np.abs(told - call.expected[name])  # where a deviation moves a value, its own rounding is relative to both
    floor = 2.0**-22 * np.maximum(np.abs(told), np.abs(call.expected[name])) if dtype != "float64" else 2.0**-50 * np.abs(told)
    allowed = np.maximum(width, np.where(moved > 0, floor, 0.0)) if dtype in ("float32", "float64") else width + 2.0**-7 * np.abs(told) * (moved > 0)
    difference = np.broadcast_to(np.abs(told - got), shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference == 0, 0.0, difference / allowed)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


def _harmless(deviation: Deviation, op: str, passing: list[Answer], claim: str) -> bool:
    """Return whether a deviation leaves every passing case within its tolerance."""
    for answer in passing[:MOST]:
        try:
            predicted = predict(deviation, op, answer.case.calls)
        except Exception:  # noqa: BLE001 - see _score
            return False
        for call, told in zip(answer.case.calls, predicted, strict=True):
            if any(_distance(op, call, n, v, call.expected[n], claim, answer.dtype) > 1 for n, v in told.items()):
                return False
    return True
