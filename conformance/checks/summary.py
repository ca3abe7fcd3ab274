"""
Summary of an operation's answers: classes, positions, curves, coverage and diagnoses, as reports show them.

Errors, and what the claimed class allows, are measured in batches, many outputs side by side.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.core.composition import has_frequencies, stages
from posref.scaling import Scaling
from posref.spec import REGISTRY, Record

from .. import judge
from ..accuracy import COMPUTED
from ..calls import ladder, positions_of
from ..model import Answer, Call, LoadedCase, Operation, decides, number
from ..suite.axes import BANDS, in_band, signed_places
from ..traits import defaults, is_word
from .case_run import with_few

LARGE = 1 << 18  # values that are measured side by side: arrays of more would need much memory
VAGUE = 1e-8  # of the sum of squares
EXACT = 1 << 24  # the largest number up to which float32 has all integers
POINTS = 96  # of a curve, at most: so many marks have room beside each other in a report
CLOSE = 1e-9  # sums in another order differ by less
ROWS, COLUMNS = 64, 128  # of a map, at most

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = dict[tuple[int, str], Reals | None]  # positions of outputs, by the identity of the call
Band = tuple[float, float | None]
POSITIONS = "positions"
SHOWN = 4  # numbers of a list


def finish(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add to operations with their answers what all cases together say: achieved classes, positions, diagnoses."""
    known: Places = {}  # the calls of an operation are the same in every dtype
    for operation, answers in operations:
        _summarise(operation, [answer.part or answer for answer in answers], known)
        _cover(operation, answers)
        _tell(operation, answers)
    _explain(operations)


def _tell(operation: Operation, answers: list[Answer]) -> None:
    """Say of every failing case what its call is."""
    asked = {answer.case.id: answer.asked or answer.case for answer in answers}
    for case in operation.cases:
        if decides(case.kind, case.verdict) and case.id in asked:
            case.call = call_in_words(asked[case.id])


def _summarise(operation: Operation, answers: list[Answer], known: Places) -> None:
    """Fill in what an operation's answers come to: its classes, ratios, figures, meaning, and systematic error."""
    judged = [c for c in operation.cases if c.kind != "reject" and c.verdict in ("pass", "fail")]
    classes = ladder(operation.op, operation.dtype, operation.claim)
    operation.achieved = _loosest([c.achieved for c in judged], classes)
    place = classes.index(operation.achieved) if operation.achieved else 0
    tighter = classes[place - 1] if place else None
    outputs = _outputs(operation.op, answers, known)
    figures, held = _Figures(operation, outputs), {band: list[str | None]() for band in BANDS}
    ratios, failing, missed, slopes = list[float](), list[float](), list[float](), list[float]()
    farthest = -1.0, 0.0
    for batch in _batches(operation, outputs):
        for band in BANDS:
            held[band] += batch.holding(band, classes)
        ratios += _telling(batch)
        failing += _failing(batch)
        missed += batch.largest(judge.ratios(batch.error, batch.width(tighter))) if tighter else []
        slopes += batch.slopes()
        farthest = _farther(operation.op, batch, farthest)
        figures.add(batch)
    operation.bands = [
        {"from": low, "to": high, "achieved": _loosest(found, classes)} for (low, high), found in held.items() if found
    ]
    operation.worst_ratio = max(ratios, default=None)
    operation.first_failing_position = min(failing, key=abs, default=None)
    if operation.first_failing_position:
        below = 0, abs(operation.first_failing_position)
        near = [accuracy for batch in _batches(operation, outputs) for accuracy in batch.holding(below, classes)]
        operation.achieved_below = _loosest(near, classes)
    figures.draw()
    if operation.achieved is not None:
        operation.meaning = _meaning(operation, *farthest)
    if tighter:
        operation.missed = {"class": tighter, "ratio": max(missed, default=0.0)}
    _measure_systematic(operation, list(zip(slopes, outputs, strict=True)))


def _telling(batch: Batch) -> list[float]:
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


