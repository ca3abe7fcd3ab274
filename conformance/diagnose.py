"""Why an implementation differs: the deviations that reproduce its outputs, ties and all; "unexplained" where nothing fits."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from . import invoke
from .calls import bind, takes_dtype
from .deviations import DEVIATIONS, Deviation
from .report import number
from .suite import Call

if TYPE_CHECKING:
    from .checker import Answer

JITTER = {"float64": 2.0**-49, "float32": 2.0**-20, "bfloat16": 2.0**-20, "float16": 2.0**-20}  # 16 unit roundoffs, of angles
UNITS = {"float64": 2.0**-50, "float32": 2.0**-21, "bfloat16": 2.0**-6, "float16": 2.0**-9}  # 8 roundings of a result
SAMPLES = (1.0, -1.0, 0.5, -0.5, 0.125, -0.125)  # fractions of the jitter at which a hypothesis is evaluated
HOPELESS = 64.0  # tolerances from the outer samples, beyond which the inner ones are not asked for
SUMS = ("rope", "apply_rope", "rotation_matrix", "attention", "attention_logits", "shaw_scores", "shaw_values")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Asked:
    """One output of one call: what is to be reproduced (the expected value where the case passed), and its tolerance."""

    call: int
    name: str
    expected: Array
    wanted: Array
    width: Array
    failed: bool


def diagnose(op: str, answers: list[tuple[Answer, bool]], claim: str, stage: str | None) -> dict[str, Any]:
    """
    Return an explanation of the failures among `answers`, which are in the order of asking, each with whether it failed.

    A deviation explains them if it reproduces every failing case within what rounding may do, and gives the expected values
    wherever the implementation passed. Where none explains them all, two or three may, each some of the cases, if it leaves
    the cases of the others alone.
    """
    first = f"the first wrong stage is {stage}; " if stage else ""
    answers = [(a, failed) for a, failed in answers if a.case.kind != "reject"]
    told = [(a, failed) for a, failed in answers if len(a.outputs) == len(a.case.calls)]
    silent = len(answers) - len(told)
    if not any(failed for _, failed in told):
        return {"text": f"{first}unexplained: no failing case gave values to look at.", "names": []}
    fitting, next_best = _search(op, told, claim)
    if not fitting:
        several = _several(op, told, claim)
        text = _apart(several, claim) if several else "unexplained: no known deviation gives these values."
        return {"text": first + text, **_about([d for ties, _ in several for d in ties])}
    ahead = next_best / max(*(score for score, _ in fitting), 1e-3)
    found = list({d.name: d for _, d in fitting}.values())
    return {"text": first + _sentence(found, claim, ahead, silent), **_about(found), "next_best": number(float(ahead))}


def _about(found: Sequence[Deviation]) -> dict[str, Any]:
    """Return names, hints and sightings of deviations."""
    return {
        "names": [d.name for d in found],
        "hint": " ".join(dict.fromkeys(d.hint for d in found if d.hint)),
        "seen_in": "; ".join(dict.fromkeys(d.seen_in for d in found if d.seen_in)),
    }


def _sentence(fitting: Sequence[Deviation], claim: str, ahead: float, silent: int) -> str:
    """Return the diagnosis in words."""
    what = " or: ".join(f"{d.text} ({d.name})" for d in fitting)
    tie = " These give the same values on every case asked." if len(fitting) > 1 else ""
    rest = f" The next best explanation is {ahead:.0e} times worse." if np.isfinite(ahead) else ""
    apart = f" {silent} failing case{'s' * (silent > 1)} gave no values to compare." if silent else ""
    return f"the values equal, within {claim}, the definition's where {what}.{tie}{rest}{apart}"


def _apart(several: Sequence[tuple[list[Deviation], list[str]]], claim: str) -> str:
    """Return several deviations in words, each with the cases that it explains."""
    parts = []
    for ties, cases in several:
        what = " or: ".join(f"{d.text} ({d.name})" for d in ties)
        parts.append(f"in {len(cases)} cases ({', '.join(cases[:2])}{', ...' * (len(cases) > 2)}) {what}")
    return f"{len(parts)} deviations: the values equal, within {claim}, the definition's where, " + "; ".join(parts) + "."


def _several(op: str, answers: list[tuple[Answer, bool]], claim: str) -> list[tuple[list[Deviation], list[str]]]:
    """
    Return up to three deviations (with ties) that explain all failures together, each with its cases; none if there are none.

    Each must explain two cases at least, change no other failing case, and contradict no passing one.
    """
    cases = [a for a, _ in answers]
    asked = [_asked(op, a, failed, claim) for a, failed in answers]
    true = [_asked(op, a, False, claim) for a, _ in answers]
    failing = {n for n, (_, failed) in enumerate(answers) if failed}
    explained: dict[frozenset[int], list[Deviation]] = {}
    for deviation in DEVIATIONS.values():
        if not deviation.touches(op):
            continue
        told = _Fresh(deviation, op, cases)
        same = [s <= 1 for s in _scores(op, cases, true, told)]
        if not all(same[n] or n in failing for n in range(len(cases))):
            continue
        fits = [s <= 1 for s in _scores(op, cases, asked, told)]
        mine = frozenset(n for n in failing if fits[n] and not same[n])
        if len(mine) > 1 and all(same[n] for n in failing - mine):
            explained.setdefault(mine, []).append(deviation)
    found, left = [], set(failing)
    for mine in sorted(explained, key=len, reverse=True)[:3]:
        if mine <= left:
            found.append((explained[mine], [cases[n].case.id for n in sorted(mine)]))
            left -= mine
    return [] if left else found


def _search(op: str, answers: list[tuple[Answer, bool]], claim: str) -> tuple[list[tuple[float, Deviation]], float]:
    """
    Return the deviations that explain all answers with their scores, and the score of the best of the others.

    Best first: always the hypothesis with the lowest score so far is asked about its next case, so that most are dropped after
    one small case and the best of those that do not fit is still known exactly.
    """
    order = sorted(range(len(answers)), key=lambda n: (not answers[n][1], _size(answers[n][0])))
    asked = [_asked(op, *answers[n], claim) for n in order]
    cases = [answers[n][0] for n in order]
    heap: list[tuple[float, int, int, Deviation, Iterator[float]]] = []
    for deviation in DEVIATIONS.values():
        if deviation.touches(op):
            for kept in (False, True) if deviation.stateful else (False,):
                told = _Kept(deviation, op, [a for a, _ in answers], order) if kept else _Fresh(deviation, op, cases)
                heap.append((0.0, len(heap), 0, deviation, _scores(op, cases, asked, told)))
    heapq.heapify(heap)
    fitting: list[tuple[float, Deviation]] = []
    while heap:
        score, tie, count, deviation, rest = heapq.heappop(heap)
        if count == len(cases):
            if score > 1:
                return fitting, score
            fitting.append((score, deviation))
            continue
        heapq.heappush(heap, (max(score, next(rest)), tie, count + 1, deviation, rest))
    return fitting, np.inf


def _size(answer: Answer) -> int:
    return sum(value.size for call in answer.case.calls for value in call.expected.values())


def _asked(op: str, answer: Answer, failed: bool, claim: str) -> list[_Asked]:
    """Return what is to be reproduced of one case."""
    found = []
    for k, call in enumerate(answer.case.calls):
        for name, expected in call.expected.items():
            wanted = np.broadcast_to(answer.outputs[k][name], expected.shape) if failed else expected
            _, width = invoke.errors(op, call, name, expected, claim, answer.dtype)
            found.append(_Asked(k, name, expected, wanted, width, failed))
    return found


class _Fresh:
    """What a deviation predicts for a case, from a new start."""

    def __init__(self, deviation: Deviation, op: str, cases: list[Answer]) -> None:
        self.deviation, self.op, self.cases = deviation, op, cases

    def __call__(self, n: int, jitter: float) -> list[invoke.Arrays]:
        return predict(self.deviation, self.op, self.cases[n].case.calls, jitter)


class _Kept(_Fresh):
    """What a deviation predicts whose state lives on from case to case: all of them, in the order of asking."""

    def __init__(self, deviation: Deviation, op: str, cases: list[Answer], order: list[int]) -> None:
        super().__init__(deviation, op, cases)
        self.order = order
        self.found: dict[float, list[list[invoke.Arrays]]] = {}

    def __call__(self, n: int, jitter: float) -> list[invoke.Arrays]:
        if jitter not in self.found:
            function = self.deviation.operations(jitter)[self.op]
            self.found[jitter] = [[_once(function, self.op, call) for call in a.case.calls] for a in self.cases]
        return self.found[jitter][self.order[n]]


def predict(deviation: Deviation, op: str, calls: tuple[Call, ...], jitter: float = 0.0) -> list[invoke.Arrays]:
    """Return what an implementation with a deviation would give for the calls of one case, in float64."""
    function = deviation.operations(jitter)[op]
    return [_once(function, op, call) for call in calls]


def _once(function: Any, op: str, call: Call) -> invoke.Arrays:
    """Return the outputs of one call by name; none where the deviation makes no sense for it."""
    positional, keywords = bind(op, {n: v.copy() for n, v in call.inputs.items()}, call.params)
    if takes_dtype(op):
        keywords["dtype"] = np.float64
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*positional, **keywords)
        except Exception:  # it may index outside a table, or want another shape
            return {}
    names = REGISTRY[op].outputs
    results = result if len(names) > 1 else (result,)
    return {n: np.asarray(r) for n, r in zip(names, results, strict=True)}


def _scores(op: str, cases: list[Answer], asked: list[list[_Asked]], told: _Fresh) -> Iterator[float]:
    """Yield, for one case after another, the distance in tolerances between what is predicted and what was found."""
    for n, wanted in enumerate(asked):
        dtype = cases[n].dtype
        predicted = [told(n, 0.0)]
        score = _distance(op, wanted, predicted, dtype)
        if 1 < score < np.inf:
            for outer, j in enumerate(SAMPLES):
                predicted.append(told(n, j * JITTER[dtype]))
                if outer % 2:
                    score = _distance(op, wanted, predicted, dtype)
                    if not 1 < score < HOPELESS:
                        break
        yield score


def _distance(op: str, wanted: list[_Asked], predicted: list[list[invoke.Arrays]], dtype: str) -> float:
    """Return the largest distance of a case's outputs from a prediction, in units of what rounding may have done."""
    return max((_ratio(op, a, [p[a.call].get(a.name) for p in predicted], dtype) for a in wanted), default=0.0)


