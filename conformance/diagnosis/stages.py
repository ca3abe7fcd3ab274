"""
Reads frequencies that are wrong together with something else: with a rotation, or with positions, which is wrong as is known.

All formulas of frequencies are tried at once. On a small failing case the tables of all of them go through each known mistake
of the table or of the rotation, and those that give its values are tried on the next. They are judged on all cases, as every
other explanation is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posref.core.composition import reaches

from ..evidence.index import deviations_touching
from ..evidence.shared.formulas import ANGLES, FREQUENCIES, ROTATION
from ..evidence.tools.deviation import Deviation, Function, around
from . import frequencies
from .frequencies import Formula, Reals
from .hypotheses import JITTER, UNITS, Question, predict, quiet
from .siblings import exchanged_options

CASES = 4  # that are read, each of another width, base or layout
LARGEST = 512  # values of a case that is read
WIDEST = 64  # channels of a case that is read
CLOSE = 4.0  # tolerances within which a table gives a value
MOST = 2.0**-10  # of a row, that roundings of angles may do: a larger part would fit anything
SHOWN = 2  # formulas that are said, where stored cases do not tell them apart
Pair = tuple[Deviation, Deviation]


@dataclass(frozen=True)
class Case:
    """What a small failing case asks of the three stages, and what came out."""

    options: dict[str, Any]  # of `rope_frequencies`
    positions: Any
    x: Reals
    how: dict[str, Any]  # the options of `apply_rope`
    out: Reals
    allowed: Reals
    size: Reals  # the largest channel of each row
    jitter: Reals  # what roundings may do to an angle, for each unit of its frequency

    def shows(self, deviation: Deviation, fitting: Sequence[Formula]) -> list[Formula]:
        """Return the formulas whose frequencies give the values of the case, with a mistake of the table or the rotation."""
        dim, base = self.options["dim"], float(self.options["base"])
        rows = np.stack([formula.of(dim, base, float(dim)) for formula in fitting])
        made = deviation.operations()
        try:
            tables = made[ANGLES](self.positions, rows.reshape(-1))
            cos, sin = (np.moveaxis(t.reshape(*t.shape[:-1], *rows.shape), -2, 0) for t in tables)
            x = np.broadcast_to(self.x, (len(rows), *self.x.shape))
            cos, sin = (t.reshape(len(rows), *(1,) * (x.ndim - t.ndim), *t.shape[1:]) for t in (cos, sin))
            off = np.abs(made[ROTATION](x, cos, sin, **self.how) - self.out)
        except Exception:  # a mistake may want another shape
            return []
        if off.shape != x.shape:
            return []
        largest = np.max(np.abs(rows), axis=-1).reshape(-1, *(1,) * self.x.ndim)  # of the frequencies of each formula
        close = off <= self.allowed + self.size * np.minimum(self.jitter * largest, MOST)
        return [formula for formula, fits in zip(fitting, close.reshape(len(rows), -1).all(axis=1), strict=True) if fits]


def candidates(questions: Sequence[Question]) -> list[Pair]:
    """Return formulas of frequencies that small failing cases show, each with a known mistake beside it."""
    op = questions[0].op
    if op == ROTATION or not {FREQUENCIES, ANGLES, ROTATION} <= reaches(op):
        return []
    cases = _cases(questions)
    if not cases:
        return []
    known = (*deviations_touching(op), *exchanged_options(ROTATION))
    others = [d for d in known if not d.stateful and {op, FREQUENCIES}.isdisjoint(d.wraps)]
    every = (*frequencies.formulas("d"), *frequencies.with_a_base())
    found: list[Pair] = []
    with quiet():
        for other in (Deviation("", "", {}), *others):
            fitting: Sequence[Formula] = every
            for case in cases:
                fitting = case.shows(other, fitting) if fitting else ()
            if fitting and not other.text:  # it is no pair
                return []
            found += [(frequencies.deviation(formula), other) for formula in frequencies.different(fitting)]
    return found[:SHOWN]


def _cases(questions: Sequence[Question]) -> list[Case]:
    found: dict[str, Case] = {}
    for question in (q for q in questions if q.failed and len(q.calls) == 1 and q.size <= LARGEST):
        case = _case(question)
        if case and 4 < case.options["dim"] <= WIDEST and np.any(case.positions):
            found.setdefault(repr((case.options, case.how)), case)
    return list(found.values())[:CASES]


def _case(question: Question) -> Case | None:
    """Return a case's call of each stage; None if there are several, or the case scales the result or uses a part of it."""
    asked: dict[str, list[Any]] = {FREQUENCIES: [], ANGLES: [], ROTATION: []}

    def recorder(name: str) -> Any:
        def recording(function: Function, *args: Any, **options: Any) -> Any:
            out = function(*args, **options)
            asked[name].append((args, options, out))
            return out

        return around(recording)

    outputs = predict(Deviation("", "", {name: recorder(name) for name in asked}), question.op, question.calls)[0]
    (observation, *more) = question.observations
    if more or any(len(calls) != 1 for calls in asked.values()):
        return None
    ((dims, frequency, _),), ((angles, table, _),), ((arrays, how, out),) = asked.values()
    right = outputs.get(observation.name)
    if (
        right is None
        or not np.array_equal(right, out)
        or frequency.get("scaling") is not None
        or table.get("attention_factor", 1) != 1
    ):
        return None
    options = {"dim": dims[0], "base": frequency["base"]}
    allowed = CLOSE * (observation.width + UNITS[question.dtype] * np.abs(observation.expected))
    x = np.broadcast_to(np.asarray(arrays[0], dtype=np.float64), out.shape)
    size = np.max(np.abs(x), axis=-1, keepdims=True)
    jitter = CLOSE * JITTER[question.dtype] * np.broadcast_to(np.abs(angles[0])[..., None], size.shape)
    return Case(options, angles[0], x, how, np.asarray(observation.observed, dtype=np.float64), allowed, size, jitter)
