r"""
Fits one number that explains failures: a real option with another value, a factor of an option, an argument or the result.

A family of mistakes has one parameter k, as "base is k times what is asked". On a small failing case its value is found by
Gauss-Newton steps from 1, or from the best of a grid; its standard error follows from the tolerances of the values:

.. math:: \delta = \Bigl( \sum_i (\partial y_i / \partial k)^2 / w_i^2 \Bigr)^{-1/2}

The shortest number within three errors is tried on all cases like any other number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.scaling import Scaling
from posref.spec import REGISTRY, Real

from ..evidence.tools.deviation import Deviation, after, argument, before, option
from ..traits import defaults
from .hypotheses import UNITS, Budget, Hypothesis, Question

PROBES = 2  # small failing cases on which a number is fitted
LEAST = 3  # values of a case of which a number says something
GRID = 2.0 ** (np.arange(-20, 21) / 4)  # factors from 1/32 to 32
LIKELY = 2.0**-12  # a factor below it, or above its inverse, is none
STEPS = 12
STEP = 2.0**-20  # of the difference quotient, relative
CLOSE = 4.0  # tolerances that the values of a fit may be off, at most: it is judged on all cases afterwards
NOTHING = "0, or too small to show"
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """Mistakes with one number: `change` makes one of a number that is `asked` where nothing is wrong."""

    change: Callable[[float], Deviation]
    asked: float = 1.0


def numbers(questions: Sequence[Question], budget: Budget) -> list[Deviation]:
    """Return mistakes of one number each that explain a small failing case."""
    failing = [q for q in questions if q.failed]
    probes = sorted((q for q in failing if q.size >= LEAST), key=lambda q: q.size)
    found: dict[str, Deviation] = {}
    for question in budget.within(probes[:PROBES]):
        for family in budget.within(_families(question, questions)):
            value, error = _solved(family, question)
            if value is not None and value != family.asked:
                deviation = family.change(value)
                if abs(value) <= error:
                    deviation = replace(deviation, text=deviation.text.replace(f" is {_short(value)} ", f" is {NOTHING} ", 1))
                found.setdefault(deviation.text, deviation)
    return list(found.values())


# ---- the families ------------------------------------------------------------------------------------------------------------
def _families(question: Question, questions: Sequence[Question]) -> Iterator[Family]:
    """Yield the families of an operation, those of options first."""
    op, call = question.op, question.calls[0]
    record = REGISTRY[op]
    for word, domain in record.domains.items():
        value = call.params.get(word, defaults(op).get(word))
        if isinstance(domain, Real) and isinstance(value, int | float) and value:
            asked = list(dict.fromkeys(call.params.get(word, defaults(op).get(word)) for q in questions for call in q.calls))
            yield from _of_option(op, word, float(value), [v for v in asked if isinstance(v, int | float)])
        elif isinstance(value, Scaling):
            yield from _of_record(op, value)
    for which, (name, axes) in enumerate(record.arrays.items()):
        if axes.kind in ("position", "wide") and name in call.inputs:
            yield Family(_argument_times(op, which, name))
    if len(record.outputs) == 1 and record.returns == "real":
        yield Family(lambda k: _named(f"every value is {_short(k)} times what it should be", {op: after(_times(k))}))
    if "scale" in record.domains and "bias" in record.arrays:
        yield Family(lambda k: _named(f"the scale is {_short(k)} times what it should be", {op: after(_but_for_bias(k))}))


def _argument_times(op: str, which: int, name: str) -> Callable[[float], Deviation]:
    def times(k: float) -> Deviation:
        parts = round(1 / k) if 0 < abs(k) < 1 and abs(round(1 / k) * k - 1) < 2.0**-20 else 0  # as fitted
        changed = f"divided by {parts}" if parts > 1 else f"multiplied by {_short(k)}"
        text = f"the argument {name} is {changed}{_of_pi(k)}"
        return _named(text, {op: argument(which, lambda x: k * x)})

    return times


def _of_pi(k: float) -> str:
    """Return in words that a factor is a short number in place of pi; nothing if it is not."""
    short = float(f"{k * np.pi:.5g}")
    return f", as where pi is {short:.5g}" if 0 < abs(k - 1) < 0.01 and abs(short / np.pi / k - 1) < 2.0**-23 else ""


def _of_option(op: str, word: str, asked: float, every: Sequence[float]) -> Iterator[Family]:
    """Yield that an option is one number; where several are asked for, that it is one in place of one, or a multiple."""
    several = len(every) > 1
    default = defaults(op).get(word)

    def changed(change: Callable[[float], float]) -> Any:
        def wrap(*args: Any, **options: Any) -> Any:
            value = options.get(word, default)
            return args, options if value is None else options | {word: change(value)}

        return {op: before(wrap)}

    also = f"{', '.join(_short(float(v)) for v in every[:3])}{', ...' * (len(every) > 3)}"
    yield Family(lambda c: _named(f"{word} is {_short(c)} (asked: {also})", changed(lambda v: c)), asked)
    if several:
        text = f"{word} is {{}} where {_short(asked)} is asked"
        yield Family(lambda c: _named(text.format(_short(c)), changed(lambda v: c if v == asked else v)), asked)
        yield Family(lambda k: _named(f"{word} is {_short(k)} times what is asked", changed(lambda v: k * v)))


def _of_record(op: str, scaling: Scaling) -> Iterator[Family]:
    kind = type(scaling)
    for name, value in vars(scaling).items():
        if not isinstance(value, float | int) or isinstance(value, bool) or not value:
            continue

        def changed(c: float, name: str = name, value: Any = value) -> Deviation:
            text = f"{kind.__name__}'s {name} is {_short(c)} (asked: {_short(value)})"
            return _named(text, {op: option(scaling=lambda s: replace(s, **{name: c}) if isinstance(s, kind) else s)})

        yield Family(changed, float(value))


def _named(text: str, wraps: Any) -> Deviation:
    return Deviation("", text, wraps)


def _times(k: float) -> Callable[..., Any]:
    return lambda out, *args, **options: k * np.asarray(out)


def _but_for_bias(k: float) -> Callable[..., Any]:
    def scaled(out: Any, *args: Any, bias: Any = None, **options: Any) -> Any:
        return k * np.asarray(out) if bias is None else k * (out - bias) + bias

    return scaled


def _short(value: float) -> str:
    return f"{value:.10g}"


# ---- the number ------------------------------------------------------------------------------------------------------------
def _solved(family: Family, question: Question) -> tuple[float | None, float]:
    """Return the shortest number with which a family gives the values of a case, and its error; None if there is none."""
    observed = np.concatenate([np.ravel(o.observed).astype(np.float64) for o in question.found])
    expected = np.concatenate([np.ravel(o.expected).astype(np.float64) for o in question.found])
    width = np.concatenate([np.ravel(o.width) for o in question.found]) + UNITS[question.dtype] * np.abs(expected)
    usable = np.isfinite(observed) & (width > 0)

    def off(factor: float) -> Values | None:
        """Return by how many tolerances every value is off."""
        outputs = Hypothesis(family.change(factor * family.asked), [question]).predicted(0)(0.0)
        values = [outputs[o.call].get(o.name, np.zeros(0)) for o in question.found]
        if any(v.shape != o.expected.shape for v, o in zip(values, question.found, strict=True)):
            return None
        with np.errstate(all="ignore"):
            found = (np.concatenate([np.ravel(v) for v in values]) - observed) / width
        return np.asarray(found[usable], dtype=np.float64)

    if np.sum(usable) < LEAST:
        return None, 0.0
    found = _refined(off, 1.0) or _refined(off, _best(off))
    if found is None:
        return None, 0.0
    value, error = found[0] * family.asked, 3 * found[1] * abs(family.asked)
    if abs(value) <= error:  # no other than 0, at which a definition may refuse it
        return float(f"{min(error / 8, LIKELY * abs(family.asked)):.0e}"), error
    if not LIKELY <= abs(found[0]) <= 1 / LIKELY:
        return None, 0.0
    shorter = (float(f"{value:.{digits}e}") for digits in range(12))
    return next((v for v in (family.asked, *shorter) if abs(v - value) <= error), None), error


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
