r"""
Reads sinusoids from outputs: the wave, frequency and order of the columns, and rows of zeros.

.. math:: PE_{p,2i} = A \, u(p f_i), \qquad PE_{p,2i+1} = A \, v(p g_i)

Both waves u and v, both formulas f and g, and the order of the columns are read from small failing cases, and judged on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..evidence.shared.formulas import SINUSOIDS
from ..evidence.tools.deviation import Deviation, Function, around
from . import frequencies
from .frequencies import Formula, Reals
from .hypotheses import JITTER, UNITS, Question

CASES = 5  # that are read
ABOVE = 1.01  # a wave is at most 1, and its rounding a little more
NEAREST = 6  # positions of a case that are compared
CLOSE = 4.0  # tolerances within which a wave gives a value
WAVES: dict[str, Callable[[Any], Any]] = {
    "sine": np.sin, "cosine": np.cos, "negative sine": lambda a: -np.sin(a), "negative cosine": lambda a: -np.cos(a),
    "zero": lambda a: 0 * a,
}  # fmt: skip
SIGNS = {"sine": 1.0, "cosine": 1.0, "negative sine": -1.0, "negative cosine": -1.0, "zero": 0.0}
SHIFTS = {1: "positions are one too large", -1: "positions are one too small"}
BELOW = {False: "d", True: "(d - 2)"}  # the denominator of the definition
SIZES: dict[str, Callable[[int], float]] = {
    "": lambda d: 1.0, "sqrt(d)": lambda d: d**0.5, "1/sqrt(d)": lambda d: d**-0.5, "sqrt(2/d)": lambda d: (2 / d) ** 0.5,
    "sqrt(2)": lambda d: 2**0.5, "d": float,
}  # fmt: skip


class Columns(NamedTuple):
    """One case: its options, positions, the definition's denominator, and first and second columns of all pairs."""

    dim: int
    base: float
    endpoint: bool
    positions: Reals
    both: tuple[Reals, Reals]
    widths: tuple[Reals, Reals]
    dtype: str


class Wave(NamedTuple):
    """The wave of one column of every pair, and the formula of its frequencies."""

    name: str
    formula: Formula


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the sinusoids that failing cases show, as a mistake; none if they show none."""
    op = questions[0].op
    failing = [q for q in questions if q.failed and len(q.calls) == 1]
    if op not in SINUSOIDS:
        return []
    sizes = [size for size, of in SIZES.items() if 0.5 <= _largest(failing, of) <= ABOVE]
    plain = product(("asked", "interleaved", "halves"), (False, True), sizes, (0,))
    for order, zero, size, shift in (*plain, *product(("asked",), (False,), sizes, SHIFTS)):
        read = _read(op, failing, order, size, zero=zero, shift=shift)
        if read:
            return [_deviation(op, order, size, read, zero=zero, shift=shift)]
    return []


def _largest(failing: Sequence[Question], size: Callable[[int], float]) -> float:
    """Return the largest value of some cases, each over the size that its waves have."""
    shares = [0.0]
    for question in failing:
        params = question.calls[0].params
        asked = SINUSOIDS[question.op][0](params)
        bound = size(asked.dim) * asked.of_waves
        shares.append(float(np.max(np.abs(question.observations[0].observed), initial=0.0)) / bound)
    return max(shares)


def _read(
    op: str, failing: Sequence[Question], order: str, size: str, *, zero: bool, shift: int
) -> dict[bool, tuple[Wave, Wave]] | None:  # fmt: skip
    """Return the waves in place of sine and cosine, by whether the last frequency is 1/base; None if they are not read."""
    groups: dict[bool, dict[tuple[int, float, str], Columns]] = {}
    layouts: dict[bool, str] = {}
    for question in failing:
        params = question.calls[0].params
        dim, base, endpoint, layout, *_ = SINUSOIDS[op][0](params)
        by_options = groups.setdefault(endpoint, {})
        if (
            4 < dim <= frequencies.WIDEST
            and dim % 2 == 0
            and len(by_options) < CASES
            and layouts.setdefault(endpoint, layout) == layout
        ):
            columns = _columns(op, question, order, size, zero=zero, shift=shift)
            if columns is not None:
                by_options.setdefault((dim, base, layout), columns)
    read: dict[bool, tuple[Wave, Wave]] = {}
    for endpoint, by_options in groups.items():
        first = layouts.get(endpoint, "")
        columns_of = list(by_options.values())
        one, two = (_waves(columns_of, k, second=bool(k) != (first == "cos_sin")) if by_options else [] for k in (0, 1))
        if one and two:
            alike = ((a, b) for a, b in product(one, two) if a.formula.words == b.formula.words)
            first_two = next(alike, (one[0], two[0]))
            read[endpoint] = first_two[::-1] if first == "cos_sin" else first_two
    return (
        read
        if read
        and all(by_options for by_options in groups.values() if by_options)
        and len(read) == sum(bool(o) for o in groups.values())
        else None
    )


def _split(x: Reals, order: str) -> tuple[Reals, Reals]:
    """Return first and second columns of all pairs."""
    half = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if order == "interleaved" else (x[..., :half], x[..., half:])


def _joined(both: tuple[Reals, Reals], order: str) -> Reals:
    if order == "interleaved":
        return np.stack(both, axis=-1).reshape(*both[0].shape[:-1], -1)
    return np.concatenate(both, axis=-1)


def _columns(op: str, question: Question, order: str, size: str, *, zero: bool, shift: int) -> Columns | None:
    """Return the columns of a case in some order, over some size; of rows that are not all zero if position 0 is."""
    (call,), (seen,) = question.calls, question.observations
    dim, base, endpoint, layout, scale, factor = SINUSOIDS[op][0](call.params)
    positions = (np.ravel(np.asarray(next(iter(call.inputs.values())), dtype=np.float64)) + shift) * scale
    factor *= SIZES[size](dim)
    rows, width = (np.asarray(x, dtype=np.float64).reshape(-1, dim) / factor for x in (seen.observed, seen.width))
    if zero and np.any(rows[positions == 0]):
        return None
    kept = np.argsort(np.abs(positions), kind="stable")
    kept = kept[(positions[kept] != 0) | (not zero)][:NEAREST]
    order = layout if order == "asked" else order
    if not kept.size:
        return None
    return Columns(dim, base, endpoint, positions[kept], _split(rows[kept], order), _split(width[kept], order), question.dtype)


def _waves(cases: Sequence[Columns], which: int, *, second: bool) -> list[Wave]:
    """Return the waves that first or second columns may be: the definition's, if it fits, then other formulas, or others."""
    names = sorted(WAVES, key=lambda name: name != ("cosine" if second else "sine"))
    right = BELOW[cases[0].endpoint]
    every = (_right(endpoint=cases[0].endpoint), *frequencies.formulas(right))
    for name in names:
        left = np.ones(len(every), dtype=bool)
        for case in cases:
            below = float(case.dim - 2 if case.endpoint else case.dim)
            with np.errstate(all="ignore"):
                table = np.concatenate(
                    [every[0].of(case.dim, case.base, below)[None], frequencies.evaluated(right, case.dim, case.base, below)]
                )
                angles = table[:, None, :] * case.positions[:, None]
                off = np.abs(WAVES[name](angles) - case.both[which])
                allowed = CLOSE * (case.widths[which] + UNITS[case.dtype] + JITTER[case.dtype] * np.abs(angles))
                left &= (off <= allowed).all(axis=(1, 2))
            if not left.any():
                break
        if left.any():
            return [Wave(name, every[k]) for k in np.flatnonzero(left)]
    return []


