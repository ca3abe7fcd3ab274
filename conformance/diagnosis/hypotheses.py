"""
Hypotheses: the values that a mistake predicts for each call, and their distance from those of an implementation.

`JITTER`, `UNITS`, `SAMPLES` and `HOPELESS` are chosen, not derived: they say how near a prediction, which is computed in
float64, must come to values that were rounded along another way before the mistake is *named*. Whether a case passes is
decided before and elsewhere, by the stored tolerances alone; none of these four can change a verdict. Were they too small, a
failure would stay unexplained; too large, and two mistakes would tie.

`Budget` is the work of trying them: what is not tried by its end is left out, and the text says so. Work is counted in values,
not in seconds, so that a slow or busy machine says the same.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from time import process_time
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import LARGEST, round_to
from posref.spec import REGISTRY

from .. import judge
from ..accuracy import UNIT
from ..calls import bind, takes_dtype
from ..evidence.tools.deviation import JOINT, Deviation
from ..model import Arrays, Call

if TYPE_CHECKING:
    from ..model import Answer

JITTER = {"float64": 2.0**-49, "float32": 2.0**-20, "bfloat16": 2.0**-20, "float16": 2.0**-20}  # 16 unit roundoffs, of angles
UNITS = {"float64": 2.0**-50, "float32": 2.0**-21, "bfloat16": 2.0**-6, "float16": 2.0**-9}  # 8 roundings of a result
FAR = 2.0**8  # tolerances that the samples of a prediction are apart, from which it is of other angles than what is expected
ANYWHERE = 0.5  # of the largest value of an output: samples of a prediction so far apart are of an angle that says nothing
NEAR = 2.0**-8  # of what such a prediction is off, below which errors are no evidence of it
LEAST = {"float64": 0.0, "float32": 2.0**-148, "bfloat16": 2.0**-132, "float16": 2.0**-23}  # two steps of the least numbers
LARGER = 4.0  # times that a prediction may have the errors of what is expected: more if it cancels nearly to 0
ROUNDINGS = 8  # that `UNITS` allows a result
HIGH = 16.0  # logarithm of a value beyond which it is taken for a power of a large exponent
SAMPLES = (1.0, -1.0, 0.5, -0.5, 0.125, -0.125)  # fractions of the jitter at which a hypothesis is evaluated
OTHERWISE = 1 / 32  # the part of values that may be rounded in another way: sums of two products are rounded to float32 first
HOPELESS = 2.0**14  # tolerances from the outer samples, beyond which the inner ones are not computed: two bfloat16 roundings
WORK = 78_000_000  # values that hypotheses may compute, for all operations of a report together: about 6 seconds of CPU
RESERVE = 2_500_000  # values that are kept for each operation that is still to come, as long as there are so many
OF_A_CALL = 2048  # values that take as long as what a call takes whatever its size, and the comparison of its results
OF_A_STEP = 1.5  # values that take about as long as a line, a call or a return does
OF_CALLS: dict[str, int] = {}  # by operation, what a call takes whatever its size, once one is counted
SMALL = 4096  # values of a case, for which predictions are kept
SECONDS = 60.0  # of CPU time, after which nothing more is tried: a machine ten times as slow does all the work before
T = TypeVar("T")
Array = npt.NDArray[Any]
Outputs = list[Arrays]
Predict = Callable[[float], Outputs]  # what is predicted for the calls of a case, of a jitter


class Meter:
    """The work that the hypotheses of a report have done, in values, and the CPU time at which they end in any case."""

    def __init__(self) -> None:
        self.done = 0
        self.looks = 0  # at whether it is time to end
        self.end = process_time() + SECONDS

    def late(self) -> bool:
        """Return whether the time is over, as far as every 32nd look tells: a look at the clock may take long."""
        self.looks += 1
        return self.looks % 32 == 1 and process_time() >= self.end


class Budget:
    """Work for hypotheses, in values; `short` says whether some were not tried for want of it."""

    def __init__(self, work: int = WORK, meter: Meter | None = None) -> None:
        self.meter = meter or Meter()
        self.end = self.meter.done + work
        self.short = False

    @property
    def left(self) -> int:
        """How much may still be done."""
        return self.end - self.meter.done

    def part(self, others: int) -> Budget:
        """Return the work for one operation: all but a little for each of the others, or an equal share if they are many."""
        return self.limited(max(self.left - RESERVE * others, self.left // (others + 1)))

    def limited(self, work: int) -> Budget:
        """Return a budget of so much work, which is work of this one too."""
        return Budget(work, self.meter)

    def spent(self) -> bool:
        """Return whether the work is done; then something is left out."""
        self.short |= self.left <= 0 or self.meter.late()
        return self.short

    def within(self, hypotheses: Iterable[T]) -> Iterator[T]:
        """Yield hypotheses while work is left."""
        for one in hypotheses:
            if self.spent():
                return
            yield one


@dataclass(frozen=True)
class Observation:
    """
    One output of one call: the expected value, the value that a mistake must reproduce, and the tolerance.

    Where the case passed, the value to reproduce is the expected one.
    """

    call: int
    name: str
    expected: Array
    observed: Array
    width: Array
    failed: bool
    of_expected: list[Array] = field(default_factory=list, init=False)  # distances of the expected value, once computed

    @cached_property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Which values are beyond their tolerance."""
        return np.asarray(~(np.abs(self.observed - self.expected) <= self.width))


