"""
The judge: the verdict of one call, with its tolerance, its rows and its message.

Stored cases have expected values and tolerances in their files. Any other call is judged live: `proof.live_truth` computes what
is true, in float64 with an error bound and on balls where the bound leaves the verdict open. A large call is judged live on
some of its rows, and the verdict says how many values those are.

What a call may not do whatever its values are, such as change an input, is in `targets/invocation.py`. `checks/case_run.py`
makes the verdict of a case from both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from .accuracy import TRIG, base_of, declared_in, tolerance_of
from .calls import class_and_dtype, makes_constants
from .errors import NotJudged
from .model import Arrays, Call, number
from .proof.evaluation import half_widths, of_scalars, result_placeholders
from .proof.live_truth import Sample, Truth, choose, screened
from .vocabulary.axes import Budget, Rows, Selection, rows_of, signed_places

Reals = npt.NDArray[np.float64]
Output = tuple[Call, str, npt.NDArray[Any]]  # a call, the name of one of its outputs, and what was returned
ON_BALLS = 1 << 17  # values decided on balls, at most; a term of a sum counts as one
ON_BOUNDS = Budget(values=1 << 20, terms=1 << 25)


# ---- a verdict and its words ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Verdict:
    """
    The verdict on one output of a call: "pass", "fail", "not-judged" or "not-run", of how many values, and why.

    Of a failure it has the worst value: the one farthest outside its tolerance, and the position at which it stands.
    """

    output: str
    verdict: str
    judged: int
    of: int
    reason: str = ""
    index: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    error: float = 0.0
    tolerance: float = 0.0
    position: float | None = None  # with its sign
    exact: bool = False  # whether values are integers or of a mask

    @property
    def ratio(self) -> float:
        """Error over tolerance; infinite where the value must be exact."""
        return self.error / self.tolerance if self.tolerance else (np.inf if self.error else 0.0)

    def __str__(self) -> str:
        """Return the verdict in one line, with the number of values judged."""
        counted = f"{self.judged} of {self.of} values judged"
        if self.verdict == "fail":
            limit = "it must be exact" if self.tolerance == 0 else f"{self.tolerance:.2g} is allowed"
            return f"{self._sentence('', np.inf if math.isnan(self.error) else self.error, limit)} ({counted})"
        return f"{self.output}: {self.verdict}{': ' if self.reason else ''}{self.reason} ({counted})"

    def message(self, claim: str, of: str = "") -> str:
        """Return the failure as a report has it: with the position and the claimed class; `of` may name a call."""
        limit = "must be exact" if self.tolerance == 0 else f"{claim} allows {self.tolerance:.2g}"
        limit = limit if np.isfinite(self.got) else "must be finite"
        place = "" if self.position is None else f" at position {self.position:.9g}"
        return self._sentence(f"{of}{place}", self.error, limit)

    def _sentence(self, place: str, error: float, limit: str) -> str:
        at = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        far = "" if math.isnan(error) else f"off by {error:.2g}, "
        off = "" if self.exact else f"; {far}{limit}"
        return f"{self.output}{at}{place}: got {self.got:.9g}, expected {self.expected:.9g}{off}"

    def to_json(self) -> dict[str, Any]:
        """Return the worst value as a report has it."""
        return {
            "output": self.output, "index": list(self.index), "position": self.position, "expected": self.expected,
            "got": number(self.got), "error": number(self.error), "tolerance": self.tolerance, "ratio": number(self.ratio),
        }  # fmt: skip


@dataclass(frozen=True)
class Judgement:
    """The verdict on a call in the class `accuracy`: on every output, with the sample of judged values."""

    op: str
    accuracy: str
    dtype: str
    verdicts: tuple[Verdict, ...]
    sample: Sample | None = None  # None if nothing can be said of the call

    @property
    def verdict(self) -> str:
        """The verdict on all outputs together."""
        return next((one.verdict for one in self.verdicts if one.verdict != "pass"), "pass")

    @property
    def reason(self) -> str:
        """Why the call has no verdict; empty if it has one."""
        return next((one.reason for one in self.verdicts if one.reason), "")

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts on the outputs that fail."""
        return tuple(one for one in self.verdicts if one.verdict == "fail")

    @property
    def worst(self) -> Verdict | None:
        """The failure that is farthest outside its tolerance."""
        return max(self.failures, key=lambda one: one.ratio, default=None)

    @property
    def counted(self) -> str:
        """How many values were judged, unless all were."""
        judged, of = sum(one.judged for one in self.verdicts), sum(one.of for one in self.verdicts)
        return f"{judged} of {of} values judged" if judged < of else ""

    def holds(self, accuracy: str) -> bool:
        """Return whether the judged values are within a class, the claimed one or another."""
        if accuracy == self.accuracy:
            return not self.failures
        assert self.sample is not None
        call, outputs = self.sample.call, self.sample.outputs
        error, width = errors_of_all(self.op, [(call, n, outputs[n]) for n in call.expected], accuracy, self.dtype)
        return bool((error <= width).all())

    @property
    def systematic(self) -> str:
        """What is systematically off, in words, or nothing; only a claim of class fused is held to it."""
        claimed = TRIG.sub("", self.accuracy) == "fused" and not makes_constants(self.op)
        if not claimed or self.sample is None or self.sample.call.cotangents:
            return ""
        for name, output in self.sample.outputs.items():
            fit = systematic(self.op, self.sample.call, name, output, self.accuracy, self.dtype)
            if fit is not None and fit.ratio > 1:
                return (
                    f"{name} is systematically off: {1 + fit.slope:.6g} times what is expected, plus {fit.offset:.2g}; "
                    f"{self.accuracy} allows {fit.slope_bound:.2g} and {fit.offset_bound:.2g}"
                )
        return ""


