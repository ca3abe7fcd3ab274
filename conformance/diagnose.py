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

JITTER = {
    "float64": 2.0**-49,
    "float32": 2.0**-20,
    "bfloat16": 2.0**-20,
    "float16": 2.0**-20,
}  # of an angle: 16 unit roundoffs
UNITS = {"float64": 2.0**-50, "float32": 2.0**-21, "bfloat16": 2.0**-6, "float16": 2.0**-9}  # 8 roundings of a result
STEPS = 4  # tolerances of jitter
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
        ((_score(d, op, failing[:MOST], claim), d) for d in DEVIATIONS.values() if d.touches(op)),
        key=lambda pair: pair[0],
    )
    fitting = [d for score, d in scores if score <= 1 and _score(d, op, passing, claim, expected=True) <= 1]
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
    equal = f"The values equal, within {claim}, the definition's where "
    tie = " These give the same values on every case asked." if len(fitting) > 1 else ""
    rest = f" The next best explanation is {next_best:.0e} times worse." if np.isfinite(next_best) else ""
    return f"{equal}{what}.{tie}{rest}"


def predict(deviation: Deviation, op: str, calls: tuple[Call, ...], jitter: float = 0.0) -> list[invoke.Arrays]:
    """Return what an implementation with a deviation would give for the calls of one case, in float64."""
    function = deviation.operations(jitter)[op]
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


def _score(deviation: Deviation, op: str, answers: list[Answer], claim: str, *, expected: bool = False) -> float:
    """
    Return the worst distance, in tolerances, between what the deviation predicts and the outputs (or the expected values).

    At most 1 explains them.
    """
    worst = 0.0
    for answer in answers:
        jitter = JITTER[answer.dtype]
        try:
            told = [predict(deviation, op, answer.case.calls, j) for j in (0.0, jitter, -jitter)]
        except Exception:  # a deviation may make no sense for a case: then it does not explain it
            return np.inf
        for k, call in enumerate(answer.case.calls):
            for name in told[0][k]:
                got = call.expected[name] if expected else answer.outputs[k][name]
                worst = max(worst, _distance(op, call, name, [t[k][name] for t in told], got, claim, answer.dtype))
        if worst > 1e9:
            return worst
    return worst


def _distance(op: str, call: Call, name: str, told: list[Any], got: Any, claim: str, dtype: str) -> float:
    """Return the largest difference of an output from a prediction, in units of what rounding may have done."""
    value, *jittered = told
    if value.size == 0:
        return 0.0
    if call.expected[name].dtype.kind != "f":
        return 0.0 if np.array_equal(value, got) else np.inf
    try:
        shape = np.broadcast_shapes(value.shape, got.shape, call.expected[name].shape)
    except ValueError:
        return np.inf
    _, width = invoke.errors(op, call, name, call.expected[name], claim, dtype)
    moved = np.abs(value - call.expected[name]) > width  # elsewhere the tolerance of the case itself holds
    with np.errstate(invalid="ignore"):
        own = STEPS * np.maximum(*(np.abs(j - value) for j in jittered)) + UNITS[dtype] * np.abs(value)
        allowed = np.where(moved, np.maximum(width, own), width) if dtype in ("float32", "float64") else np.maximum(width, own)
        difference = np.broadcast_to(np.abs(value - got), shape)
        difference = np.where(np.isnan(value) & np.isnan(got), 0.0, difference)
        ratio = np.where(difference == 0, 0.0, difference / np.where(allowed > 0, allowed, 2.0**-1022))
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))