class Question:
    """A case with the answer to it: its calls with their arguments in order, and the values to reproduce."""

    def __init__(self, op: str, answer: Answer, meter: Meter, *, failed: bool, claim: str, turn: int = 0) -> None:
        self.op, self.answer, self.meter, self.failed, self.claim, self.turn = op, answer, meter, failed, claim, turn
        self.id, self.dtype, self.calls = answer.case.id, answer.dtype, answer.case.calls
        self.size = sum(value.size for call in self.calls for value in call.expected.values())
        self.case = answer.asked or answer.case  # all of it, where the values of some rows are looked at
        self.kept: dict[Deviation, Outputs] = {}  # what registered mistakes give: several searches try each

    @cached_property
    def work(self) -> int:
        """The work of one hypothesis, in values."""
        if self.op not in OF_CALLS:
            OF_CALLS[self.op] = max(OF_A_CALL, int(OF_A_STEP * self._steps()))
        inputs = sum(value.size for call in self.calls for value in call.inputs.values())
        return OF_CALLS[self.op] * len(self.calls) + inputs + self.size

    def _steps(self) -> int:
        """Return how many lines, calls and returns the definition takes for one call: as many as there are, it takes long."""
        predicted_by(self.op, self.calls[0])  # what is imported and kept at the first call is no step of others
        steps, before = [0], sys.gettrace()

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            steps[0] += 1
            return trace

        sys.settrace(trace)
        try:
            predicted_by(self.op, self.calls[0])
        finally:
            sys.settrace(before)
        return steps[0]

    @cached_property
    def whole(self) -> Question:
        """The question with all values that were judged, where this one has but few of them."""
        return self if self.answer.part is None else self.of(self.answer.part)

    def of(self, answer: Answer) -> Question:
        """Return the question with another answer to its case."""
        return Question(self.op, answer, self.meter, failed=self.failed, claim=self.claim, turn=self.turn)

    @cached_property
    def observations(self) -> list[Observation]:
        """What the implementation gave, and where the case passed what the definition gives."""
        return self._observations(failed=self.failed)

    @cached_property
    def expectations(self) -> list[Observation]:
        """What the definition gives."""
        return self._observations(failed=False)

    def _observations(self, *, failed: bool) -> list[Observation]:
        observations = []
        for k, call in enumerate(self.calls):
            for name, expected in call.expected.items():
                observed = np.broadcast_to(self.answer.outputs[k][name], expected.shape) if failed else expected
                _, width = judge.errors(self.op, call, name, expected, self.claim, self.dtype)
                observations.append(Observation(k, name, expected, observed, width, failed))
        return observations

    @cached_property
    def arguments(self) -> list[tuple[list[Any], dict[str, Any]]]:
        """The positional and keyword arguments of every call."""
        return [_arguments(self.op, call) for call in self.calls]

    def outputs(self, function: Any) -> Outputs:
        """Return the outputs of every call, by name; it is work."""
        self.meter.done += self.work
        return [_call(self.op, function, *arguments) for arguments in self.arguments]

    def outputs_with(self, deviation: Deviation) -> Outputs:
        """Return the outputs with a mistake; it is work, also where they were kept, so that words do not depend on it."""
        if deviation in self.kept:
            self.meter.done += self.work
            return self.kept[deviation]
        outputs = self.outputs(deviation.operations()[self.op])
        if deviation.name and JOINT not in deviation.name and self.size <= SMALL:
            self.kept[deviation] = outputs
        return outputs