# ---- the verdict ----------------------------------------------------------------------------------------------------------
def judge(
    op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str, *,
    truth: str = "stored", everything: bool = False, balls: int = ON_BALLS, whole: Arrays | None = None,
) -> Judgement:  # fmt: skip
    """
    Return the verdict on one call.

    Parameters
    ----------
    op : str
        The operation.
    call : Call
        The arrays as NumPy, with the values that the implementation was given, and the options. With `cotangents` gradients
        are judged.
    outputs : dict
        What the implementation returned, by name, as NumPy; of gradients by the names of inputs.
    accuracy, dtype : str
        The class that it claims, and the dtype of the call.
    truth : {"stored", "live"}
        Whether expected values and tolerances are those of `call`, or are computed here. Then `call.expected` may hold
        what the definition gives in float64, and reals may come in any dtype of NumPy.
    everything : bool
        Judge all rows of a live call, however many.
    balls : int
        How many values of a live call are decided on balls, at most.
    whole : dict, optional
        Arrays of the shapes and kinds of the results of a live call, if they are known.
    """
    try:
        stored = truth == "stored"
        sample = _whole(call, outputs) if stored else _live(op, call, outputs, accuracy, dtype, everything, balls, whole)
    except NotJudged as none:
        of_outputs = (Verdict(name, none.verdict, 0, y.size, str(none)) for name, y in outputs.items())
        return Judgement(op, accuracy, dtype, tuple(of_outputs))
    verdicts = tuple(_placed(op, sample, name, accuracy, dtype) for name in sample.call.expected)
    return Judgement(op, accuracy, dtype, verdicts, sample)


def compare(op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str) -> Verdict | None:
    """Return the failure that is farthest outside the class's tolerance, or None if all values are within."""
    verdicts = (_verdict(op, call, name, outputs[name], accuracy, dtype) for name in call.expected)
    return max((one for one in verdicts if one.verdict == "fail"), key=lambda one: one.ratio, default=None)


