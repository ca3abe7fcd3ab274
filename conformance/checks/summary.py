"""Summary of an operation's answers: classes, positions, curves, coverage and diagnoses, as reports show them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.core.composition import has_frequencies, stages
from posref.scaling import Scaling
from posref.spec import REGISTRY, Record

from .. import judge
from ..accuracy import COMPUTED, TRIG, UNIT
from ..calls import ladder, positions_of
from ..model import Answer, Arrays, Call, LoadedCase, Operation, decides, number
from ..suite.axes import BANDS, in_band, signed_places
from ..traits import defaults, is_word
from .case_run import with_few

POINTS = 96  # of a curve, at most: so many marks have room beside each other in a report
OF_A_POINT = ("where", "ratio", "error", "allowed")
ROWS, COLUMNS = 64, 128  # of a map, at most

Reals = npt.NDArray[np.float64]
FINEST = {"float64": 1e-16, "float32": 1e-7, "bfloat16": 4e-3, "float16": 5e-4}  # one rounding of a cosine
REMEDY = {  # by the achieved class, what code of the classes above it does; above angle64 there is nothing to do
    "frequency32": "keep frequencies as two floats",
    "product32": "keep frequencies as two floats and add the products",
    "angle32": "keep frequencies as two floats and add the products",
    "low": "compute in float32 and round once",
}
IN_FLOAT64 = "form angles in float64"
POSITIONS = "positions"
SHOWN = 4  # numbers of a list


def finish(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add to operations with their answers what all cases together say: achieved classes, positions, diagnoses."""
    judged = [(operation, [answer.part or answer for answer in answers]) for operation, answers in operations]
    for operation, answers in judged:
        _summarise(operation, answers)
    for operation, answers in operations:
        _cover(operation, answers)
        _tell(operation, answers)
    _explain(operations)


def _tell(operation: Operation, answers: list[Answer]) -> None:
    """Say of every failing case what its call is."""
    asked = {answer.case.id: answer.asked or answer.case for answer in answers}
    for case in operation.cases:
        if decides(case.kind, case.verdict) and case.id in asked:
            case.call = call_in_words(asked[case.id])


def _summarise(operation: Operation, answers: list[Answer]) -> None:
    """Fill in an operation's achieved class, overall and by band of positions, and its first failing position."""
    judged = [c for c in operation.cases if c.kind != "reject" and c.verdict in ("pass", "fail")]
    classes = ladder(operation.op, operation.dtype, operation.claim)
    operation.achieved = _loosest([c.achieved for c in judged], classes)
    by_id = {a.case.id: a for a in answers}
    complete = [by_id[c.id] for c in judged if len(by_id[c.id].outputs) == len(by_id[c.id].case.calls)]
    measured = {answer.case.id: measure(operation, answer) for answer in answers}
    whole = [m for answer in complete for m in measured[answer.case.id]]
    for low, high in BANDS:
        found = [m.tightest(chosen, classes) for m in whole if (chosen := m.in_band((low, high))) is not None]
        if found:
            operation.bands.append({"from": low, "to": high, "achieved": _loosest(found, classes)})
    ratios, failing = [], []
    for m in whole:
        if np.any((m.allowed > 0) | (m.ratio > 0)):
            ratios.append(float(np.max(m.ratio)))
        if m.where is not None and np.any(m.ratio > 1):
            beyond = m.where[m.ratio > 1]
            failing.append(float(beyond[np.argmin(np.abs(beyond))]))
    operation.worst_ratio = max(ratios, default=None)
    operation.first_failing_position = min(failing, key=abs, default=None)
    if operation.first_failing_position:
        band = 0, abs(operation.first_failing_position)
        below = [m.tightest(chosen, classes) for m in whole if (chosen := m.in_band(band)) is not None]
        operation.achieved_below = _loosest(below, classes)
    draw(operation, [m for answer in answers for m in measured[answer.case.id]])
    _interpret(operation, whole)
    _measure_systematic(operation, complete)