def predict(deviation: Deviation, op: str, calls: Sequence[Call]) -> Outputs:
    """Return what an implementation with a mistake would give for the calls of one case, in float64."""
    function = deviation.operations()[op]
    with quiet():
        return [_call(op, function, *_arguments(op, call)) for call in calls]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what wrong hypotheses provoke: overflows, divisions by zero."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _arguments(op: str, call: Call) -> tuple[list[Any], dict[str, Any]]:
    positional, keywords = bind(op, call.inputs, call.params)
    return positional, keywords | ({"dtype": np.float64} if takes_dtype(op) else {})


def _call(op: str, function: Any, positional: list[Any], keywords: dict[str, Any]) -> Arrays:
    """Return the outputs of one call by name; none where the mistake makes no sense for it."""
    names = REGISTRY[op].outputs
    try:
        result = function(*positional, **keywords)
        results = result if len(names) > 1 else (result,)
        arrays = {n: np.asarray(r) for n, r in zip(names, results, strict=True)}
    except Exception:  # it may index outside a table, want another shape, or give no array
        return {}
    return arrays if all(a.dtype.kind in "biuf" for a in arrays.values()) else {}


def predicted_by(op: str, call: Call) -> Arrays:
    """Return what the definition gives for a call, in float64."""
    return _call(op, REGISTRY[op].function, *_arguments(op, call))


class Hypothesis:
    """A mistake and what it predicts for every question, each from a new start."""

    def __init__(self, deviation: Deviation, questions: Sequence[Question]) -> None:
        self.deviation, self.questions = deviation, questions

    def predicted(self, n: int) -> Predict:
        """Return what is predicted for one question; kept while it is compared."""
        return cache(partial(self._predicted, n))

    def _predicted(self, n: int, jitter: float) -> Outputs:
        question = self.questions[n]
        return (
            question.outputs(self.deviation.operations(jitter)[question.op])
            if jitter
            else question.outputs_with(self.deviation)
        )

    def score(self, n: int) -> float:
        """Return the distance, in tolerances, from what was found in one case."""
        if self.deviation.exact and self.questions[n].failed and self.questions[n].dtype in UNIT:
            return 0.0 if _equal(self.questions[n], self.predicted(n)(0.0)) else np.inf
        return score(self.questions[n], self.questions[n].observations, self.predicted(n))

    def fits(self) -> bool:
        """Return whether it gives what was found in every case."""
        return all(self.score(n) <= 1 for n in range(len(self.questions)))

    def shows(self, n: int) -> bool:
        """Return whether it gives other values than the right ones in one case."""
        return score(self.questions[n], self.questions[n].expectations, self.predicted(n)) > 1


class StatefulHypothesis(Hypothesis):
    """A mistake whose state lives on from case to case: all of them, in the order of asking."""

    def __init__(self, deviation: Deviation, questions: Sequence[Question]) -> None:
        super().__init__(deviation, questions)
        self.predictions: dict[float, dict[int, Outputs]] = {}

    def _predicted(self, n: int, jitter: float) -> Outputs:
        if jitter not in self.predictions:
            function = self.deviation.operations(jitter)[self.questions[n].op]
            in_order = sorted(self.questions, key=lambda q: q.turn)
            self.predictions[jitter] = {q.turn: q.outputs(function) for q in in_order}
        return self.predictions[jitter][self.questions[n].turn]


