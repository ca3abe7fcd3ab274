"""What a report draws of an operation: its error against position, and a map of its worst case, both of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import judge
from ..accuracy import COMPUTED
from ..calls import ladder
from ..model import Operation, number
from ..suite import value_positions

if TYPE_CHECKING:
    from ..model import Answer

POINTS = 96  # of a curve, at most: so many marks have room beside each other in a report
ROWS, COLUMNS = 64, 128  # of a map, at most

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Measured:
    """One output of one call: its errors, these over what the claimed class allows, and where every value stands."""

    answer: Answer
    step: int
    name: str
    error: Reals
    ratio: Reals
    where: Reals | None

    def width(self, op: str, accuracy: str) -> Reals:
        """Return what a class allows every value."""
        output = self.answer.outputs[self.step][self.name]
        return judge.errors(op, self.answer.case.calls[self.step], self.name, output, accuracy, self.answer.dtype)[1]

    @property
    def severity(self) -> tuple[float, float]:
        """The largest ratio, then the largest error; what is not a number is worse than any."""
        return float(self.ratio.max()), float(_known(self.error).max())


def fill(operation: Operation, answers: Sequence[Answer]) -> None:
    """
    Add to an operation its curve and its map, from the answers that it gave whole.

    Of the classes that are not stored, those claimed or achieved are drawn.
    """
    named = (operation.claim, operation.achieved)
    classes = ladder(operation.op, operation.dtype, operation.claim)
    classes = tuple(c for c in classes if c not in COMPUTED or c in named)
    measured = [m for answer in answers for m in _measure(operation.op, answer, operation.claim)]
    operation.curve = _curve(operation.op, [m for m in measured if m.where is not None], classes, operation.claim)
    operation.heat = _map(max(measured, key=lambda m: m.severity)) if measured else None


def _measure(op: str, answer: Answer, claim: str) -> Iterator[_Measured]:
    """Yield every output that has values, of a case whose calls were all answered."""
    if len(answer.outputs) != len(answer.case.calls):
        return
    for step, (call, outputs) in enumerate(zip(answer.case.calls, answer.outputs, strict=True)):
        for name, output in outputs.items():
            error, width = judge.errors(op, call, name, output, claim, answer.dtype)
            if error.size:
                where = value_positions.places(op, call, name)
                fits = where is not None and where.shape == error.shape
                yield _Measured(answer, step, name, error, judge.ratios(error, width), where if fits else None)


def _curve(op: str, measured: Sequence[_Measured], classes: Sequence[str], claim: str) -> list[dict[str, Any]]:
    """
    Return the worst value at every position, and what each class allows that value, in the order of positions.

    The worst is the largest error of those beyond their own tolerance, else of all: a curve shows how errors grow. Where
    there are too many positions to draw, equal stretches of a logarithmic axis count as one.
    """
    if not measured:
        return []
    where = _all(m.where for m in measured if m.where is not None)
    group = np.unique(where, return_inverse=True)[1]
    if group.max() >= POINTS:
        group = np.floor((POINTS - 1) * np.log1p(where) / np.log1p(where.max())).astype(int)
        group = np.unique(group, return_inverse=True)[1]
    ratio, error = (_known(_all(getattr(m, n) for m in measured)) for n in ("ratio", "error"))
    bounds = {accuracy: _all(m.width(op, accuracy) for m in measured) for accuracy in classes}
    worst = np.lexsort((-bounds[claim], -error, ratio <= 1, group))
    worst = worst[np.unique(group[worst], return_index=True)[1]]
    source = np.repeat(np.arange(len(measured)), [m.error.size for m in measured])
    return [
        {
            "position": float(where[k]), "error": number(float(error[k])), "ratio": number(float(ratio[k])),
            "bounds": {c: float(width[k]) for c, width in bounds.items()}, "case": measured[source[k]].answer.case.id,
        }
        for k in worst
    ]  # fmt: skip


def _known(error: Reals) -> Reals:
    """Return errors with infinity for those that are not a number."""
    return np.where(np.isnan(error), np.inf, error)


def _all(arrays: Iterable[Reals]) -> Reals:
    """Return the values of several arrays in one."""
    return np.concatenate([array.ravel() for array in arrays])


def _map(m: _Measured) -> dict[str, Any]:
    """Return error over tolerance as rows (positions, if each row has one) by the last axis, reduced by the maximum."""
    table = m.ratio.reshape(-1, m.ratio.shape[-1] if m.ratio.ndim else 1)
    where = None if m.where is None else m.where.reshape(table.shape)
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