def _loosest(found: list[str | None], classes: tuple[str, ...]) -> str | None:
    """Return the loosest of classes, or None if one is none of them."""
    if not found or None in found:
        return None
    return max((f for f in found if f), key=classes.index)


def _explain(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add diagnoses, those of stages first: a stage that fails explains what is composed of it."""
    failing = [(o, answers) for o, answers in operations if any(c.kind != "reject" and c.verdict == "fail" for c in o.cases)]
    if not failing:
        return
    from ..diagnosis.explanation import diagnose, untried  # the deviations take long to load, and what conforms needs none
    from ..diagnosis.hypotheses import Budget

    wrong = {o.op: [c for c in o.cases if c.kind in ("value", "sequence") and c.verdict == "fail"] for o, _ in failing}
    known: dict[str, Any] = {}
    earlier: dict[str, list[Any]] = {}
    budget = Budget()
    ordered = sorted(failing, key=lambda pair: len(stages(pair[0].op)))
    for count, (operation, answers) in enumerate(ordered, 1):
        if count > 1 and budget.spent():
            operation.diagnosis = untried(operation.op)
            continue
        others = [(_stored(o, found), o.claim) for o, found in operations if o.op == operation.op and o is not operation]
        below = [s for s in stages(operation.op) if wrong.get(s)]
        operation.diagnosis = diagnose(
            operation.op, _compared(operation, answers), operation.claim, below[0] if below else None,
            known={s: known[s] for s in below if s in known}, first=operation.first_failing_position, others=others,
            messages={c.id: c.message for c in operation.cases if c.verdict == "fail"},
            budget=budget.part(len(failing) - count), earlier=earlier.setdefault(operation.op, []),
        )  # fmt: skip
        operation.diagnosis["text"] += _raised(operation)
        if operation.diagnosis["names"]:
            known.setdefault(operation.op, operation.diagnosis["explanations"])


def _raised(operation: Operation) -> str:
    """Return in words how many cases ended in an error, of which the diagnosis sees nothing, with the first one's."""
    found = [c for c in operation.cases if c.kind != "reject" and c.verdict == "error"]
    if not found:
        return ""
    many = f"{len(found)} other case{'s' * (len(found) > 1)}"
    first = (found[0].message.splitlines() or ["without a message"])[0].rstrip(".")
    return f" {many} ended in an error: {first} ({found[0].id})."


def _compared(operation: Operation, answers: Sequence[Answer]) -> list[tuple[Answer, bool]]:
    """Return the answers that passed or failed, each with whether it failed."""
    verdicts = {c.id: c.verdict for c in operation.cases}
    return [(_few(a), verdicts[a.case.id] == "fail") for a in answers if verdicts[a.case.id] in ("pass", "fail")]


def _stored(operation: Operation, answers: Sequence[Answer]) -> list[tuple[Answer, bool]]:
    """Return the answers to stored cases that passed or failed, each with whether it failed."""
    return _compared(operation, [a for a in answers if a.part is None])


def _few(answer: Answer) -> Answer:
    """Return what hypotheses are tried on: of a large case some rows."""
    return with_few(answer).few or answer


# ---- the outputs of an operation, measured once ----------------------------------------------------------------------------
@dataclass(frozen=True)
class _Measured:
    """One output of one call: its errors, what the claimed class allows, their ratio, and where every value stands."""

    op: str
    answer: Answer
    step: int
    name: str
    claim: str
    error: Reals
    allowed: Reals
    ratio: Reals
    where: Reals | None  # with signs
    known: dict[str, Reals] = field(default_factory=dict)  # what other classes allow, as far as it was asked

    def width(self, accuracy: str) -> Reals:
        """Return what a class allows every value."""
        if accuracy == self.claim:
            return self.allowed
        if accuracy not in self.known:
            call, output = self.answer.case.calls[self.step], self.answer.outputs[self.step][self.name]
            self.known[accuracy] = judge.errors(self.op, call, self.name, output, accuracy, self.answer.dtype)[1]
        return self.known[accuracy]

    def in_band(self, band: tuple[float, float | None]) -> npt.NDArray[Any] | None:
        """Return which values stand at positions of a band, or None if none does."""
        chosen = None if self.where is None else in_band(np.abs(self.where), band)
        return chosen if np.any(chosen) else None

    def tightest(self, chosen: npt.NDArray[Any], classes: tuple[str, ...]) -> str | None:
        """Return the tightest class that holds for chosen values."""
        error = self.error[chosen]
        return next((accuracy for accuracy in classes if np.all(error <= self.width(accuracy)[chosen])), None)

    def at(self, name: str, k: int) -> float:
        """Return the value of one of its arrays at a place."""
        return float(getattr(self, name).flat[k])

    @property
    def severity(self) -> tuple[float, float]:
        """The largest ratio, then the largest error; what is not a number is worse than any."""
        return float(self.ratio.max()), float(_known(self.error).max())


def measure(operation: Operation, answer: Answer) -> list[_Measured]:
    """Return every output that has values, of a case whose calls were all answered."""
    found: list[_Measured] = []
    if len(answer.outputs) != len(answer.case.calls):
        return found
    op, claim = operation.op, operation.claim
    for step, (call, outputs) in enumerate(zip(answer.case.calls, answer.outputs, strict=True)):
        for name, output in outputs.items():
            error, allowed = judge.errors(op, call, name, output, claim, answer.dtype)
            if error.size:
                where = signed_places(op, call, name)
                where = where if where is not None and where.shape == error.shape else None
                found.append(_Measured(op, answer, step, name, claim, error, allowed, judge.ratios(error, allowed), where))
    return found


# ---- the error against position, and a map of the worst case, both of bounded size -----------------------------------------
def draw(operation: Operation, measured: Sequence[_Measured]) -> None:
    """
    Add to an operation its curve and its map, from the answers that it gave whole.

    Of the classes that are not stored, those claimed or achieved are drawn.
    """
    named = (operation.claim, operation.achieved)
    classes = ladder(operation.op, operation.dtype, operation.claim)
    classes = tuple(c for c in classes if c not in COMPUTED or c in named)
    operation.curve = _curve([m for m in measured if m.where is not None], classes)
    operation.heat = _map(max(measured, key=lambda m: m.severity)) if measured else None


def _curve(measured: Sequence[_Measured], classes: Sequence[str]) -> list[dict[str, Any]]:
    """
    Return the worst value at every position, and what each class allows that value, in the order of positions.

    The worst is the largest error of those beyond their own tolerance, else of all: a curve shows how errors grow. Where
    there are too many positions to draw, equal stretches of a logarithmic axis count as one.
    """
    groups = _grouped([m.where for m in measured if m.where is not None])
    found = [(m, k) for m, group in zip(measured, groups, strict=True) for k in _worst(m, group)]
    if not found:
        return []
    where, ratio, error, allowed = (np.asarray([m.at(name, k) for m, k in found]) for name in OF_A_POINT)
    ratio, error = _known(ratio), _known(error)
    group = np.concatenate([np.unique(of) for of in groups])  # of each group an output has one value here
    order = np.lexsort((-allowed, -error, ratio <= 1, group))
    return [
        {
            "position": abs(float(where[i])), "error": number(float(error[i])), "ratio": number(float(ratio[i])),
            "bounds": {c: float(found[i][0].width(c).flat[found[i][1]]) for c in classes}, "case": found[i][0].answer.case.id,
        }
        for i in order[np.unique(group[order], return_index=True)[1]]
    ]  # fmt: skip


def _grouped(where: Sequence[Reals]) -> list[npt.NDArray[np.int64]]:
    """Return the group of every value of several outputs: one for each position, or stretch of a logarithmic axis."""
    rows = [np.abs(_each_once(of)) for of in where]
    if not rows:
        return []
    every = _joined(rows)
    group = np.unique(every, return_inverse=True)[1]
    if group.max() >= POINTS:
        group = np.floor((POINTS - 1) * np.log1p(every) / np.log1p(every.max())).astype(int)
        group = np.unique(group, return_inverse=True)[1]
    parts = np.split(group, np.cumsum([row.size for row in rows])[:-1])
    return [np.broadcast_to(p.reshape(row.shape), of.shape) for p, row, of in zip(parts, rows, where, strict=True)]


def _each_once(x: Reals) -> Reals:
    """Return an array without the repetitions of broadcasting; its axes stay, some with one index."""
    return x[tuple(slice(None) if step else slice(1) for step in x.strides)]


def _worst(m: _Measured, group: npt.NDArray[np.int64]) -> list[int]:
    """Return the place of the worst value of every group, in the order of groups."""
    group, kept = group.ravel(), np.arange(group.size)
    allowed = np.where(np.isnan(m.allowed), -np.inf, m.allowed)
    for key in (_known(m.ratio) > 1, _known(m.error), allowed):
        value, of = key.ravel()[kept].astype(np.float64), group[kept]
        largest = np.full(POINTS, -np.inf)
        np.maximum.at(largest, of, value)
        kept = kept[value == largest[of]]
    return [int(k) for k in kept[np.unique(group[kept], return_index=True)[1]]]


def _known(error: Reals) -> Reals:
    """Return errors with infinity for those that are not a number."""
    return np.where(np.isnan(error), np.inf, error)


def _joined(arrays: Iterable[Reals]) -> Reals:
    """Return the values of several arrays in one."""
    return np.concatenate([array.ravel() for array in arrays])


def _map(m: _Measured) -> dict[str, Any]:
    """Return error over tolerance as rows (positions, if each row has one) by the last axis, reduced by the maximum."""
    table = m.ratio.reshape(-1, m.ratio.shape[-1] if m.ratio.ndim else 1)
    where = None if m.where is None else np.abs(m.where).reshape(table.shape)
    if where is not None and table.shape[1] > 1 and np.all(where == where[:, :1]):
        positions, group = np.unique(where[:, 0], return_inverse=True)
        merged = np.zeros((len(positions), table.shape[1]))
        np.maximum.at(merged, group, table)
        table, rows, labels = merged, "position", [f"{p:g}" if p != int(p) else str(int(p)) for p in positions]
    else:
        rows, labels = "row", [_index(i, m.ratio.shape[:-1]) for i in range(len(table))]
    table, labels = _shrink(table, labels, ROWS)
    wide, columns = _shrink(table.T, [str(i) for i in range(table.shape[1])], COLUMNS)
    return {
        "case": m.answer.case.id, "call": m.step, "output": m.name, "rows": rows, "row_labels": labels,
        "columns": "entry of the last axis", "column_labels": columns, "values": [[_brief(v) for v in row] for row in wide.T],
    }  # fmt: skip


def _index(flat: int, shape: tuple[int, ...]) -> str:
    """Return the leading indices of a row, as they are written: ``2, 0``."""
    return ", ".join(str(int(i)) for i in np.unravel_index(flat, shape)) if shape else ""


def _shrink(table: Reals, labels: list[str], most: int) -> tuple[Reals, list[str]]:
    """Return at most `most` rows, each the maximum of its neighbours, labelled from the first to the last of them."""
    if len(table) <= most:
        return table, labels
    starts = np.linspace(0, len(table), most, endpoint=False).astype(int)
    last = [*(starts[1:] - 1), len(table) - 1]
    named = [labels[a] if a == b else f"{labels[a]} to {labels[b]}" for a, b in zip(starts, last, strict=True)]
    return np.maximum.reduceat(table, starts, axis=0), named


def _brief(ratio: float) -> float | str | None:
    """Return three digits of a ratio, never so that one beyond the tolerance looks as if it were within."""
    short = float(f"{ratio:.3g}")
    return number(max(short, 1.01) if ratio > 1 else short)


# ---- what a class means, in words ------------------------------------------------------------------------------------------
def gives_waves(op: str) -> bool:
    """Return whether results are cosines and sines themselves: nothing is rotated by them."""
    return all(axes.kind != "real" for axes in REGISTRY[op].arrays.values())


def _interpret(operation: Operation, measured: Sequence[_Measured]) -> None:
    """Add to an operation what its class means at the longest position, and the next tighter class with the worst ratio."""
    if operation.achieved is None:
        return
    operation.meaning = _meaning(operation, measured)
    classes = ladder(operation.op, operation.dtype, operation.claim)
    place = classes.index(operation.achieved)
    if place:
        missed = classes[place - 1]
        worst = max((float(np.max(judge.ratios(m.error, m.width(missed)))) for m in measured), default=0.0)
        operation.missed = {"class": missed, "ratio": worst}


def _meaning(operation: Operation, measured: Sequence[_Measured]) -> dict[str, Any] | None:
    """Return the longest position, the error there, and a sentence; None for an operation without frequencies or positions."""
    if not has_frequencies(operation.op):
        return None
    found = [pair for m in measured if (pair := _farthest(operation, m)) is not None]
    if not found:
        return None
    longest = max(position for position, _ in found)
    error = max(error for position, error in found if position == longest)
    noun = "cosines are" if gives_waves(operation.op) else "results are, for their size,"
    text = f"at position {longest:,.0f} your {noun} within {_rounded_up(error)}"
    finest = FINEST[operation.dtype]
    remedy = REMEDY.get(TRIG.sub("", str(operation.achieved)))
    if remedy and error > (2 if operation.dtype in UNIT else 10) * finest:
        text += f"; {IN_FLOAT64 if operation.dtype == 'float64' else remedy} for {_rounded_up(finest)}"
    return {"position": longest, "error": error, "text": text}


def _farthest(operation: Operation, m: _Measured) -> tuple[float, float] | None:
    """Return the farthest position of an output of values, and the largest error there."""
    call = m.answer.case.calls[m.step]
    if m.where is None or call.cotangents:
        return None
    where = np.abs(m.where)
    size = 1.0 if gives_waves(operation.op) else float(np.max(np.abs(call.expected[m.name])))
    last = where == np.max(where)
    if not (size and np.all(np.isfinite(m.error[last]))):
        return None
    return float(np.max(where)), float(np.max(m.error[last])) / size


def _rounded_up(error: float) -> str:
    """Return an error in one digit, never too small."""
    if not error:
        return "0"
    power = math.floor(math.log10(error))
    digit = math.ceil(error / 10.0**power - 1e-9)
    return f"{digit * 10.0**power:.1g}".replace("e-0", "e-")


# ---- the systematic error of the call where it is largest ------------------------------------------------------------------
def _measure_systematic(operation: Operation, answers: Sequence[Answer]) -> None:
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
    measured = judge.systematic(operation.op, call, name, outputs[name], operation.claim, answer.dtype)
    if measured is not None:
        values = {n: number(getattr(measured, n)) for n in ("slope", "slope_bound", "offset", "offset_bound")}
        operation.systematic = {"case": answer.case.id, "output": name, **values}


def _slopes(op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str) -> Iterator[tuple[str, float]]:
    """Yield the slope of every output, over the worst that its class allows."""
    for name, output in outputs.items() if not call.cotangents else ():
        found = judge.weighted(op, call, name, output, accuracy, dtype)
        if found is not None:
            (weights, _), error, width = found
            yield name, abs(float(np.sum(weights * error))) / float(np.sum(np.abs(weights) * width))


# ---- how many cases were asked, answered and passed ------------------------------------------------------------------------
def _cover(operation: Operation, answers: Sequence[Answer]) -> None:
    """Add to an operation its coverage: a row for every word of an option and every band of positions that was asked."""
    verdicts = {case.id: case.verdict for case in operation.cases if case.kind != "reject"}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for answer in answers:
        verdict = verdicts.get(answer.case.id)
        if verdict is None:
            continue
        for axis, value in {*_words_of(answer.asked or answer.case), *_band(answer.asked or answer.case)}:
            row = rows.setdefault((axis, value), {"axis": axis, "value": value, "asked": 0, "answered": 0, "passed": 0})
            row["asked"] += 1
            row["answered"] += verdict not in ("unsupported", "selective")
            row["passed"] += verdict == "pass"
    axes = [*REGISTRY[operation.op].domains, POSITIONS]
    far = [band_name(*band) for band in BANDS]
    operation.coverage = sorted(
        rows.values(), key=lambda row: (axes.index(row["axis"]), _rank(far, row["value"]), row["value"])
    )


def _rank(known: Sequence[str], value: str) -> int:
    return known.index(value) if value in known else 0


def band_name(low: float, high: float | None) -> str:
    """Return a band of positions in words."""
    return f"{low:g} and beyond" if high is None else f"{low:g} to {high:g}"


def _words_of(case: LoadedCase) -> Iterator[tuple[str, str]]:
    """Yield the words that a case's options are, and the kinds of its records; numbers are no words."""
    for call in case.calls:
        for name, domain in REGISTRY[case.op].domains.items():
            value = call.params.get(name, defaults(case.op).get(name))
            if is_word(domain):
                yield name, type(value).__name__ if isinstance(domain, Record) and value is not None else str(value)


def _band(case: LoadedCase) -> Iterator[tuple[str, str]]:
    """Yield the band in which the farthest position of a case lies."""
    found = [abs(call.inputs[name]).max() for call in case.calls for name in positions_of(case.op) if call.inputs[name].size]
    if found:
        yield POSITIONS, next(band_name(low, high) for low, high in BANDS if high is None or max(found) < high)


# ---- a call in words -------------------------------------------------------------------------------------------------------
def call_in_words(case: LoadedCase) -> str:
    """Return the calls of a case in words, each with the options and arrays that it has."""
    calls = [", ".join((*_options(case.op, call), *_arrays(case.op, call))) for call in case.calls]
    return calls[0] if len(calls) == 1 else "; ".join(f"call {k}: {text}" for k, text in enumerate(calls, 1))


def _options(op: str, call: Call) -> list[str]:
    """Return the options of a call that it does not leave at their defaults."""
    given = [(name, call.params[name]) for name in REGISTRY[op].domains if name in call.params]
    return [f"{name}={_value(value)}" for name, value in given if name not in defaults(op) or value != defaults(op)[name]]


def _value(value: Any) -> str:
    if isinstance(value, Scaling):
        parts = [
            f"{one.name}={_value(getattr(value, one.name))}"
            for one in dataclasses.fields(value)
            if one.default is dataclasses.MISSING or getattr(value, one.name) != one.default
        ]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, list | tuple) and len(value) > SHOWN:
        return f"({', '.join(map(_value, value[:SHOWN]))}, ... {len(value)} in all)"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _arrays(op: str, call: Call) -> list[str]:
    arrays = [(name, call.inputs[name]) for name in REGISTRY[op].arrays if name in call.inputs]
    return [f"{name} {x.shape}" + (_span(x) if name in positions_of(op) else "") for name, x in arrays]


def _span(positions: np.ndarray[Any, Any]) -> str:
    """Return from where to where positions go."""
    if not positions.size:
        return ""
    low, high = positions.min(), positions.max()
    return f" at {low:.8g}" if low == high else f" from {low:.8g} to {high:.8g}"