def _equal(question: Question, predicted: Outputs) -> bool:
    """Return whether nearly all observed values are what is predicted, rounded once more to the dtype of the case."""
    for observation in question.observations:
        value = predicted[observation.call].get(observation.name)
        if value is None or np.shape(value) != observation.observed.shape:
            return False
        rounded = np.asarray(round_to(np.asarray(value, dtype=np.float64), question.dtype), dtype=np.float64)
        if np.sum(rounded != observation.observed) > OTHERWISE * rounded.size:
            return False
    return True


def score(question: Question, observations: list[Observation], predict: Predict) -> float:
    """
    Return the distance, in tolerances, of observed values from what is predicted.

    A prediction is an interval: the hypothesis with angles a little smaller and larger, as honest roundings may have made them.
    """
    predicted = [predict(0.0)]
    distance = _distance(question, observations, predicted)
    if 1 < distance < np.inf:
        for outer, j in enumerate(SAMPLES):
            predicted.append(predict(j * JITTER[question.dtype]))
            if outer % 2:
                distance = _distance(question, observations, predicted)
                if distance <= 1 or (distance >= HOPELESS and not _is_anywhere(observations, predicted)):
                    break
        if distance <= 1 and _is_anywhere(observations, predicted) and _is_near(observations, predicted[0]):
            return np.inf
    return distance


def plausible(question: Question, predict: Predict) -> bool:
    """Return whether at least half of the wrong values are predicted without any jitter: a quick look."""
    near, count = 0, 0
    for observation in question.observations:
        wrong = observation.wrong
        ratios = distances(question, observation, [predict(0.0)[observation.call].get(observation.name)])
        near, count = near + int(np.sum(ratios[wrong] <= 1)), count + int(np.sum(wrong))
    return 2 * near >= count


def left_over(question: Question, predict: Predict) -> float:
    """Return which part of a case's error a mistake leaves, in the root mean square; infinite if it gives another shape."""
    squares = np.zeros(2)
    for observation in question.observations:
        value = predict(0.0)[observation.call].get(observation.name)
        if value is None or np.shape(value) != observation.observed.shape:
            return np.inf
        both_values = np.stack([np.asarray(value, dtype=np.float64), np.asarray(observation.expected, dtype=np.float64)])
        both = np.isfinite(both_values).all(axis=0) & np.isfinite(observation.observed)
        squares += np.sum(np.where(both, both_values - observation.observed, 0.0).reshape(2, -1) ** 2, axis=1)
    return float(np.sqrt(squares[0] / squares[1])) if squares[1] else np.inf


def _distance(question: Question, observations: list[Observation], predicted: list[Outputs]) -> float:
    """Return the largest distance of a case's outputs from a prediction, in units of possible rounding."""
    largest = 0.0
    for observation in observations:
        ratios = distances(question, observation, [p[observation.call].get(observation.name) for p in predicted])
        largest = max(largest, float(np.max(ratios, initial=0.0)))
        if largest == np.inf:
            break
    return largest


def _is_anywhere(observations: list[Observation], predicted: list[Outputs]) -> bool:
    """Return whether some value of a prediction may be anything: its samples are as far apart as the values of the output."""
    for observation in observations:
        outputs = (p[observation.call].get(observation.name) for p in predicted)
        values = [v for v in outputs if v is not None and v.shape == observation.expected.shape]
        if observation.expected.dtype.kind != "f" or len(values) < len(predicted):
            continue
        apart = np.max(values, axis=0) - np.min(values, axis=0)
        if np.any(apart > ANYWHERE * np.max(np.abs(observation.expected), initial=0.0)):
            return True
    return False


def _is_near(observations: list[Observation], predicted: Outputs) -> bool:
    """Return whether wrong values are far nearer to what is expected than a prediction is, which may be anything."""
    pairs = [(o, value[o.wrong]) for o in observations if (value := predicted[o.call].get(o.name)) is not None and o.failed]
    off = max((float(np.max(np.abs(o.observed - o.expected)[o.wrong], initial=0.0)) for o, _ in pairs), default=0.0)
    return off < NEAR * max(
        (float(np.max(np.abs(value - o.expected[o.wrong]), initial=0.0)) for o, value in pairs), default=0.0
    )