def _deviation(
    op: str, order: str, size: str, read: dict[bool, tuple[Wave, Wave]], *, zero: bool, shift: int
) -> Deviation:  # fmt: skip
    def deviating(function: Function, positions: Any, dim: int, /, **options: Any) -> Any:
        width, base, endpoint, layout, scale, factor = SINUSOIDS[op][0]({"dim": dim} | options)
        if dim % 2 or endpoint not in read:
            return function(positions, dim, **options)
        p = (np.asarray(positions, dtype=np.float64)[..., None] + shift) * scale
        below = float(width - 2 if endpoint else width)
        both = [_column(function, SINUSOIDS[op][1], wave, p * wave.formula.of(width, base, below)) for wave in read[endpoint]]
        both = both[::-1] if layout == "cos_sin" else both
        out = _joined((both[0], both[1]), layout if order == "asked" else order) * SIZES[size](width)
        out *= factor
        return np.where(p == 0, 0.0, out) if zero else out

    said = dict.fromkeys(
        _words(waves, endpoint=endpoint) for endpoint, waves in read.items() if not _is_right(waves, endpoint=endpoint)
    )
    parts = [" or ".join(said)] if said else []
    parts += {
        "interleaved": ["sines and cosines stand in pairs, side by side"],
        "halves": ["first and second waves stand in halves"],
    }.get(order, [])
    parts += [f"the result is multiplied by {size}"] if size else []
    parts += ["position 0 has zeros"] if zero else []
    parts += [SHIFTS[shift]] if shift else []
    return Deviation("", ", and ".join(part for part in parts if part), {op: around(deviating)})


def _column(function: Any, options: Any, wave: Wave, angles: Reals) -> Reals:
    """Return the wave of angles, as the definition computes it: where its roundings are tried, they are here too."""
    waves = np.moveaxis(function(angles, 2, dtype=np.float64, **options), -1, 0)
    return np.asarray(SIGNS[wave.name] * waves[int(wave.name.endswith("cosine"))])


def _is_right(waves: tuple[Wave, Wave], *, endpoint: bool) -> bool:
    """Return whether both waves are the definition's."""
    has_formula = {wave.formula.words for wave in waves} == {_right(endpoint=endpoint).words}
    return has_formula and [wave.name for wave in waves] == ["sine", "cosine"]


def _right(*, endpoint: bool) -> Formula:
    """Return the definition's formula of frequencies."""
    return Formula(f"base^(-2i/{BELOW[endpoint]})", lambda d, b, e: b ** (-2 * np.arange(d // 2) / e))


def _words(waves: tuple[Wave, Wave], *, endpoint: bool) -> str:
    """Return the waves in place of sine and cosine in words."""
    one, two = waves
    if one.formula.words == two.formula.words and {one.name, two.name} == {"sine", "cosine"}:
        said = [f"frequency i is {one.formula.words}"] * (one.formula.words != _right(endpoint=endpoint).words)
        return ", and ".join(said + ["sines and cosines are exchanged"] * (one.name == "cosine"))
    said = [
        f"the {which} column of pair i is {'0' if wave.name == 'zero' else f'the {wave.name} of p {wave.formula.words}'}"
        for which, wave in zip(("sine", "cosine"), waves, strict=True)
    ]
    return " and ".join(said)