def _verdict(op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str) -> Verdict:
    """Return the verdict on one output, all of whose values are judged."""
    error, width = errors(op, call, name, output, accuracy, dtype)
    within, expected = error <= width, call.expected[name]
    if within.all():
        return Verdict(name, "pass", expected.size, expected.size)
    outside = ~within
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(outside, np.where(np.isnan(error), np.inf, error / width), -1.0)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape)) if ratio.ndim else ()
    verdict = Verdict(name, "fail", expected.size, expected.size, index=at, exact=expected.dtype.kind != "f")
    got, true, off, allowed = (float(x[at]) for x in (np.broadcast_to(output, expected.shape), expected, error, width))
    return replace(verdict, got=got, expected=true, error=off, tolerance=allowed)


def _placed(op: str, sample: Sample, name: str, accuracy: str, dtype: str) -> Verdict:
    """Return the verdict on one output of a sample, its worst value placed in the whole."""
    verdict = _verdict(op, sample.call, name, sample.outputs[name], accuracy, dtype)
    judged, of = sample.judged[name], sample.of(name)
    verdict = verdict if (verdict.judged, verdict.of) == (judged, of) else replace(verdict, judged=judged, of=of)
    if verdict.verdict == "pass":
        return verdict
    where = signed_places(op, sample.call, name)
    position = None if where is None else float(where[verdict.index])
    return replace(verdict, index=sample.place(name, verdict.index), position=position)


def errors(
    op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str
) -> tuple[Reals, Reals]:  # fmt: skip
    """Return the absolute errors of an output and their tolerances."""
    error, width = errors_of_all(op, [(call, name, output)], accuracy, dtype)
    shape = call.expected[name].shape
    return error.reshape(shape), width.reshape(shape)


def errors_of_all(op: str, outputs: Sequence[Output], accuracy: str, dtype: str) -> tuple[Reals, Reals]:
    """Return the absolute errors of several outputs and their tolerances, one output after the other in one axis."""
    expected = joined([call.expected[name] for call, name, _ in outputs])
    values = joined([broadcast(output, call.expected[name].shape) for call, name, output in outputs])
    with np.errstate(invalid="ignore"):
        error = np.abs(values - expected)
    infinite = np.isinf(expected)
    if infinite.any():  # such a value must be equal
        error = np.where(infinite, np.where(values == expected, 0.0, np.inf), error)
    return error, widths_of_all(op, outputs, accuracy, dtype)


def widths_of_all(op: str, outputs: Sequence[Output], accuracy: str, dtype: str) -> Reals:
    """Return the tolerances of several outputs, one output after the other in one axis."""
    width = np.empty(sum(call.expected[name].size for call, name, _ in outputs))
    for chosen, of_kind in _of_one_kind(outputs):
        expected = joined([call.expected[name] for call, name, _ in of_kind])
        width[chosen] = _allowed_of_all(op, of_kind, expected, accuracy, dtype)
    return width


def _of_one_kind(outputs: Sequence[Output]) -> Iterator[tuple[slice | npt.NDArray[np.bool_], Sequence[Output]]]:
    """Yield the outputs of one kind, integers or reals, values or gradients, and where their values lie among all."""
    kinds = [(call.expected[name].dtype.kind == "f", bool(call.cotangents)) for call, name, _ in outputs]
    if len(set(kinds)) <= 1:
        yield slice(None), outputs
        return
    sizes = [call.expected[name].size for call, name, _ in outputs]
    for kind in dict.fromkeys(kinds):
        chosen = np.repeat([other == kind for other in kinds], sizes)
        yield chosen, [output for output, other in zip(outputs, kinds, strict=True) if other == kind]


