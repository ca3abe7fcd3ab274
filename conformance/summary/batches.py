"""The outputs of many answers side by side: their errors, what a class allows, and their positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import judge
from ..model import Answer, Call, Operation
from ..vocabulary.axes import in_band, signed_places

LARGE = 1 << 18  # values that are measured side by side: arrays of more would need much memory
VAGUE = 1e-8  # of the sum of squares

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = dict[tuple[int, str], Reals | None]  # positions of outputs, by the identity of the call
Band = tuple[float, float | None]


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


def outputs_of(op: str, answers: Iterable[Answer], known: Places) -> list[Output]:
    """Return every output that has values, of answers whose calls were all answered; positions are kept in `known`."""
    result = []
    for answer in answers:
        if len(answer.outputs) != len(answer.case.calls):
            continue
        for step, (call, outputs) in enumerate(zip(answer.case.calls, answer.outputs, strict=True)):
            for name in outputs:
                if call.expected[name].size:
                    if (id(call), name) not in known:
                        known[id(call), name] = _places(op, call, name)
                    result.append(Output(answer, step, name, known[id(call), name]))
    return result


def _places(op: str, call: Call, name: str) -> Reals | None:
    where = signed_places(op, call, name)
    return where if where is not None and where.shape == call.expected[name].shape else None


def batches_of(operation: Operation, outputs: Sequence[Output]) -> Iterator[Batch]:
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
        places = (nowhere if output.where is None else output.where for output in self.outputs)
        return judge.joined([judge.broadcast(x, output.expected.shape) for x, output in zip(places, self.outputs, strict=True)])

    @cached_property
    def far(self) -> Reals:
        """How far the position of every value is from 0."""
        return np.abs(self.where)

    def owner(self, k: int) -> int:
        """Return the output to which a value belongs."""
        return int(np.searchsorted(self.starts, k, side="right")) - 1

    def part(self, x: Reals, i: int) -> Reals:
        """Return the values of one output in their shape."""
        return x[self.starts[i] : self.starts[i] + self.sizes[i]].reshape(self.outputs[i].expected.shape)

    def largest(self, x: Reals) -> list[float]:
        """Return the largest value of every output."""
        return [float(value) for value in np.maximum.reduceat(x, self.starts)]

    def width(self, accuracy: str, among: Mask | None = None) -> Reals:
        """Return the error that a class allows every value; it may be missing for outputs outside `among`."""
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
        result: list[str | None] = []
        chosen = in_band(self.far, band)
        left = np.logical_or.reduceat(chosen, self.starts)
        for accuracy in classes:
            if not left.any():
                return result
            outside = chosen & ~(self.error <= self.width(accuracy, left))
            failing = left & np.logical_or.reduceat(outside, self.starts)
            if np.any(left & ~failing):
                result.append(accuracy)
            left = failing
        return [*result, None] if left.any() else result

    def slopes(self) -> list[float]:
        """
        Return about how systematic the error of every output is: the slope over the worst that its class allows.

        Sums are made in another order than those of `judge.weighted`. It is infinite where that says little, and -1 where there
        is no slope.
        """
        add = np.add.reduceat
        expected = judge.joined([call.expected[name] for call, name, _ in self._values])
        got = judge.joined([judge.broadcast(y, call.expected[name].shape) for call, name, y in self._values])
        with np.errstate(all="ignore"):
            apart = expected - np.repeat(add(expected, self.starts) / self.sizes, self.sizes)
            square = add(apart**2, self.starts)
            weights = apart / np.repeat(square, self.sizes)
            slopes = np.abs(add(weights * (got - expected), self.starts)) / add(np.abs(weights) * self.allowed, self.starts)
            vague = ~(square > VAGUE * add(expected**2, self.starts))  # nearly constant
        has_slope = [
            size >= judge.FEWEST and not call.cotangents and call.expected[name].dtype.kind == "f"
            for size, (call, name, _) in zip(self.sizes, self._values, strict=True)
        ]
        slopes = np.where(vague | ~np.isfinite(slopes), np.inf, slopes)
        return [float(value) for value in np.where(has_slope, slopes, -1.0)]
