"""
Reads two mistakes of different stages: of frequencies, of tables (or positions), and of the rotation.

All formulas of frequencies are tried at once. On a small failing case the tables of all of them go through each known mistake
of the table or of the rotation, and those that give its values are tried on the next. So do the tables of all known mistakes of
tables, with each of the rotation. They are judged on all cases, as every other explanation is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posref.core.composition import reaches
from posref.spec import REGISTRY

from ..evidence.index import deviations_touching
from ..evidence.shared.formulas import ANGLES, FREQUENCIES, ROTATION
from ..evidence.tools.deviation import Deviation, Function, around, contradict
from . import frequencies, numbers
from .frequencies import Formula, Reals
from .hypotheses import JITTER, UNITS, Question, predict, quiet
from .siblings import exchanged_options

CASES = 4  # that are read, each of another width, base or layout
LARGEST = 512  # values of a case that is read
WIDEST = 64  # channels of a case that is read
CLOSE = 4.0  # tolerances within which a table gives a value
NEAR = 64  # position up to which roundings of angles are far below `MOST`
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
    jitter: Reals  # what roundings may do to an angle, for each unit of its frequency; at 0 too, which a mistake may move

    def shows(self, deviation: Deviation, fitting: Sequence[Formula]) -> list[Formula]:
        """Return the formulas whose frequencies give the values of the case, with a mistake of the table or the rotation."""
        dim, base = self.options["dim"], float(self.options["base"])
        rows = np.stack([formula.of(dim, base, float(dim)) for formula in fitting])
        made = deviation.operations()
        try:
            tables = made[ANGLES](self.positions, rows.reshape(-1))
            cos, sin = (np.moveaxis(t.reshape(*t.shape[:-1], *rows.shape), -2, 0) for t in tables)
        except Exception:  # a mistake may want another shape
            return []
        close = self._close(made[ROTATION], cos, sin, np.max(np.abs(rows), axis=-1))
        return [formula for formula, fits in zip(fitting, close, strict=True) if fits]

    def tables(self, deviations: Sequence[Deviation]) -> dict[int, tuple[Reals, Reals]]:
        """Return the cosines and sines of the right frequencies with each mistake that has them, by its number."""
        frequencies = np.asarray(REGISTRY[FREQUENCIES].function(self.options["dim"], base=self.options["base"])[0])
        by_number: dict[int, tuple[Reals, Reals]] = {}
        for n, deviation in enumerate(deviations):
            try:
                cos, sin = deviation.operations()[ANGLES](self.positions, frequencies)
            except Exception:  # a mistake may want other positions
                continue
            if np.shape(cos) == np.shape(sin) == (*np.shape(self.positions), len(frequencies)):
                by_number[n] = np.asarray(cos), np.asarray(sin)
        return by_number

    def rotated(self, tables: Mapping[int, tuple[Reals, Reals]], deviation: Deviation) -> set[int]:
        """Return the numbers of the tables that give the values of the case, with a mistake of the rotation."""
        cos, sin = (np.stack([table[k] for table in tables.values()]) for k in (0, 1))
        close = self._close(deviation.operations()[ROTATION], cos, sin, np.ones(len(cos)))
        return {n for n, fits in zip(tables, close, strict=True) if fits}

    def _close(self, rotation: Any, cos: Reals, sin: Reals, largest: Reals) -> Reals:
        """Return which of several tables give the values of the case; `largest` are the largest frequencies of each."""
        x = np.broadcast_to(self.x, (len(cos), *self.x.shape))
        cos, sin = (t.reshape(len(x), *(1,) * (x.ndim - t.ndim), *t.shape[1:]) for t in (cos, sin))
        try:
            off = np.abs(rotation(x, cos, sin, **self.how) - self.out)
        except Exception:  # a mistake may want another shape
            return np.zeros(len(x), dtype=bool)
        if off.shape != x.shape:
            return np.zeros(len(x), dtype=bool)
        close = off <= self.allowed + self.size * np.minimum(self.jitter * largest.reshape(-1, *(1,) * self.x.ndim), MOST)
        return np.asarray(close.reshape(len(x), -1).all(axis=1))


def candidates(questions: Sequence[Question]) -> list[Pair]:
    """Return formulas of frequencies that small failing cases show, or mistakes of tables, each with a known mistake beside."""
    op = questions[0].op
    if op == ROTATION or not {FREQUENCIES, ANGLES, ROTATION} <= reaches(op):
        return []
    cases = _cases(questions)
    if not cases:
        return []
    known = (*deviations_touching(op), *exchanged_options(ROTATION))
    others = [d for d in known if not d.stateful and {op, FREQUENCIES}.isdisjoint(d.wraps)]
    every = (*frequencies.formulas("d"), *frequencies.with_a_base())
    pairs: list[Pair] = []
    with quiet():
        for other in (Deviation("", "", {}), *others):
            fitting: Sequence[Formula] = every
            for case in cases:
                fitting = case.shows(other, fitting) if fitting else ()
            if fitting and not other.text:  # it is no pair
                return []
            pairs += [(frequencies.deviation(formula), other) for formula in frequencies.different(fitting)]
        return _of_tables(cases, others) or pairs[:SHOWN]


def _of_tables(cases: Sequence[Case], others: Sequence[Deviation]) -> list[Pair]:
    """Return pairs of a mistake of tables and one of the rotation that give the values of all cases."""
    angles = [d for d in others if ANGLES in d.wraps and ROTATION not in d.wraps]
    rotations = [d for d in others if ROTATION in d.wraps and ANGLES not in d.wraps]
    tables = [case.tables(angles) for case in cases]
    pairs = []
    for rotation in rotations:
        left = {*range(len(angles))}
        for case, of_case in zip(cases, tables, strict=True):
            left &= (
                case.rotated({n: table for n, table in of_case.items() if n in left}, rotation) if left & {*of_case} else set()
            )
        pairs += [(angles[n], rotation) for n in sorted(left)]
    named = [pair for pair in pairs if pair[1].name]
    return [pair for pair in named or pairs if not contradict(pair)]


def _cases(questions: Sequence[Question]) -> list[Case]:
    """Return failing cases of different options, those at near positions first: far ones have few digits."""
    by_options: dict[str, Case] = {}
    small = [q for q in questions if q.failed and len(q.calls) == 1 and q.size <= LARGEST]
    for question in sorted(small, key=lambda q: numbers.farthest(q) > NEAR):
        case = _case(question)
        if case and 4 < case.options["dim"] <= WIDEST and np.any(case.positions):
            by_options.setdefault(repr((case.options, case.how)), case)
    return list(by_options.values())[:CASES]


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
    jitter = CLOSE * JITTER[question.dtype] * np.broadcast_to(1 + np.abs(angles[0])[..., None], size.shape)
    return Case(options, angles[0], x, how, np.asarray(observation.observed, dtype=np.float64), allowed, size, jitter)
