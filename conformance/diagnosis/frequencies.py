r"""
Reads frequencies from outputs: which formula of the pair's number gives them.

.. math:: f_i = C \, b^{-(a \, g(i) + c) / e}

Formulas that depart from the definition in one place or two are tried: another index g, such as i // 2, another slope a or
offset c, another denominator e, another logarithm of the base, a factor C, or zeros from some pair on. They are compared with
what some failing cases show: frequencies themselves, or sines and cosines of some positions. The first that holds in all of
these cases is judged on all cases, as every other explanation is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import combinations, islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.core.composition import reaches

from ..evidence.shared.formulas import ANGLES, FREQUENCIES
from ..evidence.tools.deviation import Deviation, Function, around, narrowed
from .hypotheses import JITTER, UNITS, Question, predict
from .partners import recorded_rotations

CASES = 6  # that are read, of different widths and bases
NEAREST = 8  # rows that are compared, of the smallest positions that tell something
CLOSE = 4.0  # tolerances within which a formula gives a value
SHOWN = 2  # formulas that are said, where stored cases do not tell them apart
WIDEST = 256  # channels of a case that is read

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """
    What a case shows of frequencies: these times the gain, or their waves at some positions.

    `waves` are cosines and sines of `positions`, each with an axis of positions and one of pairs. Without positions they are
    the frequencies themselves, and `gain` is the factor beside them.
    """

    options: dict[str, Any]  # of `rope_frequencies`: dim, base, scaling and length
    positions: Reals | None
    waves: tuple[Reals, ...]
    widths: tuple[Reals, ...]
    dtype: str
    gain: float | None = None

    def shows(self, frequencies: Reals, gains: Reals) -> npt.NDArray[np.bool_]:
        """Return which of many rows of frequencies, each with a gain, it shows."""
        unit = UNITS[self.dtype]
        with np.errstate(all="ignore"):
            if self.positions is None:
                near = np.abs(frequencies - self.waves[0]) <= CLOSE * (self.widths[0] + unit * np.abs(self.waves[0]))
                gain = gains if self.gain is None else self.gain
                near |= frequencies == self.waves[0]  # infinite ones
                return np.asarray(near.all(axis=-1) & (np.abs(gains - gain) <= CLOSE * unit * np.abs(gain)))
            angles = frequencies[:, None, :] * self.positions[:, None]
            factor = gains[:, None, None]
            jitter = CLOSE * (JITTER[self.dtype] * np.abs(angles) + unit)
            close = [
                np.abs(factor * wave(angles) - seen) <= CLOSE * width + jitter * factor
                for wave, seen, width in zip((np.cos, np.sin), self.waves, self.widths, strict=True)
            ]
        return np.asarray((close[0] & close[1]).all(axis=(1, 2)))


def spectra(questions: Sequence[Question]) -> list[Spectrum]:
    """Return what small failing cases show of frequencies, each of other options."""
    op, by_options = questions[0].op, dict[str, Spectrum]()
    if op != FREQUENCIES and not {FREQUENCIES, ANGLES} <= reaches(op):
        return []
    for question in (q for q in questions if q.failed and len(q.calls) == 1):
        for spectrum in _of_frequencies(question) if op == FREQUENCIES else _of_waves(question):
            if 4 < spectrum.options["dim"] <= WIDEST:
                by_options.setdefault(repr(spectrum.options), spectrum)
    return list(by_options.values())


def _of_frequencies(question: Question) -> Iterator[Spectrum]:
    by_name = {o.name: o for o in question.observations}
    if "inv_freq" in by_name:
        seen, params = by_name["inv_freq"], question.calls[0].params
        gain = float(by_name["attention_factor"].observed) if "attention_factor" in by_name else None
        options = {"scaling": None, "length": None, **params}
        yield Spectrum(options, None, (np.asarray(seen.observed, float),), (np.asarray(seen.width),), question.dtype, gain)


def _of_waves(question: Question) -> Iterator[Spectrum]:
    """Yield the cosines and sines by which a rotation is the right one of its channels."""
    asked: list[dict[str, Any]] = []
    places: list[Any] = []

    def recording_options(function: Function, dim: int, /, **rest: Any) -> Any:
        asked.append({"dim": dim, "base": rest["base"], "scaling": rest.get("scaling"), "length": rest.get("length")})
        return function(dim, **rest)

    def recording_positions(function: Function, p: Any, *args: Any, **rest: Any) -> Any:
        places.append(p)
        return function(p, *args, **rest)

    recorder = Deviation("", "", {FREQUENCIES: around(recording_options), ANGLES: around(recording_positions)})
    predict(recorder, question.op, question.calls)
    if len(asked) != 1 or len(places) != 1:
        return
    for rotation in recorded_rotations(question, places[0]):
        yield Spectrum(asked[0], *rotation.waves(NEAREST), question.dtype)


# ---- formulas ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Formula:
    """A formula of frequencies in words, and as a function of d, the base and the denominator of the definition."""

    words: str
    of: Callable[[int, float, float], Reals]


INDICES: dict[str, Callable[[Any, int], Any]] = {
    "i": lambda i, n: i, "(i // 2)": lambda i, n: i // 2, "(d/2 - 1 - i)": lambda i, n: n - 1 - i,
    "(2i mod (d/2))": lambda i, n: 2 * i % n, "(i mod (d // 4))": lambda i, n: i % max(n // 2, 1),
}  # fmt: skip
SLOPES = (2.0, 1.0, 4.0, 8.0, -2.0, -1.0, -4.0, 3.0)
OFFSETS = (0.0, 1.0, 2.0, -1.0, -2.0, 4.0)
DENOMINATORS: dict[str, Callable[[int, float], float]] = {
    "": lambda d, right: right, "d": lambda d, right: d, "(d - 1)": lambda d, right: d - 1, "(d - 2)": lambda d, right: d - 2,
    "(d + 1)": lambda d, right: d + 1, "(d + 2)": lambda d, right: d + 2, "(d - 4)": lambda d, right: d - 4,
    "(2d)": lambda d, right: 2 * d,
}  # fmt: skip
LOGARITHMS: dict[str, Callable[[float], float]] = {"ln": np.log, "log10": np.log10, "log2": np.log2}
FACTORS: dict[str, float] = {
    "": 1.0, "2 pi ": 2 * np.pi, "pi ": np.pi, "1/(2 pi) ": 1 / (2 * np.pi), "1/pi ": 1 / np.pi, "-": -1.0, "2 ": 2.0,
    "1/2 ": 0.5,
}  # fmt: skip
BASES = (2.0, 10.0, 100.0, 500.0, 1e3, 1024.0, 1e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 1e7)  # that stand in place of the one asked
ZEROS = ("", ", and 0 from i = d // 4 on")
PARTS: dict[str, Sequence[Any]] = {
    "index": tuple(INDICES), "slope": SLOPES, "offset": OFFSETS, "denominator": tuple(DENOMINATORS), "base": tuple(LOGARITHMS),
    "factor": tuple(FACTORS), "zeros": ZEROS,
}  # fmt: skip


@cache
def formulas(denominator: str) -> tuple[Formula, ...]:
    """Return formulas, those of fewest departures first; `denominator` is the definition's, in words."""
    singles = [(place, value) for place, values in PARTS.items() for value in values[1:]]
    several = [one for count in (1, 2) for one in combinations(singles, count) if len(dict(one)) == count]
    made = {formula.words: formula for departures in several for formula in (_formula(dict(departures), denominator),)}
    return (*_others(), *made.values())


