r"""
Explains failures by a number: an option with one value whatever the call says, an option that is twice the call's, a gain.

Some numbers are tried: those of the calls, of released models, and those from which on positions are wrong. Others are solved
for: a family of mistakes has one parameter k, as "base is k times the value passed". A small failing case gives its value by
Gauss-Newton steps from 1, or from the best of a grid; its standard error follows from the tolerances of the values:

.. math:: \delta = \Bigl( \sum_i (\partial y_i / \partial k)^2 / w_i^2 \Bigr)^{-1/2}

The shortest number within three errors is tried on all cases. A number is named only if it explains several failing cases and,
where it is one of positions, several positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import chain, permutations, product
from operator import not_
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.core.composition import reaches
from posref.scaling import Scaling
from posref.spec import REGISTRY, Integer, OneOf, Real

from ..calls import TABLES, parameters_of, positions_of
from ..evidence.tools.deviation import Deviation, Wrap, after, argument, before, narrowed, option, together, where_allowed
from ..vocabulary.axes import signed_places
from ..vocabulary.traits import defaults, has_coordinates
from . import arguments, siblings
from .hypotheses import JITTER, UNITS, Budget, Hypothesis, Question, plausible

LEAST = 2  # failing cases, and wrong positions, that a number must explain
RANGES = {  # of round numbers that are tried, by option or field; others are solved for, or those of the calls
    "base": (2, 1e7), "original_length": (64, 2**21), "length": (64, 2**21), "max_distance": (8, 1024), "max_bias": (1, 64),
    "scale_base": (1, 4096), "window": (1, 64), "rotary_dim": (2, 256),
}  # fmt: skip
MANY_REALS = 8  # different wrong reals of one case that no number gives by chance
MANY = 32  # different wrong values of one case that do as well
LARGEST = 1 << 17  # whole number that a relation may make of a smaller one
LONGEST_LIST = 1 << 12  # entries of a list that a definition makes in no time, as of T5's buckets
LEAST_END = 4  # positions that a table has at least
PROBES = 6  # failing cases at which every number is tried first, each of another scaling or kind of positions
ROUND = (
    *range(1, 17), 20, 24, 30, 32, 40, 48, 50, 60, 64, 80, 96, 100, 120, 128, 150, 160, 200, 250, 256, 300, 320, 400, 500, 512,
    600, 640, 800, 1000, 1024, 2000, 2048, 4000, 4096, 5000, 8000, 8192, 10000, 16384, 20000, 32768, 50000, 65504, 65536,
    100000, 131072, 150000, 160000, 200000, 262144, 500000, 524288, 1000000, 1048576, 2000000, 5000000, 8000000, 10000000,
)  # fmt: skip
SCALES = (2, 3, 4, 8, 10, 16, 32, 100, 1000)
OFFSETS = (0.5, *range(2, 33), 50, 64, 100, 128, 256, 500, 512, 1000, 1024, 2048, 4096)  # 1 is one of `arguments`
FITTED = 2  # small failing cases on which a number is solved for
VALUES = 3  # values of a case of which a number says something
GRID = np.append(2.0 ** (np.arange(-20, 21) / 4), (-2, -1, -0.5))  # factors from 1/32 to 32, and some of the other sign
FARTHER = 8  # times as far as a case is another that gives more digits
LIKELY = 2.0**-12  # a factor below it, or above its inverse, is none
STEPS = 12
STEP = 2.0**-20  # of the difference quotient, relative
CLOSE = 4.0  # tolerances that the values of a fit may be off, at most: it is judged on all cases afterwards
NOTHING = "0, or too small to show"
WHOLE = ("rotary_dim",)  # options whose None is a number: the whole head
NEAR_ZERO = (0, 1, -1)  # what an option is that does not arrive, often
OPPOSITE = "the opposite of the value passed"
RELATED: dict[str, Callable[[Any], Any]] = {
    "one more than the value passed": lambda v: v + 1,
    "one less than the value passed": lambda v: v - 1,
    "twice the value passed": lambda v: 2 * v,
    "half of the value passed": lambda v: v // 2 if isinstance(v, int) else v / 2,
    "the square of the value passed": lambda v: v * v if isinstance(v, float) or v * v <= LONGEST_LIST else v,
    "the square root of the value passed": lambda v: v**0.5,
    "one over the value passed": lambda v: 1 / v,
    "the negative of the value passed": lambda v: -v,
}

CONSTANTS = {
    "1/ln 2": 1 / np.log(2), "ln 2": np.log(2), "pi": np.pi, "2 pi": 2 * np.pi, "pi/2": np.pi / 2, "1/pi": 1 / np.pi,
    "1/(2 pi)": 1 / (2 * np.pi), "pi/180": np.pi / 180, "180/pi": 180 / np.pi, "the square root of 2": 2**0.5,
    "the square root of 1/2": 0.5**0.5, "ln 10": np.log(10), "1/ln 10": 1 / np.log(10),
}  # fmt: skip
FACTOR = "times what it should be"
SURE = 1e-4  # relative error of a number, below which it is no constant by chance
Values = npt.NDArray[np.float64]


def tried(questions: Sequence[Question], budget: Budget) -> list[Deviation]:
    """Return mistakes with a number that explain at least half of the wrong values of one of some small failing cases."""
    small = _probes(questions)
    hypotheses = (Hypothesis(deviation, small) for deviation in budget.within(_candidates(questions[0].op, questions)))
    return [h.deviation for h in hypotheses if any(plausible(q, h.predicted(n)) for n, q in enumerate(small))]


def constants(questions: Sequence[Question], budget: Budget, beside: Deviation) -> list[Deviation]:
    """Return mistakes with another value of an option. Beside a known mistake, each explains a small failing case."""
    small = _probes(questions)[:1]
    both = ((together(beside, d), d) for d in budget.within(_of_options(questions[0].op, questions)))
    return [d for several, d in both if plausible(small[0], Hypothesis(several, small).predicted(0))]


def _probes(questions: Sequence[Question]) -> list[Question]:
    """Return small failing cases, each of another scaling or kind of positions: these may be wrong by themselves."""
    probes: dict[Any, Question] = {}
    for question in (q for q in questions if q.failed):
        params, places = question.calls[-1].params, positions_of(question.op)
        positions = [np.asarray(p) for call in question.calls for name, p in call.inputs.items() if name in places]
        negative, fractional = any(np.any(p < 0) for p in positions), any(np.any(p != np.floor(p)) for p in positions)
        kind = (type(params.get("scaling")).__name__, params.get("scale") is None, negative, fractional)
        probes.setdefault(kind, question)
    return list(probes.values())[:PROBES]


def whole(questions: Sequence[Question], deviations: Sequence[Deviation]) -> list[Deviation]:
    """Return those that explain all failing cases, two or one of many values, and give what is expected of passing ones."""
    failing = [q for q in questions if q.failed]
    if len(failing) < LEAST and not any(_has_many(q) for q in failing):
        return []

    def differs(deviation: Deviation) -> bool:
        """Return whether other values than the right ones come, by more than rounding may do, in most failing cases."""
        hypothesis = Hypothesis(deviation, failing)
        return 2 * sum(hypothesis.shows(n) for n in range(len(failing))) >= len(failing)

    return [d for d in deviations if Hypothesis(d, questions).fits() and differs(d)]


def _has_many(question: Question) -> bool:
    """Return whether a case has so many different wrong values that a number explains them by itself."""
    wrong = [o.observed[o.wrong] for o in question.observations]
    reals = all(o.expected.dtype.kind == "f" for o in question.observations)
    return len(np.unique(np.concatenate(wrong))) >= (MANY_REALS if reals else MANY)


def _candidates(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield mistakes with a number, those of options first."""
    yield from _of_options(op, questions)
    yield from siblings.candidates(op, next(q for q in questions if q.failed).calls[0].params)
    yield from arguments.candidates(op)
    yield from _of_positions(op, questions)
    yield from _of_axes(op, questions)