def _allowed_of_all(op: str, outputs: Sequence[Output], expected: Reals, accuracy: str, dtype: str) -> Reals:
    """Return the tolerances of outputs of one kind; a value that is infinite must be equal."""
    if not outputs or outputs[0][0].expected[outputs[0][1]].dtype.kind != "f":
        return np.zeros(expected.shape)
    accuracy, dtype = class_and_dtype(op, accuracy, dtype, gradients=bool(outputs[0][0].cotangents))
    base = base_of(accuracy, dtype)
    stored = {base: joined([_stored(op, call, name, base) for call, name, _ in outputs])}
    if declared_in(accuracy) is not None:
        none = np.zeros(())
        moved = [(call.widths.get("trig", {}).get(name, none), call.expected[name].shape) for call, name, _ in outputs]
        stored["trig"] = joined([broadcast(width, shape) for width, shape in moved])
    width = tolerance_of(stored, expected, accuracy, dtype)
    infinite = np.isinf(expected)
    return np.where(infinite, 0.0, width) if infinite.any() else width


def _stored(op: str, call: Call, name: str, base: str) -> npt.NDArray[Any]:
    """
    Return the half-widths of an output in a class, computed where they are not stored.

    At position 0 a rotation is exact. Where positions count only by their differences, code may count them from 1: what the
    class allows it there is allowed in place of nothing.
    """
    widths = call.widths.get(base, {})
    width = widths[name] if name in widths else half_widths(op, call, base)[name]
    if not _counts_differences(op) or call.cotangents:
        return width
    exact = (width == 0) & (call.expected[name] != 0)
    return np.where(exact, _counted_from_1(op, call, base)[name], width) if exact.any() else width


@cache
def _counts_differences(op: str) -> bool:
    """Return whether the result of a rotation depends on positions of queries and keys only by their differences."""
    return "relative" in REGISTRY[op].invariants and {"q_positions", "k_positions"} <= REGISTRY[op].arrays.keys()


def _counted_from_1(op: str, call: Call, base: str) -> Arrays:
    """Return the half-widths of a call with all positions one larger, made once."""
    kept = f"{base}, counted from 1"
    if kept not in call.computed:
        moved = {name: x + 1 if name.endswith("_positions") else x for name, x in call.inputs.items()}
        call.computed[kept] = half_widths(op, replace(call, inputs=moved, computed={}), base)
    return call.computed[kept]


