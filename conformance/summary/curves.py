"""The error against position, and a map of the worst case, both of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import judge
from ..accuracy import COMPUTED
from ..calls import ladder
from ..model import Answer, Operation, number
from .batches import Batch, Output, Reals, batches_of, outputs_of

POINTS = 96  # of a curve, at most: so many marks have room beside each other in a report
ROWS, COLUMNS = 64, 128  # of a map, at most


def draw(operation: Operation, answers: Sequence[Answer]) -> None:
    """
    Add to an operation its curve and its map, from the answers that it gave whole.

    Of the classes that are not stored, those claimed or achieved are drawn.
    """
    outputs = outputs_of(operation.op, answers, {})
    figures = Figures(operation, outputs)
    for batch in batches_of(operation, outputs):
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


class Figures:
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
        self.points: dict[float, tuple[tuple[float, ...], Point]] = {}  # the worst of every group, with how bad it is
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
        ranks = {k: (tuple(-float(key[k]) for key in keys), float(group[k])) for k in worst}
        worse = [k for k, (rank, of) in ranks.items() if of not in self.points or rank < self.points[of][0]]
        owners = [batch.owner(k) for k in worse]
        drawn = np.isin(np.arange(len(batch.outputs)), owners)
        bounds = {c: batch.width(c, drawn) for c in self.classes if c not in COMPUTED}
        ratio = _known(batch.ratio)
        for k, i in zip(worse, owners, strict=True):
            rank, of = ranks[k]
            widths = {c: float(width[k]) for c, width in bounds.items()}
            self.points[of] = rank, Point(batch.outputs[i], k - int(batch.starts[i]), float(error[k]), float(ratio[k]), widths)

    def draw(self) -> None:
        """Add the curve and the map to the operation."""
        operation = self.operation
        named = (operation.claim, operation.achieved)
        classes = tuple(c for c in self.classes if c not in COMPUTED or c in named)
        operation.curve = [_drawn(operation, self.points[of][1], classes) for of in sorted(self.points)]
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
    rows = [np.abs(of[tuple(slice(None) if step else slice(1) for step in of.strides)]) for of in where]  # without broadcasting
    if not rows:
        return []
    every = judge.joined(rows)
    group = np.unique(every, return_inverse=True)[1]
    if group.max() >= POINTS:
        group = np.floor((POINTS - 1) * np.log1p(every) / np.log1p(every.max())).astype(int)
        group = np.unique(group, return_inverse=True)[1]
    parts = np.split(group, np.cumsum([row.size for row in rows])[:-1])
    return [judge.broadcast(p.reshape(row.shape), of.shape) for p, row, of in zip(parts, rows, where, strict=True)]


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
        rows, labels = "row", [", ".join(map(str, index)) for index in np.ndindex(ratio.shape[:-1])]
    table, labels = _shrink(table, labels, ROWS)
    wide, columns = _shrink(table.T, [str(i) for i in range(table.shape[1])], COLUMNS)
    return {
        "case": output.answer.case.id, "call": output.step, "output": output.name, "rows": rows, "row_labels": labels,
        "columns": "entry of the last axis", "column_labels": columns, "values": [[_brief(v) for v in row] for row in wide.T],
    }  # fmt: skip


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