def distances(question: Question, observation: Observation, predicted: list[Any]) -> Array:
    """Return every value's distance from a prediction; infinite where they cannot be compared."""
    hopeless = np.full(observation.expected.shape, np.inf)
    if any(value is None for value in predicted):
        return hopeless
    try:
        values = [np.broadcast_to(value, observation.expected.shape) for value in predicted]
    except ValueError:
        return hopeless
    if observation.expected.dtype.kind == "f":
        values = [_held(value, question.dtype) for value in values]
    value = values[0]
    if observation.expected.dtype.kind != "f":
        return np.where(value == observation.observed, 0.0, np.inf)
    if not np.array_equal(np.isfinite(value), np.isfinite(observation.observed)):
        return hopeless
    if len(values) > 1 or not np.array_equal(value, observation.expected):
        return _compared(question, observation, values)
    if not observation.of_expected:
        observation.of_expected.append(_compared(question, observation, values))
    return observation.of_expected[0]


def _held(value: Array, dtype: str) -> Array:
    """Return a prediction with infinity in place of what is beyond the numbers of a dtype."""
    return np.where(np.abs(value) > LARGEST[dtype], np.copysign(np.inf, value), value) if dtype in LARGEST else value


def _compared(question: Question, observation: Observation, values: list[Array]) -> Array:
    """Return every value's distance from the interval of a prediction."""
    value = values[0]
    finite = np.isfinite(value)
    sums = REGISTRY[question.op].sums and value.ndim and value.size
    size = np.where(finite, np.abs(value), 0.0)
    size = np.max(size, axis=-1, keepdims=True) if sums else size
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    largest = np.max(np.abs(observation.expected), initial=0.0)
    beyond = np.where(high - low > largest, high - low, 0.0)  # samples of such an angle do not reach its ends
    low, high = low - beyond, high + beyond
    outside = np.maximum(np.maximum(low - observation.observed, observation.observed - high), 0.0)
    shift = np.abs(value - observation.expected)
    # Elsewhere the prediction is what was expected, with the case's own tolerance.
    touched = (shift > UNITS["float64"] * size) | (shift > observation.width)
    elsewhere = high - low > FAR * (observation.width + UNITS["float64"] * size)
    touched |= elsewhere
    exponent = np.abs(np.log(np.where(size > 0, size, 1.0)))  # of a power: its own rounding is one of the result, times it
    units = UNITS[question.dtype] * size * np.where(exponent > HIGH, exponent, 1 + exponent / ROUNDINGS)
    width = observation.width * _times_larger(size, np.abs(observation.expected))
    allowed = np.where(touched, width + units + LEAST[question.dtype], observation.width)
    distance = np.where(touched, outside, np.abs(observation.expected - observation.observed))
    if observation.failed and value.size:  # the worst value must be one that the mistake moves, or it is not what is wrong
        worst = np.argmax(_quotient(np.abs(observation.observed - observation.expected), observation.width))
        if shift.flat[worst] <= observation.width.flat[worst] and not elsewhere.flat[worst]:
            distance, allowed = np.array(distance), np.array(allowed)
            distance.flat[worst] = np.abs(value - observation.observed).flat[worst]
            allowed.flat[worst] = observation.width.flat[worst]
    same = (value == observation.observed) | (np.isnan(value) & np.isnan(observation.observed))
    return np.where(finite, _quotient(distance, allowed), np.where(same, 0.0, np.inf))


def _times_larger(size: Array, expected: Array) -> Array:
    """Return how many times larger a prediction's rows are than what is expected, from 1 to 4: so are their errors."""
    if not size.ndim or not size.size:
        return np.ones(())
    largest, right = (np.max(np.where(np.isfinite(x), x, 0.0), axis=-1, keepdims=True) for x in (size, expected))
    return np.clip(np.where(right > 0, largest / np.where(right > 0, right, 1.0), 1.0), 1.0, LARGER)


def _quotient(distance: Array, allowed: Array) -> Array:
    return np.where(distance > 0, distance / np.where(allowed > 0, allowed, 2.0**-1022), 0.0)
