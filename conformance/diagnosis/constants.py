"""
Explains failures by a number: an option with one value whatever the call says, an option that is twice the call's, a gain.

The numbers come from the calls, from released models, and from where positions begin to be wrong. A number is named only
if it explains several failing cases and, where it is one of positions, several positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.core.composition import reaches
from posref.scaling import Scaling
from posref.spec import REGISTRY, OneOf

from ..calls import parameters_of, positions_of
from ..evidence.tools.deviation import Deviation, Wrap, argument, before, narrowed, option
from ..suite.axes import signed_places
from ..traits import defaults, has_coordinates
from . import arguments, siblings
from .hypotheses import Budget, Hypothesis, Question, plausible

LEAST = 2  # failing cases, and wrong positions, that a number must explain
RANGES = {  # of round numbers that are tried, by option or field; of others only those of the calls
    "base": (2, 1e7), "original_length": (64, 2**21), "length": (64, 2**21), "factor": (1, 128), "beta_fast": (2, 128),
    "beta_slow": (1, 16), "max_distance": (8, 1024), "max_bias": (1, 64), "scale_base": (1, 4096), "low_freq_factor": (1, 16),
    "high_freq_factor": (1, 16), "window": (1, 64),
}  # fmt: skip
MANY_REALS = 8  # different wrong reals of one case that no number gives by chance
MANY = 32  # different wrong values of one case that do as well
LARGEST = 1 << 17  # whole number that a relation may make of a smaller one
LEAST_END = 4  # positions that a table has at least
PROBES = 6  # failing cases at which every number is tried first, each of another scaling or kind of positions
ROUND = (
    *range(1, 17), 20, 24, 30, 32, 40, 48, 50, 60, 64, 80, 96, 100, 120, 128, 150, 160, 200, 250, 256, 300, 320, 400, 500, 512,
    600, 640, 800, 1000, 1024, 2000, 2048, 4000, 4096, 5000, 8000, 8192, 10000, 16384, 20000, 32768, 50000, 65536, 100000,
    131072, 150000, 160000, 200000, 262144, 500000, 524288, 1000000, 1048576, 2000000, 5000000, 8000000, 10000000,
)  # fmt: skip
NEAR_ZERO = (0, 1, -1)  # what an option is that does not arrive, often
RELATED: dict[str, Callable[[Any], Any]] = {
    "one more than asked": lambda v: v + 1,
    "one less than asked": lambda v: v - 1,
    "twice what is asked": lambda v: 2 * v,
    "half of what is asked": lambda v: v // 2 if isinstance(v, int) else v / 2,
    "the square of what is asked": lambda v: v * v,
    "the root of what is asked": lambda v: v**0.5,
    "one over what is asked": lambda v: 1 / v,
}


def fitted(questions: Sequence[Question], budget: Budget) -> list[Deviation]:
    """Return deviations with a number that explain one of some small failing cases at a first look."""
    return _at_first_look(questions, _candidates(questions[0].op, questions), budget)


def _at_first_look(questions: Sequence[Question], deviations: Iterable[Deviation], budget: Budget) -> list[Deviation]:
    """Return the deviations that explain at least half of the wrong values of one of some small failing cases."""
    probes: dict[Any, Question] = {}
    for question in (q for q in questions if q.failed):
        params = question.calls[-1].params
        probes.setdefault((type(params.get("scaling")).__name__, params.get("scale") is None, *_kinds(question)), question)
    small = list(probes.values())[:PROBES]
    hypotheses = (Hypothesis(deviation, small) for deviation in budget.within(deviations))
    return [h.deviation for h in hypotheses if any(plausible(q, h.predicted(n)) for n, q in enumerate(small))]


def _has_many(question: Question) -> bool:
    """Return whether a case has so many different wrong values that a number explains them by itself."""
    wrong = [o.observed[o.wrong] for o in question.found]
    reals = all(o.expected.dtype.kind == "f" for o in question.found)
    return len(np.unique(np.concatenate(wrong))) >= (MANY_REALS if reals else MANY)


def _kinds(question: Question) -> tuple[bool, bool]:
    """Return whether a case has negative positions, and whether some are no integers: both may be wrong by themselves."""
    given = [np.asarray(p) for call in question.calls for n, p in call.inputs.items() if n in positions_of(question.op)]
    return any(np.any(p < 0) for p in given), any(np.any(p != np.floor(p)) for p in given)


def whole(questions: Sequence[Question], deviations: Sequence[Deviation]) -> list[Deviation]:
    """Return those that explain all failing cases, two or one of many values, and give what is expected of passing ones."""
    failing = [q for q in questions if q.failed]
    if len(failing) < LEAST and not any(_has_many(q) for q in failing):
        return []
    found = []
    for deviation in deviations:
        if Hypothesis(deviation, questions).fits() and _differs(deviation, failing):
            found.append(deviation)
    return found


def _differs(deviation: Deviation, failing: Sequence[Question]) -> bool:
    """Return whether a number gives other values than the right ones, by more than rounding may do, in most failing cases."""
    hypothesis = Hypothesis(deviation, failing)
    return 2 * sum(hypothesis.shows(n) for n in range(len(failing))) >= len(failing)


def _candidates(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield deviations with a number, those of options first."""
    own = parameters_of(REGISTRY[op].function)
    done: set[str] = set()  # an option reaches the innermost stage that has it
    for name in sorted({op, *reaches(op)} & set(REGISTRY), key=lambda n: len(reaches(n))):
        for word, domain in REGISTRY[name].domains.items():
            if word in done or word not in own:
                continue
            inner = parameters_of(REGISTRY[name].function)[word]
            if name != op and inner.default != own[word].default:  # it may be another option of the same name
                continue
            done.add(word)
            values = _values(questions, word)
            if isinstance(domain, OneOf):
                yield from (_fixed(name, word, value, values) for value in domain.words)
            elif any(isinstance(v, Scaling) for v in values):
                yield from _of_scalings(name, values)
            elif values and all(isinstance(v, int | float | type(None)) for v in values):
                yield from _of_numbers(name, word, values)
    yield from siblings.candidates(op, next(q for q in questions if q.failed).calls[0].params)
    yield from _of_dtypes(op)
    yield from arguments.candidates(op)
    yield from _of_positions(op, questions)
    yield from _of_axes(op, questions)