def _of_options(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield mistakes in which an option has another value, its own or the one of a stage that it reaches."""
    parameters = parameters_of(REGISTRY[op].function)
    done: set[str] = set()  # an option reaches the innermost stage that has it
    for name in sorted({op, *reaches(op)} & set(REGISTRY), key=lambda n: len(reaches(n))):
        for word, domain in REGISTRY[name].domains.items():
            if word in done or word not in parameters:
                continue
            inner = parameters_of(REGISTRY[name].function)[word]
            if name != op and inner.default != parameters[word].default:  # it may be another option of the same name
                continue
            done.add(word)
            values = _values(questions, word)
            if isinstance(domain, OneOf):
                yield from (_fixed(name, word, value, values) for value in domain.words)
            elif any(isinstance(v, Scaling) for v in values):
                yield from _of_scalings(name, values)
            elif values and all(isinstance(v, int | float | type(None)) for v in values):
                yield from _of_numbers(name, word, values)
                yield from _as_sizes(op, word, values) if isinstance(domain, Integer) else ()


def _as_sizes(op: str, word: str, values: Sequence[Any]) -> Iterator[Deviation]:
    """Yield mistakes in which an option is a size of the call, where the operation admits that."""
    for what, size in arguments.sizes_of(op).items():
        if what == word:
            continue

        def sized(*args: Any, size: Callable[..., Any] = size, **options: Any) -> Any:
            number = size(*args, **options)
            return args, options | ({word: number} if number else {})

        yield Deviation("", f"{word} is {what} ({_list(values)})", {op: where_allowed(sized)})


def _values(questions: Sequence[Question], word: str) -> list[Any]:
    """Return the values of an option that failing cases ask for."""
    default = defaults(questions[0].op).get(word)
    values = [call.params.get(word, default) for q in questions if q.failed for call in q.calls]
    return list({repr(v): v for v in values}.values())


def _round(word: str) -> list[float]:
    low, high = RANGES.get(word, (1, 0))
    return [n for n in ROUND if low <= n <= high]


def _list(values: Sequence[Any]) -> str:
    shown = [v if isinstance(v, str) else _short(v) if isinstance(v, float) else str(v) for v in values]
    return f"passed: {', '.join(shown[:3])}{', ...' * (len(shown) > 3)}"


def _changed(
    op: str, word: str, change: Callable[..., Any], *, none: bool = False, wrap: Callable[..., Wrap] = before
) -> dict[str, Wrap]:
    """Return a wrap that changes an option, even at its default; with `none` also if it is None."""
    default = defaults(op).get(word)

    def changed(*args: Any, **options: Any) -> Any:
        value = options.get(word, default)
        if value is None and not none:
            return args, options
        other = change(value)
        large = isinstance(other, int) and other > max(value or 0, LARGEST)  # some definitions make a list of so many
        return args, options | {word: value if large else other}

    return {op: wrap(changed)}


def _fixed(op: str, word: str, value: Any, values: Sequence[Any]) -> Deviation:
    """Return the mistake in which an option has one value."""
    shown = repr(value) if isinstance(value, str | bool) else _short(value)
    return Deviation("", f"{word} is {shown} ({_list(values)})", _changed(op, word, lambda v: value, none=word in WHOLE))


def _of_numbers(op: str, word: str, values: Sequence[Any]) -> Iterator[Deviation]:
    """Yield mistakes in which a numeric option is another number."""
    numbers = [v for v in values if not isinstance(v, bool) and v is not None]
    default = defaults(op).get(word)
    usual = (default,) if isinstance(default, int | float) and not isinstance(default, bool) else ()
    for value in dict.fromkeys((*numbers, *usual, *NEAR_ZERO, *_round(word))):
        yield _fixed(op, word, value, values)
    if any(isinstance(v, bool) for v in values):
        yield from (_fixed(op, word, value, values) for value in (True, False))
        yield Deviation("", f"{word} is {OPPOSITE}", _changed(op, word, not_, wrap=where_allowed))
        return
    for words, change in RELATED.items():
        yield Deviation("", f"{word} is {words} ({_list(values)})", _changed(op, word, change))


def _of_scalings(op: str, values: Sequence[Any]) -> Iterator[Deviation]:
    """Yield mistakes in which one field of a scaling is another number, or None."""
    for kind in dict.fromkeys(type(v) for v in values if isinstance(v, Scaling)):
        records = [v for v in values if isinstance(v, kind)]
        yield _defaults(op, kind)
        for field in vars(records[0]):
            of_field = [getattr(r, field) for r in records]
            numbers = [v for v in of_field if isinstance(v, int | float) and not isinstance(v, bool)]
            if not numbers and any(v is not None for v in of_field) and not isinstance(of_field[0], bool):
                continue
            every = [True, False] if isinstance(of_field[0], bool) else [*numbers, *_round(field)]
            for value in dict.fromkeys([*every, *([None] if None in of_field else [])]):
                text = f"{kind.__name__}'s {field} is {_plain(value)} ({_list(list(dict.fromkeys(of_field)))})"
                yield Deviation("", text, _record(op, kind, field, lambda r, f, value=value: value))
            if isinstance(of_field[0], bool):
                yield Deviation("", f"{kind.__name__}'s {field} is {OPPOSITE}", _record(op, kind, field, lambda r, v: not v))
            for words, change in RELATIONS_OF_FIELDS.items() if numbers else ():
                text = f"{kind.__name__}'s {field} is {words}"
                yield Deviation("", text, _record(op, kind, field, change))


def _defaults(op: str, kind: Any) -> Deviation:
    """Return the mistake in which a record has its defaults in all fields that have one."""
    optional = {f.name: f.default for f in fields(kind) if f.default is not MISSING}

    def changed(record: Any) -> Any:
        return replace(record, **optional) if isinstance(record, kind) else record

    words = ", ".join(f"{name} {_plain(value)}" for name, value in optional.items())
    return Deviation("", f"{kind.__name__}'s options do not arrive: {words}", {op: option(scaling=changed)})


def _plain(value: Any) -> str:
    return "not given" if value is None else _short(value) if not isinstance(value, bool) else str(value)


def _short(value: float) -> str:
    return f"{value:.9g}"


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


def _of_positions(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield mistakes in which positions end somewhere: they wrap, are clamped, or are read as 0 from there on."""
    values, wrong = _positions_seen(op, questions)
    counted = (values >= 0) & (values == np.floor(values))  # other positions may be wrong for a reason of their own
    chosen = counted if len(np.unique(values[wrong & counted])) >= LEAST else np.full(values.shape, fill_value=True)
    bad, good = np.unique(np.abs(values[wrong & chosen])), np.unique(np.abs(values[~wrong & chosen]))
    if len(bad) < LEAST:
        return
    first, below = float(bad[0]), float(np.max(good[good < bad[0]], initial=0.0))
    for words, change in _shifts_and_scales():
        yield Deviation("", words, arguments.on_positions(op, change))
    numbers = [*(2.0**k for k in range(2, 31)), *(d * 10.0**k for k in range(1, 8) for d in range(1, 10))]
    numbers += [n - 1 for n in numbers]
    for end in dict.fromkeys((first, below, below + 1, *(n for n in numbers if below <= n <= first + 1))):
        for words, change in _ends(end):
            yield Deviation("", words, arguments.on_positions(op, change))


def _shifts_and_scales() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield what may become of all positions, in words and as a function."""

    def linear(scale: float, offset: float = 0.0) -> Callable[[Any], Any]:
        if scale == 1:
            return lambda p: p + offset  # rows of a table stay integers
        return lambda p: scale * p + offset

    def parts(scale: int) -> Callable[[Any], Any]:
        return lambda p: np.floor(p / scale)

    for scale in SCALES:
        yield f"positions are multiplied by {scale}", linear(scale)
        yield f"positions are divided by {scale}", linear(1 / scale)
        yield f"positions are divided by {scale} and rounded down", parts(scale)
    for offset in (signed for size in OFFSETS for signed in (size, -size)):
        yield f"positions are offset by {offset:g}", linear(1.0, offset)
    yield "every position is treated as 0", lambda p: 0 * p
    yield "positions are divided by the largest of the call", lambda p: p / max(float(np.max(np.abs(p), initial=0)), 1.0)
    yield "positions are counted back from the largest of the call", lambda p: np.max(p) - p if np.size(p) else p
    yield (
        "positions are counted back from the largest of their row",
        lambda p: np.max(p, axis=-1, keepdims=True) - p if np.size(p) and np.ndim(p) else 0 * p,
    )
    yield "positions count from the middle of the call", lambda p: p - np.shape(p)[-1] // 2 if np.ndim(p) else p
    yield "every position is the largest of the call", lambda p: np.full_like(p, np.max(p)) if np.size(p) else p


def _positions_seen(op: str, questions: Sequence[Question]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the positions of all values, with their sign, and which of them have a wrong value."""
    seen: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = []
    for question in (q.whole for q in questions):
        for observation in question.observations:
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
    yield f"positions from {end:.0f} on are treated as 0", lambda p: np.where(p >= end, 0 * p, p)
    yield f"positions from {end:.0f} on are one too large", lambda p: np.where(p >= end, p + 1, p)
    yield f"positions from {end:.0f} on are one too small", lambda p: np.where(p >= end, p - 1, p)
    yield f"positions from {end:.0f} on are halved", lambda p: np.where(p >= end, p / 2, p)


def _axis(number: int) -> str:
    return f"axis {number}" if number >= 0 else "the last axis"


def _of_axes(op: str, questions: Sequence[Question]) -> Iterator[Deviation]:
    """Yield mistakes of the positions along one of several coordinates, if positions have a first axis of coordinates."""
    if "positions" not in REGISTRY[op].arrays or not has_coordinates(op):
        return
    which = list(REGISTRY[op].arrays).index("positions")
    ways: dict[str, Callable[[Any], Any]] = {
        "treated as 0": lambda p: 0 * p, "doubled": lambda p: 2 * p, "halved": lambda p: p / 2,
        "one too large": lambda p: p + 1,
        "one too small": lambda p: p - 1, "negated": lambda p: -p,
        "held in bfloat16": narrowed("bfloat16"), "held in float16": narrowed("float16"),
    }  # fmt: skip
    positions = [call.inputs["positions"] for q in questions if q.failed for call in q.calls if "positions" in call.inputs]
    counts = {len(np.shape(x)) and len(x) for x in positions}
    count, last = max(counts, default=0), (-1,) * (len(counts) > 1)

    def along(axis: int, words: str, other: int, way: Callable[[Any], Any]) -> Deviation:
        """Return that one axis has the positions of another or of itself, changed in some way."""

        def changed(p: Any) -> Any:
            place = range(len(p))[axis] if axis < len(p) else None
            return np.stack([way(p[other if other < len(p) else k]) if k == place else row for k, row in enumerate(p)])

        return Deviation("", f"positions along {_axis(axis)} are {words}", {op: argument(which, changed)})

    for axis, other in permutations((*range(min(count, 3)), *last), 2):
        yield along(axis, f"those of {_axis(other)}", other, lambda row: row)
    for axis, (words, way) in product((*range(3), *last), ways.items()):
        yield along(axis, words, axis, way)


# ---- numbers that are solved for --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Family:
    """
    Mistakes with one number: `change` makes one of a number that is `asked` where nothing is wrong.

    Where `others` are asked in other cases, the number that a case asks for may be the one that all of them get.
    """

    change: Callable[[float], Deviation]
    asked: float = 1.0
    others: bool = False


def solved(questions: Sequence[Question], budget: Budget, beside: Deviation | None = None) -> list[Deviation]:
    """Return mistakes of one number each that explain a small failing case, alone or `beside` a known mistake."""
    failing = [q for q in questions if q.failed and q.size >= VALUES]
    by_text: dict[str, Deviation] = {}
    for question in budget.within(_easiest(failing)[: 1 if beside else None]):  # there are several mistakes to be beside
        for family in budget.within(chain(_families(question, questions), () if by_text else _of_reals(question))):
            value, error = _solved(family, question, beside)
            if value is None or (value == family.asked and not family.others):
                continue
            for farther in _farther(question, failing):
                better, smaller = _solved(family, farther, beside, start=value / family.asked)
                value, error = (better, smaller) if better is not None and smaller < error else (value, error)
            if value != family.asked or family.others:
                deviation = family.change(value)
                if abs(value) <= error:
                    deviation = replace(deviation, text=deviation.text.replace(f" is {_short(value)} ", f" is {NOTHING} ", 1))
                by_text.setdefault(deviation.text, deviation)
    return list(by_text.values())


def _easiest(failing: Sequence[Question]) -> list[Question]:
    """Return the smallest cases, and the one whose positions are smallest: there angles are small, and steps lead to a base."""
    smallest = sorted(failing, key=lambda q: q.size)[:FITTED]
    near = [min(failing, key=farthest)] if failing and positions_of(failing[0].op) else []
    return [*near, *(q for q in smallest if q not in near)][:FITTED]


def _farther(question: Question, failing: Sequence[Question]) -> list[Question]:
    """
    Return cases at farther positions. They give more digits of a number; none is too far for the known digits.

    Without positions they are the largest case and one of a middle size.
    """
    if not positions_of(question.op):
        sizes = sorted(failing, key=lambda q: q.size)
        return [q for q in (sizes[len(sizes) // 2], sizes[-1]) if q is not question]
    chosen = [question]
    for other in sorted(failing, key=farthest):
        if FARTHER <= farthest(other) / max(farthest(chosen[-1]), 1.0) <= FARTHER**3:
            chosen.append(other)
    return chosen[1:]


def farthest(question: Question) -> float:
    """Return the size of the largest position of a case."""
    places = positions_of(question.op)
    every = (x for call in question.calls for name, x in call.inputs.items() if name in places)
    return max((float(np.max(np.abs(x), initial=0)) for x in every), default=0.0)


# ---- the families ------------------------------------------------------------------------------------------------------------
def _families(question: Question, questions: Sequence[Question]) -> Iterator[Family]:
    """Yield the families of an operation, those of options first."""
    op, call = question.op, question.calls[0]
    record = REGISTRY[op]
    for word, domain in record.domains.items():
        value = call.params.get(word, defaults(op).get(word))
        if isinstance(domain, Real) and isinstance(value, int | float) and value:
            asked = list(dict.fromkeys(call.params.get(word, defaults(op).get(word)) for q in questions for call in q.calls))
            yield from _of_option(op, word, float(value), [float(v) for v in asked if isinstance(v, int | float)])
        elif isinstance(value, Scaling):
            yield from _of_record(op, value)
    for which, (name, axes) in enumerate(record.arrays.items()):
        if (axes.kind in ("position", "wide") or name in TABLES) and name in call.inputs:
            yield Family(_argument_times(op, which, name))
    if len(record.outputs) == 1 and record.returns == "real":

        def times(k: float) -> Deviation:
            wrap = after(lambda out, *args, **options: k * np.asarray(out))
            return Deviation("", f"every value is {_named(k)} {FACTOR}", {op: wrap})

        yield Family(times)
    rotations = [name for name in (op, *reaches(op)) if name in REGISTRY and tuple(REGISTRY[name].arrays) == ("x", *TABLES)]
    if rotations:

        def turned(k: float) -> Deviation:
            wrap = before(lambda x, cos, sin, **options: ((x, k * cos, k * sin), options))
            return Deviation("", f"the gain is {_named(k)} {FACTOR}", {rotations[0]: wrap})

        yield Family(turned)
    if "scale" in record.domains and "bias" in record.arrays:

        def scaled(k: float) -> Deviation:
            wrap = after(lambda out, *args, bias=None, **options: k * out if bias is None else k * (out - bias) + bias)
            return Deviation("", f"the scale is {_named(k)} {FACTOR}", {op: wrap})

        yield Family(scaled)


def _named(k: float) -> str:
    """Return a number in words, with the name of the constant that it is."""
    return _short(k) + next((f" ({word})" for word, value in CONSTANTS.items() if k == value), "")


def _of_reals(question: Question) -> Iterator[Family]:
    """Yield that another array, such as decays, is a multiple of itself."""
    for which, (name, axes) in enumerate(REGISTRY[question.op].arrays.items()):
        if axes.kind == "real" and name not in TABLES and name in question.calls[0].inputs:
            yield Family(_argument_times(question.op, which, name))


def _argument_times(op: str, which: int, name: str) -> Callable[[float], Deviation]:
    def times(k: float) -> Deviation:
        parts = round(1 / k) if 0 < abs(k) < 1 and abs(round(1 / k) * k - 1) < 2.0**-20 else 0  # as fitted
        changed = f"divided by {parts}" if parts > 1 else f"multiplied by {_named(k)}"
        short = float(f"{k * np.pi:.5g}")
        near_pi = 0 < abs(k - 1) < 0.01 and abs(short / np.pi / k - 1) < 2.0**-23
        text = f"the argument {name} is {changed}{f', as where pi is {short:.5g}' if near_pi else ''}"
        return Deviation("", text, {op: argument(which, lambda x: k * x)})

    return times


def _of_option(op: str, word: str, asked: float, every: Sequence[float]) -> Iterator[Family]:
    """Yield that an option has one fixed number; if calls have several, that one number replaces another, or a multiple."""

    def family(text: str, change: Callable[[float, float], float], asked: float, *, others: bool = False) -> Family:
        return Family(
            lambda c: Deviation("", text.format(_short(c)), _changed(op, word, lambda v: change(c, v))), asked, others
        )

    yield family(f"{word} is {{}} ({_list(every)})", lambda c, v: c, asked, others=len(every) > 1)
    if len(every) > 1:
        yield family(f"{word} is {{}} where {_short(asked)} is passed", lambda c, v: c if v == asked else v, asked)
        yield family(f"{word} is {{}} times the value passed", lambda k, v: k * v, 1.0)


def _of_record(op: str, scaling: Scaling) -> Iterator[Family]:
    kind = type(scaling)
    for name, value in vars(scaling).items():
        if not isinstance(value, float | int) or isinstance(value, bool) or not value:
            continue

        def changed(c: float, name: str = name, value: Any = value) -> Deviation:
            text = f"{kind.__name__}'s {name} is {_short(c)} (passed: {_short(value)})"
            return Deviation("", text, _record(op, kind, name, lambda r, f: c))

        yield Family(changed, float(value))


# ---- the number ------------------------------------------------------------------------------------------------------------
def _solved(
    family: Family, question: Question, beside: Deviation | None, start: float = 1.0
) -> tuple[float | None, float]:  # fmt: skip
    """Return the shortest number with which a family gives the values of a case, and its error; None if there is none."""
    observed = np.concatenate([np.ravel(o.observed).astype(np.float64) for o in question.observations])
    expected = np.concatenate([np.ravel(o.expected).astype(np.float64) for o in question.observations])
    width = np.concatenate([np.ravel(o.width) for o in question.observations]) + UNITS[question.dtype] * np.abs(expected)
    usable = np.isfinite(observed) & (width > 0)

    def off(factor: float) -> Values | None:
        """Return by how many tolerances every value is off."""
        deviation = family.change(factor * family.asked)
        deviation = together(beside, deviation) if beside else deviation
        outputs = Hypothesis(deviation, [question]).predicted(0)(0.0)
        values = [outputs[o.call].get(o.name, np.zeros(0)) for o in question.observations]
        if any(v.shape != o.expected.shape for v, o in zip(values, question.observations, strict=True)):
            return None
        with np.errstate(all="ignore"):
            solution = (np.concatenate([np.ravel(v) for v in values]) - observed) / width
        return np.asarray(solution[usable], dtype=np.float64)

    if np.sum(usable) < VALUES:
        return None, 0.0
    solution = _refined(off, start) or (_refined(off, _best(off)) if start == 1 else None)
    if solution is None:
        return None, 0.0
    value, error = solution[0] * family.asked, 3 * solution[1] * abs(family.asked)
    error = error if start == 1 else max(error, JITTER[question.dtype] * abs(value))  # at far positions angles are rounded
    if abs(value) <= error:  # no other than 0, at which a definition may refuse it
        return float(f"{min(error / 8, LIKELY * abs(family.asked)):.0e}"), error
    if not LIKELY <= abs(solution[0]) <= 1 / LIKELY:
        return None, 0.0
    known = CONSTANTS.values() if error < SURE * abs(value) else ()
    shorter = (float(f"{value:.{digits}e}") for digits in range(12))
    return next((v for v in (family.asked, *known, *shorter) if abs(v - value) <= error), None), error


def _best(off: Callable[[float], Values | None]) -> float:
    """Return the factor of the grid at which most values are nearest."""
    sizes = [np.inf if (o := off(float(k))) is None or not o.size else float(np.median(np.abs(o))) for k in GRID]
    return float(GRID[int(np.nanargmin(sizes))]) if np.any(np.isfinite(sizes)) else 1.0


def _refined(off: Callable[[float], Values | None], factor: float) -> tuple[float, float] | None:
    """Return the factor at which all values are within a few tolerances, near a first one, and its standard error."""
    for _ in range(STEPS):
        here, above, below = (off(factor * s) for s in (1.0, 1 + STEP, 1 - STEP))
        if here is None or above is None or below is None or not np.all(np.isfinite(here)):
            return None
        slope = (above - below) / (2 * STEP * factor)
        total = float(np.sum(slope**2))
        if not np.isfinite(total) or total == 0:
            return None
        if np.max(np.abs(here)) <= CLOSE:
            step = float(np.sum(slope * here)) / total
            return factor - step, 1 / np.sqrt(total)
        step = float(np.sum(slope * here)) / total
        factor -= float(np.clip(step, -factor / 2, factor / 2))
    return None