def _formula(departures: dict[str, Any], right: str) -> Formula:
    part = {place: departures.get(place, values[0]) for place, values in PARTS.items()}
    factor, index, log = FACTORS[part["factor"]], INDICES[part["index"]], LOGARITHMS[part["base"]]
    slope, offset = part["slope"], part["offset"]

    def of(d: int, base: float, denominator: float) -> Reals:
        i, below = np.arange(d // 2), DENOMINATORS[part["denominator"]](d, denominator)
        top = log(base) * (slope * index(i, d // 2) + offset)
        frequencies = factor * np.exp(-np.where(top == 0, 0.0, top / below))  # 0/0 is the only pair of two channels
        return np.asarray(np.where(i < d // 4, frequencies, 0.0) if part["zeros"] else frequencies)

    top = part["index"] if abs(slope) == 1 else f"{abs(slope):g}{part['index']}"
    if offset:
        top = f"({top} {'-+'[(offset > 0) == (slope > 0)]} {abs(offset):g})"
    top, below = f"{'-' if slope > 0 else ''}{top}", part["denominator"] or right
    power = f"base^({top}/{below})" if part["base"] == "ln" else f"e^({top} {part['base']}(base)/{below})"
    words = f"{part['factor']}{power}{part['zeros']}"
    return Formula(words, of)


def _quarter(sign: float, d: int, base: float, right: float) -> Reals:
    i, q = np.arange(d // 2), d // 4
    return sign * np.where(i < q, base ** -np.minimum(i / max(q - 1, 1), 1.0), 0.0)


def _linear(size: float, first: int, d: int, base: float, right: float) -> Reals:
    return size * np.asarray(np.arange(d // 2) + first, dtype=np.float64)


def _doubling(size: float, first: int, d: int, base: float, right: float) -> Reals:
    return np.asarray(size * 2.0 ** (np.arange(d // 2) + first))


def _rounded_down(over: float, slope: float, d: int, base: float, right: float) -> Reals:
    return np.asarray(np.exp(slope * np.arange(d // 2) * np.floor(-np.log(base) / (over * d))))


def _in_steps(dtype: str, inverse: bool, d: int, base: float, right: float) -> Reals:
    """Return frequencies of which the base, the exponent, the power and its inverse are rounded one by one."""
    rounded = narrowed(dtype)
    base, exponents = float(rounded(base)), rounded(2.0 * np.arange(d // 2) / d)
    return np.asarray(rounded(1 / rounded(base**exponents)) if inverse else rounded(base**-exponents))


def _others() -> Iterator[Formula]:
    """Yield formulas of other kinds."""
    half_truncated = "base^(-i/(d // 4 - 1)) for i < d // 4 and 0 for the others (half-truncated, as modded-nanogpt has it)"
    yield from (Formula(f"{words}{half_truncated}", partial(_quarter, sign)) for words, sign in (("", 1.0), ("-", -1.0)))
    for dtype, (words, inverse) in product(("bfloat16", "float16"), (("1/base^(2i/d)", True), ("base^(-2i/d)", False))):
        yield Formula(f"{words} with every step in {dtype}", partial(_in_steps, dtype, inverse))
    for (words, size), first in product(FACTORS.items(), (1, 0)):
        index = "(i + 1)" if first else "i"
        yield Formula(f"{words}{index}, which is linear in i: another encoding", partial(_linear, size, first))
        yield Formula(f"{words}2^{index}", partial(_doubling, size, first))
    for (per, over), (step, slope) in product((("d", 1.0), ("(d/2)", 0.5), ("(2d)", 2.0)), (("2i", 2.0), ("i", 1.0))):
        words = f"e^({step} floor(-ln(base)/{per})), an exponent that is rounded down"
        yield Formula(words, partial(_rounded_down, over, slope))


@cache
def with_a_base() -> tuple[Formula, ...]:
    """Return the plain formula and those that change one thing, each with its fixed base."""

    def fixed(formula: Formula, fixed_base: float, d: int, base: float, right: float) -> Reals:
        return formula.of(d, fixed_base, right)

    singles = (_formula({place: value}, "d") for place, values in PARTS.items() for value in values[1:])
    every = {f.words: f for f in (_formula({}, "d"), *islice(_others(), 2), *singles)}
    return tuple(
        Formula(w.replace("base", f"{fixed_base:g}"), partial(fixed, f, fixed_base))
        for w, f in every.items()
        for fixed_base in BASES
    )


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the formula of the unscaled frequencies that failing cases show, as a mistake; none if they show none."""
    shown = [s for s in spectra(questions) if s.options["scaling"] is None][:CASES]
    if not shown or not any(s.options["dim"] > 4 for s in shown):
        return []
    for every in (formulas("d"), with_a_base()[len(BASES) :]):  # another base alone is a number of an option
        left: list[Formula] = list(every)
        for spectrum in shown:
            dim = spectrum.options["dim"]
            table = np.stack([formula.of(dim, float(spectrum.options["base"]), float(dim)) for formula in left])
            left = [left[k] for k in np.flatnonzero(spectrum.shows(table, np.ones(len(table))))]
            if not left:
                break
        if left:
            return [deviation(formula) for formula in different(left)]
    return []


def different(fitting: Sequence[Formula]) -> list[Formula]:
    """Return the plainest of formulas, and those that differ from it at other sizes."""
    rows = {tuple(np.round(np.log1p(np.abs(f.of(dim, 700.0, float(dim)))), 9)): f for dim in (26,) for f in fitting[::-1]}
    return sorted(rows.values(), key=fitting.index)[:SHOWN]


@lru_cache(maxsize=32)
def evaluated(denominator: str, dim: int, base: float, right: float) -> Reals:
    """Return the frequencies of all formulas, a row each."""
    with np.errstate(all="ignore"):
        return np.stack([formula.of(dim, float(base), right) for formula in formulas(denominator)])


def deviation(formula: Formula) -> Deviation:
    """Return a formula of unscaled frequencies as a mistake."""

    def deviating(function: Function, dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **rest: Any) -> Any:
        frequencies, factor = function(dim, base=base, scaling=scaling, length=length, **rest)
        plain = base ** -(2 * np.arange(dim // 2) / dim)
        return frequencies * (formula.of(dim, float(base), float(dim)) / plain), factor

    return Deviation("", f"frequency i is {formula.words}", {FREQUENCIES: around(deviating)})