def broadcast(x: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array repeated to a shape, if it does not have it: NumPy takes long to say so."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def joined(arrays: Sequence[npt.NDArray[Any]]) -> Reals:
    """Return the values of several arrays in one axis, as float64."""
    if len(arrays) == 1:
        return arrays[0].reshape(-1).astype(np.float64, copy=False)
    return np.concatenate([array.reshape(-1) for array in arrays], dtype=np.float64) if arrays else np.empty(0)


def ratios(error: Reals, width: Reals) -> Reals:
    """
    Return errors over tolerances: above 1 just where an error is beyond its tolerance.

    It is 0 where there is no error, and infinite where a value that must be exact is not, or is not a number.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = np.where(error == 0, 0.0, np.where(np.isnan(error), np.inf, error / width))
    return np.where(error <= width, np.minimum(quotient, 1.0), np.maximum(quotient, np.nextafter(1.0, 2.0)))


# ---- which rows are judged ------------------------------------------------------------------------------------------------
def _whole(call: Call, outputs: Arrays) -> Sample:
    """Return all of a call."""
    shapes = {name: expected.shape for name, expected in call.expected.items()}
    return Sample(call, outputs, Rows({}, {}, {}), {}, {n: math.prod(shape) for n, shape in shapes.items()}, shapes)


def _live(
    op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str, everything: bool, balls: int, known: Arrays | None
) -> Sample:  # fmt: skip
    """Return the rows of a call that are judged, with their true values and tolerances; `NotJudged` if there are none."""
    accuracy, dtype = class_and_dtype(op, accuracy, dtype, gradients=bool(call.cotangents))
    whole = call.expected or (call.inputs if call.cotangents else {})
    whole = whole or known or result_placeholders(op, call.inputs, call.params, {n: y.shape for n, y in outputs.items()})
    outputs = {n: broadcast(y, whole[n].shape) for n, y in outputs.items()}
    proved = accuracy == "float64" and dtype == "float64" and REGISTRY[op].returns == "real"
    rows = Rows({}, {}, {})
    selection: Selection = {}
    if call.cotangents:
        if sum(x.size for x in whole.values()) > ON_BOUNDS.values and not everything:
            msg = f"gradients of more than {ON_BOUNDS.values} values"
            raise NotJudged(msg)
    else:
        rows = rows_of(op, call.inputs, call.params, {n: x.shape for n, x in whole.items()})
        budget = Budget(balls, balls) if proved else ON_BOUNDS
        screen = None if call.expected else partial(screened, op, call, rows, outputs)
        selection = selection if everything else choose(rows, outputs, whole, budget, screen)
    return Truth(op, call, outputs, accuracy, dtype, rows, balls).sample(selection, proved=proved)


# ---- the systematic part of an error --------------------------------------------------------------------------------------
SPREAD = 6.0  # of independent errors, in roots of the sum of their squares
FEWEST = 8  # values of which a slope says something


@dataclass(frozen=True)
class Systematic:
    """
    The slope, less 1, and the offset of one output against what is expected, by least squares; each with what a class allows.

    Each is a weighted sum of errors, and so is its bound. Roundings of scalars (1/sqrt(D) in bfloat16) move all values together
    and count at their full size. The others are independent in different rows, in different columns, or of different values,
    whichever says less: the chance that a sum of independent errors, each within its bound, is beyond six times the root of
    their squares is 2 exp(-18) (Hoeffding).
    """

    output: str
    slope: float
    slope_bound: float
    offset: float
    offset_bound: float

    @property
    def ratio(self) -> float:
        """The larger of both over its bound."""
        return max(abs(self.slope) / self.slope_bound, abs(self.offset) / self.offset_bound)


def systematic(op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str) -> Systematic | None:
    """Return the systematic error of one output; None where there are too few values, or all must be exact."""
    fit = weighted(op, call, name, output, accuracy, dtype)
    if fit is None:
        return None
    weights, error, width = fit
    common = np.minimum(of_scalars(op, call, dtype)[name].astype(np.float64), width)
    values = [float(np.sum(w * error)) for w in weights]
    common = np.where(np.isnan(common), width, common)
    slope, offset = (_allowed(np.abs(w), width, common, call.expected[name]) for w in weights)
    return Systematic(name, values[0], slope, values[1], offset)


def weighted(
    op: str, call: Call, name: str, output: npt.NDArray[Any], accuracy: str, dtype: str
) -> tuple[tuple[Reals, Reals], Reals, Reals] | None:
    """Return the weights of errors in slope and offset, the errors with their signs, and what the class allows each."""
    expected = call.expected[name]
    if expected.dtype.kind != "f" or expected.size < FEWEST:
        return None
    width = widths_of_all(op, [(call, name, output)], accuracy, dtype).reshape(expected.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.broadcast_to(output, expected.shape).astype(np.float64) - expected
        apart = expected - np.mean(expected)
        square = float(np.sum(apart**2))
    if not (np.all(np.isfinite(error)) and np.all(np.isfinite(width)) and np.any(width) and np.isfinite(square) and square):
        return None
    slope = apart / square
    return (slope, 1 / expected.size - np.mean(expected) * slope), error, width


def _allowed(weights: Reals, width: Reals, common: Reals, expected: Reals) -> float:
    """Return the bound of a sum of errors; `common` are roundings that all values share."""
    widths = weights * (width - common)
    sums = [np.sum(np.moveaxis(widths, axis, 0).reshape(widths.shape[axis], -1), axis=1) for axis in range(widths.ndim)]
    sums.append(np.bincount(np.unique(expected, return_inverse=True)[1].ravel(), weights=widths.ravel()))
    spread = SPREAD * max(float(np.sqrt(np.sum(group**2))) for group in sums)
    return min(float(np.sum(weights * width)), float(np.sum(weights * common)) + spread) + 1e-300