def _ratio(op: str, asked: _Asked, told: list[Any], dtype: str) -> float:
    if any(value is None for value in told):
        return np.inf
    try:
        values = [np.broadcast_to(value, asked.expected.shape) for value in told]
    except ValueError:
        return np.inf
    if asked.expected.size == 0:
        return 0.0
    value = values[0]
    if asked.expected.dtype.kind != "f":
        return 0.0 if np.array_equal(value, asked.wanted) else np.inf
    if not np.array_equal(np.isfinite(value), np.isfinite(asked.wanted)):
        return np.inf
    with np.errstate(invalid="ignore"):
        size = np.max(np.abs(value), axis=-1, keepdims=True) if op in SUMS and value.ndim else np.abs(value)
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        outside = np.maximum(np.maximum(low - asked.wanted, asked.wanted - high), 0.0)
        shift = np.abs(value - asked.expected)
        touched = shift > UNITS["float64"] * size  # elsewhere the tolerance of the case itself holds
        allowed = np.where(touched, asked.width + UNITS[dtype] * size, asked.width)
        distance = np.where(touched, outside, np.abs(value - asked.wanted))
        if asked.failed:  # the worst value must be one that the deviation moves, or it is not what is wrong
            worst = np.argmax(_quotient(np.abs(asked.wanted - asked.expected), asked.width))
            if shift.flat[worst] <= asked.width.flat[worst]:
                distance = np.array(distance)
                distance.flat[worst] = np.abs(value - asked.wanted).flat[worst]
                allowed.flat[worst] = asked.width.flat[worst]
    return float(np.max(_quotient(distance, allowed)))


def _quotient(distance: Array, allowed: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(distance > 0, distance / np.where(allowed > 0, allowed, 2.0**-1022), 0.0)