def _values(questions: Sequence[Question], word: str) -> list[Any]:
    """Return the values of an option that failing cases ask for."""
    default = defaults(questions[0].op).get(word)
    values = [call.params.get(word, default) for q in questions if q.failed for call in q.calls]
    return list({repr(v): v for v in values}.values())


def _round(word: str) -> list[float]:
    low, high = RANGES.get(word, (1, 0))
    return [n for n in ROUND if low <= n <= high]


def _list(values: Sequence[Any]) -> str:
    shown = [v if isinstance(v, str) else f"{v:.9g}" if isinstance(v, float) else str(v) for v in values]
    return f"asked: {', '.join(shown[:3])}{', ...' * (len(shown) > 3)}"


def _changed(op: str, word: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes an option, also where it has its default."""
    default = defaults(op).get(word)

    def changed(*args: Any, **options: Any) -> Any:
        value = options.get(word, default)
        if value is None:
            return args, options
        other = change(value)
        large = isinstance(other, int) and other > max(value, LARGEST)  # some definitions make a list of so many
        return args, options | {word: value if large else other}

    return {op: before(changed)}


def _fixed(op: str, word: str, value: Any, values: Sequence[Any]) -> Deviation:
    """Return the deviation in which an option has one value."""
    shown = repr(value) if isinstance(value, str | bool) else f"{value:.9g}"
    return Deviation("", f"{word} is {shown} ({_list(values)})", _changed(op, word, lambda v: value))


def _of_numbers(op: str, word: str, values: Sequence[Any]) -> Iterator[Deviation]:
    """Yield deviations in which a numeric option is another number."""
    numbers = [v for v in values if not isinstance(v, bool) and v is not None]
    default = defaults(op).get(word)
    own = (default,) if isinstance(default, int | float) and not isinstance(default, bool) else ()
    for value in dict.fromkeys((*numbers, *own, *NEAR_ZERO, *_round(word))):
        yield _fixed(op, word, value, values)
    if any(isinstance(v, bool) for v in values):
        yield from (_fixed(op, word, value, values) for value in (True, False))
        return
    for words, change in RELATED.items():
        yield Deviation("", f"{word} is {words} ({_list(values)})", _changed(op, word, change))


def _of_scalings(op: str, values: Sequence[Any]) -> Iterator[Deviation]:
    """Yield deviations in which one field of a scaling is another number, or None."""
    for kind in dict.fromkeys(type(v) for v in values if isinstance(v, Scaling)):
        records = [v for v in values if isinstance(v, kind)]
        yield _defaults(op, kind)
        for field in vars(records[0]):
            own = [getattr(r, field) for r in records]
            numbers = [v for v in own if isinstance(v, int | float) and not isinstance(v, bool)]
            if not numbers and any(v is not None for v in own) and not isinstance(own[0], bool):
                continue
            every = [True, False] if isinstance(own[0], bool) else [*numbers, *_round(field)]
            for value in dict.fromkeys([*every, *([None] if None in own else [])]):
                text = f"{kind.__name__}'s {field} is {_plain(value)} ({_list(list(dict.fromkeys(own)))})"
                yield Deviation("", text, _record(op, kind, field, lambda r, f, value=value: value))
            for words, change in RELATIONS_OF_FIELDS.items() if numbers else ():
                text = f"{kind.__name__}'s {field} is {words}"
                yield Deviation("", text, _record(op, kind, field, change))


def _defaults(op: str, kind: Any) -> Deviation:
    """Return the deviation in which a record has its defaults in all fields that have one."""
    optional = {f.name: f.default for f in fields(kind) if f.default is not MISSING}

    def changed(record: Any) -> Any:
        return replace(record, **optional) if isinstance(record, kind) else record

    words = ", ".join(f"{name} {_plain(value)}" for name, value in optional.items())
    return Deviation("", f"{kind.__name__}'s options do not arrive: {words}", {op: option(scaling=changed)})


def _plain(value: Any) -> str:
    return "not given" if value is None else f"{value:.9g}" if not isinstance(value, bool) else str(value)


RELATIONS_OF_FIELDS: Mapping[str, Callable[..., Any]] = {
    "multiplied by its factor": lambda r, v: _alike(v * getattr(r, "factor", 1), v),
    "divided by its factor": lambda r, v: _alike(v / getattr(r, "factor", 1), v),
    **{words: (lambda r, v, change=change: _alike(change(v), v)) for words, change in RELATED.items()},
}


def _alike(value: float, like: Any) -> Any:
    """Return a number as an int where the one that it replaces is an int."""
    return round(value) if isinstance(like, int) else value


def _record(op: str, kind: Any, field: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes one field of the records of a kind, where it is given."""

    def changed(record: Any) -> Any:
        if not isinstance(record, kind):
            return record
        return replace(record, **{field: change(record, getattr(record, field))})

    return {op: option(scaling=changed)}


def _of_dtypes(op: str) -> Iterator[Deviation]:
    """Yield deviations in which all positions of a call are held in a dtype that is too narrow for them."""
    where = [n for n, name in enumerate(REGISTRY[op].arrays) if name in positions_of(op)]
    for dtype in ("bfloat16", "float16", "float32") if where else ():
        narrow = narrowed(dtype)

        def held(*args: Any, narrow: Any = narrow, **options: Any) -> Any:  # `dtype` is an option of the call
            told = [narrow(a).astype(np.asarray(a).dtype) if n in where else a for n, a in enumerate(args)]
            return tuple(told), options

        yield Deviation("", f"positions are held in {dtype}", {op: before(held)})


def _of_positions(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield deviations in which positions end somewhere: they wrap, are clamped, or are read as 0 from there on."""
    values, wrong = _positions_seen(op, questions)
    counted = (values >= 0) & (values == np.floor(values))  # other positions may be wrong for a reason of their own
    chosen = counted if len(np.unique(values[wrong & counted])) >= LEAST else np.full(values.shape, fill_value=True)
    bad, good = np.unique(np.abs(values[wrong & chosen])), np.unique(np.abs(values[~wrong & chosen]))
    if len(bad) < LEAST:
        return
    first, below = float(bad[0]), float(np.max(good[good < bad[0]], initial=0.0))
    for scale in (2, 4, 8, 10, 100, 1000):
        yield Deviation("", f"positions are multiplied by {scale}", arguments.on_positions(op, _scaled(scale)))
        yield Deviation("", f"positions are divided by {scale}", arguments.on_positions(op, _scaled(1 / scale)))
    yield Deviation("", "every position is taken for 0", arguments.on_positions(op, lambda p: 0 * p))
    yield Deviation("", "every position is the largest of the call", arguments.on_positions(op, _largest))
    numbers = [*(2.0**k for k in range(2, 31)), *(d * 10.0**k for k in range(1, 8) for d in range(1, 10))]
    numbers += [n - 1 for n in numbers]
    for end in dict.fromkeys((first, below, below + 1, *(n for n in numbers if below <= n <= first + 1))):
        for words, change in _ends(end):
            yield Deviation("", words, arguments.on_positions(op, change))


def _largest(p: Any) -> Any:
    return np.full_like(p, np.max(p)) if np.size(p) else p


def _scaled(factor: float) -> Callable[[Any], Any]:
    return lambda p: p * factor


def _positions_seen(op: str, questions: Sequence[Question]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the positions of all values, with their sign, and which of them have a wrong value."""
    seen: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = []
    for question in (q.whole for q in questions):
        for observation in question.found:
            where = signed_places(op, question.calls[observation.call], observation.name)
            if where is not None and where.shape == observation.expected.shape and where.size:
                values, index = np.unique(where, return_inverse=True)
                bad = observation.wrong.reshape(-1) & question.failed
                seen.append((values, np.bincount(index.reshape(-1), bad.astype(float), len(values)) > 0))
    seen.append((np.zeros(0), np.zeros(0, bool)))
    return np.concatenate([values for values, _ in seen]), np.concatenate([wrong for _, wrong in seen])


def _ends(end: float) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield what may become of positions from `end` on, in words and as a function."""
    if end < LEAST_END:
        return
    yield f"positions wrap at {end:.0f}", lambda p: np.where(p >= end, p % end, p)
    if end not in (2**8, 2**16):  # these are integer types
        yield f"positions wrap at {end:.0f}, and negative ones too", lambda p: p % end
    yield f"positions are clamped to {end:.0f}", lambda p: np.minimum(p, end)
    yield f"positions are clamped to 0 ... {end:.0f}", lambda p: np.clip(p, 0, end)
    yield f"positions from {end:.0f} on are taken for 0", lambda p: np.where(p >= end, 0 * p, p)
    yield f"positions from {end:.0f} on are one too large", lambda p: np.where(p >= end, p + 1, p)
    yield f"positions from {end:.0f} on are one too small", lambda p: np.where(p >= end, p - 1, p)
    yield f"positions from {end:.0f} on are halved", lambda p: np.where(p >= end, p / 2, p)


def _of_axes(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield deviations of the positions along one of several coordinates, if positions have a first axis of coordinates."""
    if "positions" not in REGISTRY[op].arrays or not has_coordinates(op):
        return
    which = list(REGISTRY[op].arrays).index("positions")
    ways: dict[str, Callable[[Any], Any]] = {
        "taken for 0": lambda p: 0 * p, "doubled": lambda p: 2 * p, "halved": lambda p: p / 2, "one too large": lambda p: p + 1,
        "one too small": lambda p: p - 1, "negated": lambda p: -p,
    }  # fmt: skip
    given = [call.inputs["positions"] for q in questions if q.failed for call in q.calls if "positions" in call.inputs]
    count = max((len(np.shape(x)) and len(x) for x in given), default=0)
    for axis, other in permutations(range(min(count, 3)), 2):

        def copied(p: Any, axis: int = axis, other: int = other) -> Any:
            return np.stack([p[other] if k == axis and other < len(p) else row for k, row in enumerate(p)])

        yield Deviation("", f"positions along axis {axis} are those of axis {other}", {op: argument(which, copied)})
    for axis in range(3):
        for words, way in ways.items():

            def change(p: Any, axis: int = axis, way: Callable[[Any], Any] = way) -> Any:
                return np.stack([way(row) if k == axis else row for k, row in enumerate(p)])

            yield Deviation("", f"positions along axis {axis} are {words}", {op: argument(which, change)})