def _explain(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add diagnoses, those of stages first: a stage that fails explains what is composed of it."""
    failing = [(o, answers) for o, answers in operations if any(c.kind != "reject" and c.verdict == "fail" for c in o.cases)]
    if not failing:
        return
    from ..diagnosis.explanation import diagnose, untried  # the deviations take long to load, and what conforms needs none
    from ..diagnosis.hypotheses import Budget

    wrong = {o.op for o, _ in failing if any(c.kind in ("value", "sequence") and c.verdict == "fail" for c in o.cases)}
    known: dict[str, Any] = {}
    earlier: dict[str, list[Any]] = {}
    budget = Budget()
    ordered = sorted(failing, key=lambda pair: len(stages(pair[0].op)))
    for count, (operation, answers) in enumerate(ordered, 1):
        if count > 1 and budget.spent():
            operation.diagnosis = untried(operation.op)
            continue
        below = [s for s in stages(operation.op) if s in wrong]
        operation.diagnosis = diagnose(
            operation.op, _compared(operation, answers), operation.claim, below[0] if below else None,
            known={s: known[s] for s in below if s in known}, first=operation.first_failing_position,
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
    """Return the answers that passed or failed, each with whether it failed; of a large one, the rows to try hypotheses on."""
    verdicts = {c.id: c.verdict for c in operation.cases}
    judged = [a for a in answers if verdicts[a.case.id] in ("pass", "fail")]
    return [(with_few(a).few or a, verdicts[a.case.id] == "fail") for a in judged]


# ---- errors, what the class allows, and positions, many outputs side by side ------------------------------------------------
@dataclass(frozen=True)
class Output:
    """One output of one call of an answer, with the position of every value, if it has one."""

    answer: Answer
    step: int
    name: str
    where: Reals | None  # with signs

    @property
    def expected(self) -> npt.NDArray[Any]:
        """The values that are expected."""
        return self.answer.case.calls[self.step].expected[self.name]

    @property
    def values(self) -> judge.Output:
        """The output as the judge takes it."""
        return self.answer.case.calls[self.step], self.name, self.answer.outputs[self.step][self.name]


def _outputs(op: str, answers: Iterable[Answer], known: Places) -> list[Output]:
    """Return every output that has values, of answers whose calls were all answered; positions are kept in `known`."""
    found = []
    for answer in answers:
        if len(answer.outputs) != len(answer.case.calls):
            continue
        for step, (call, outputs) in enumerate(zip(answer.case.calls, answer.outputs, strict=True)):
            for name in outputs:
                if call.expected[name].size:
                    if (id(call), name) not in known:
                        known[id(call), name] = _places(op, call, name)
                    found.append(Output(answer, step, name, known[id(call), name]))
    return found


def _places(op: str, call: Call, name: str) -> Reals | None:
    where = signed_places(op, call, name)
    return where if where is not None and where.shape == call.expected[name].shape else None


def _batches(operation: Operation, outputs: Sequence[Output]) -> Iterator[Batch]:
    """Yield the outputs in batches of limited size, in their order."""
    begin, values = 0, 0
    for end, output in enumerate(outputs):
        size = output.expected.size
        if values and values + size > LARGE:
            yield Batch(operation, outputs[begin:end])
            begin, values = end, 0
        values += size
    if values:
        yield Batch(operation, outputs[begin:])


class Batch:
    """Some outputs side by side. Its arrays have one axis, in which the values of the outputs follow one another."""

    def __init__(self, operation: Operation, outputs: Sequence[Output]) -> None:
        self.op, self.claim, self.dtype, self.outputs = operation.op, operation.claim, operation.dtype, outputs
        self._values = [output.values for output in outputs]
        self.sizes = np.asarray([output.expected.size for output in outputs])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.error, self.allowed = judge.errors_of_all(self.op, self._values, self.claim, self.dtype)
        self.ratio = judge.ratios(self.error, self.allowed)
        self._widths = {self.claim: (self.allowed, np.ones(len(outputs), dtype=bool))}  # and of which outputs these are

    @cached_property
    def where(self) -> Reals:
        """The position of every value, with its sign; not a number where it has none."""
        nowhere = np.full((), np.nan)
        found = (nowhere if output.where is None else output.where for output in self.outputs)
        return judge.joined([np.broadcast_to(x, output.expected.shape) for x, output in zip(found, self.outputs, strict=True)])

    @cached_property
    def far(self) -> Reals:
        """How far the position of every value is from 0."""
        return np.abs(self.where)

    def owner(self, k: int) -> int:
        """Return of which output a value is."""
        return int(np.searchsorted(self.starts, k, side="right")) - 1

    def part(self, x: Reals, i: int) -> Reals:
        """Return the values of one output in their shape."""
        return x[self.starts[i] : self.starts[i] + self.sizes[i]].reshape(self.outputs[i].expected.shape)

    def largest(self, x: Reals) -> list[float]:
        """Return the largest value of every output."""
        return [float(value) for value in np.maximum.reduceat(x, self.starts)]

    def width(self, accuracy: str, among: Mask | None = None) -> Reals:
        """Return what a class allows every value; `among` says of which outputs it is asked, and of others it may lack."""
        none = np.full(self.error.shape, np.nan), np.zeros(len(self.outputs), dtype=bool)
        width, known = self._widths.setdefault(accuracy, none)
        lacking = ~known if among is None else among & ~known
        if lacking.any():  # of classes that are not stored this takes long
            values = [value for value, lacks in zip(self._values, lacking, strict=True) if lacks]
            width[np.repeat(lacking, self.sizes)] = judge.widths_of_all(self.op, values, accuracy, self.dtype)
            known |= lacking
        return width

    def holding(self, band: Band, classes: Sequence[str]) -> list[str | None]:
        """Return the classes that are the tightest that hold for some output in a band of positions; None if none holds."""
        found: list[str | None] = []
        chosen = in_band(self.far, band)
        left = np.logical_or.reduceat(chosen, self.starts)
        for accuracy in classes:
            if not left.any():
                return found
            outside = chosen & ~(self.error <= self.width(accuracy, left))
            failing = left & np.logical_or.reduceat(outside, self.starts)
            if np.any(left & ~failing):
                found.append(accuracy)
            left = failing
        return [*found, None] if left.any() else found

    def slopes(self) -> list[float]:
        """
        Return about how systematic the error of every output is: the slope over the worst that its class allows.

        Sums are made in another order than those of `judge.weighted`. It is infinite where that says little, and -1 where there
        is no slope.
        """
        add = np.add.reduceat
        expected = judge.joined([call.expected[name] for call, name, _ in self._values])
        got = judge.joined([np.broadcast_to(y, call.expected[name].shape) for call, name, y in self._values])
        with np.errstate(all="ignore"):
            apart = expected - np.repeat(add(expected, self.starts) / self.sizes, self.sizes)
            square = add(apart**2, self.starts)
            weights = apart / np.repeat(square, self.sizes)
            found = np.abs(add(weights * (got - expected), self.starts)) / add(np.abs(weights) * self.allowed, self.starts)
            vague = ~(square > VAGUE * add(expected**2, self.starts))  # nearly constant
        has_slope = [
            size >= judge.FEWEST and not call.cotangents and call.expected[name].dtype.kind == "f"
            for size, (call, name, _) in zip(self.sizes, self._values, strict=True)
        ]
        found = np.where(vague | ~np.isfinite(found), np.inf, found)
        return [float(value) for value in np.where(has_slope, found, -1.0)]


# ---- the error against position, and a map of the worst case, both of bounded size -----------------------------------------
def draw(operation: Operation, answers: Sequence[Answer]) -> None:
    """
    Add to an operation its curve and its map, from the answers that it gave whole.

    Of the classes that are not stored, those claimed or achieved are drawn.
    """
    outputs = _outputs(operation.op, answers, {})
    figures = _Figures(operation, outputs)
    for batch in _batches(operation, outputs):
        figures.add(batch)
    figures.draw()


@dataclass(frozen=True)
class Point:
    """A value of an output, by its index there, with its error, its ratio, and what the stored classes allow it."""

    output: Output
    index: int
    error: float
    ratio: float
    bounds: dict[str, float]


class _Figures:
    """
    The worst value at every position, and the worst output.

    The worst value is the largest error of those beyond their own tolerance, else of all: a curve shows how errors grow. Where
    there are too many positions to draw, equal stretches of a logarithmic axis count as one.
    """

    def __init__(self, operation: Operation, outputs: Sequence[Output]) -> None:
        self.operation = operation
        self.classes = ladder(operation.op, operation.dtype, operation.claim)
        groups = _grouped([output.where for output in outputs if output.where is not None])
        left = iter(groups)
        self.groups = [None if output.where is None else next(left) for output in outputs]
        self.seen = 0  # outputs
        self.points: list[tuple[tuple[float, ...], Point]] = []  # by group, the worst first
        self.worst: tuple[tuple[float, float], Output] | None = None

    def add(self, batch: Batch) -> None:
        """Take the worst values of a batch."""
        error = _known(batch.error)
        for severity, output in zip(
            zip(batch.largest(batch.ratio), batch.largest(error), strict=True), batch.outputs, strict=True
        ):
            if self.worst is None or severity > self.worst[0]:  # the largest ratio, then the largest error
                self.worst = severity, output
        groups = self.groups[self.seen : self.seen + len(batch.outputs)]
        self.seen += len(batch.outputs)
        group = np.concatenate(
            [np.zeros(o.expected.size, int) if g is None else g.reshape(-1) for g, o in zip(groups, batch.outputs, strict=True)]
        )
        keys = (_known(batch.ratio) > 1).astype(np.float64), error, np.where(np.isnan(batch.allowed), -np.inf, batch.allowed)
        worst = _worst(np.flatnonzero(~np.isnan(batch.where)), group, keys)
        owners = [batch.owner(k) for k in worst]
        drawn = np.isin(np.arange(len(batch.outputs)), owners)
        bounds = {c: batch.width(c, drawn) for c in self.classes if c not in COMPUTED}
        ratio = _known(batch.ratio)
        for k, i in zip(worst, owners, strict=True):
            rank = (float(group[k]), *(-float(key[k]) for key in keys))
            own = {c: float(width[k]) for c, width in bounds.items()}
            point = Point(batch.outputs[i], k - int(batch.starts[i]), float(error[k]), float(ratio[k]), own)
            self.points.append((rank, point))

    def draw(self) -> None:
        """Add the curve and the map to the operation."""
        operation = self.operation
        named = (operation.claim, operation.achieved)
        classes = tuple(c for c in self.classes if c not in COMPUTED or c in named)
        points = sorted(self.points, key=lambda point: point[0])
        first = [point for k, (rank, point) in enumerate(points) if not k or rank[0] != points[k - 1][0][0]]
        operation.curve = [_drawn(operation, point, classes) for point in first]
        operation.heat = None if self.worst is None else _map(operation, self.worst[1])


def _worst(kept: npt.NDArray[np.int64], group: npt.NDArray[np.int64], keys: Sequence[Reals]) -> list[int]:
    """Return the index of the worst value of every group, in the order of groups; of equal ones the first."""
    for key in keys:
        value, of = key[kept], group[kept]
        largest = np.full(POINTS, -np.inf)
        np.maximum.at(largest, of, value)
        kept = kept[value == largest[of]]
    return [int(k) for k in kept[np.unique(group[kept], return_index=True)[1]]]


def _drawn(operation: Operation, point: Point, classes: Sequence[str]) -> dict[str, Any]:
    """Return a point of a curve, with what each class allows it; of those that are not stored it is computed here."""
    output, k, bounds = point.output, point.index, point.bounds
    assert output.where is not None
    computed = (c for c in classes if c not in bounds)
    bounds |= {c: float(judge.widths_of_all(operation.op, [output.values], c, operation.dtype)[k]) for c in computed}
    return {
        "position": abs(float(output.where.flat[k])), "error": number(point.error), "ratio": number(point.ratio),
        "bounds": {c: bounds[c] for c in classes}, "case": output.answer.case.id,
    }  # fmt: skip


def _grouped(where: Sequence[Reals]) -> list[npt.NDArray[np.int64]]:
    """Return the group of every value of several outputs: one for each position, or stretch of a logarithmic axis."""
    rows = [np.abs(_each_once(of)) for of in where]
    if not rows:
        return []
    every = judge.joined(rows)
    group = np.unique(every, return_inverse=True)[1]
    if group.max() >= POINTS:
        group = np.floor((POINTS - 1) * np.log1p(every) / np.log1p(every.max())).astype(int)
        group = np.unique(group, return_inverse=True)[1]
    parts = np.split(group, np.cumsum([row.size for row in rows])[:-1])
    return [np.broadcast_to(p.reshape(row.shape), of.shape) for p, row, of in zip(parts, rows, where, strict=True)]


def _each_once(x: Reals) -> Reals:
    """Return an array without the repetitions of broadcasting; its axes stay, some with one index."""
    return x[tuple(slice(None) if step else slice(1) for step in x.strides)]


def _known(error: Reals) -> Reals:
    """Return errors with infinity for those that are not a number."""
    return np.where(np.isnan(error), np.inf, error)


def _map(operation: Operation, output: Output) -> dict[str, Any]:
    """Return error over tolerance as rows (positions, if each row has one) by the last axis, reduced by the maximum."""
    ratio = judge.ratios(*judge.errors(operation.op, *output.values, operation.claim, operation.dtype))
    table = ratio.reshape(-1, ratio.shape[-1] if ratio.ndim else 1)
    where = None if output.where is None else np.abs(output.where).reshape(table.shape)
    if where is not None and table.shape[1] > 1 and np.all(where == where[:, :1]):
        positions, group = np.unique(where[:, 0], return_inverse=True)
        merged = np.zeros((len(positions), table.shape[1]))
        np.maximum.at(merged, group, table)
        table, rows, labels = merged, "position", [f"{p:g}" if p != int(p) else str(int(p)) for p in positions]
    else:
        rows, labels = "row", [_index(i, ratio.shape[:-1]) for i in range(len(table))]
    table, labels = _shrink(table, labels, ROWS)
    wide, columns = _shrink(table.T, [str(i) for i in range(table.shape[1])], COLUMNS)
    return {
        "case": output.answer.case.id, "call": output.step, "output": output.name, "rows": rows, "row_labels": labels,
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


def _farther(op: str, batch: Batch, best: tuple[float, float]) -> tuple[float, float]:
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


def _meaning(operation: Operation, position: float, error: float) -> dict[str, Any] | None:
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


# ---- the systematic error of the call where it is largest ------------------------------------------------------------------
def _measure_systematic(operation: Operation, slopes: Sequence[tuple[float, Output]]) -> None:
    """Add to an operation the systematic error of the call where it is largest, for its class; `slopes` say about how large."""
    most = max((slope for slope, _ in slopes if np.isfinite(slope)), default=0.0)
    worst, share = None, 0.0
    for output in [output for slope, output in slopes if slope >= max(most - CLOSE, 0.0)]:
        found = _slope(operation, output)
        if found is not None and found >= share:
            worst, share = output, found
    if worst is None:
        return
    call, name, y = worst.values
    measured = judge.systematic(operation.op, call, name, y, operation.claim, operation.dtype)
    if measured is not None:
        values = {n: number(getattr(measured, n)) for n in ("slope", "slope_bound", "offset", "offset_bound")}
        operation.systematic = {"case": worst.answer.case.id, "output": name, **values}


def _slope(operation: Operation, output: Output) -> float | None:
    """Return the slope of an output, over the worst that its class allows; None where there is none."""
    found = judge.weighted(operation.op, *output.values, operation.claim, operation.dtype)
    if found is None:
        return None
    (weights, _), error, width = found
    return abs(float(np.sum(weights * error))) / float(np.sum(np.abs(weights) * width))


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
