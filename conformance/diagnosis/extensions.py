r"""
Reads context extensions from outputs: what replaces the definition's factor, power, ramp or gain.

.. math:: f_i = (b \, X^P)^{-2i/d} \quad \text{or} \quad f_i = b^{-2i/d} / X^P

Numbers X of the record and the length, such as n/L or s n/L - s, powers P, and places are tried in all combinations, and
variants of YaRN's and Llama 3's ramps with variants of the gain. What gives all frequencies of some small failing cases of one
type of record is judged on all cases, as every other explanation is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from posref import rope_frequencies
from posref.scaling import DynamicNTK, Linear, Llama3, NTKAlpha, NTKAware, YaRN

from ..evidence.shared.formulas import FREQUENCIES
from ..evidence.tools.deviation import Deviation, Function, around
from .frequencies import Reals, Spectrum, spectra
from .hypotheses import Question, quiet

OTHERS = {"factor": 3.7, "alpha": 3.7, "original_length": 50}  # on which rules are compared
SHOWN = 3  # rules that are said, where stored cases do not tell them apart
CASES = 8  # of one type of record that are read
FIXED: dict[str, Callable[[float], float]] = {
    "s": lambda s: s, "s^2": lambda s: s * s, "sqrt(s)": lambda s: s**0.5, "(s + 1)": lambda s: s + 1,
    "(s - 1)": lambda s: s - 1, "2 s": lambda s: 2 * s, "(s/2)": lambda s: s / 2, "(ln(s) + 1)": lambda s: np.log(s) + 1,
    "(log2(s) + 1)": lambda s: np.log2(s) + 1, "(0.1 ln(s) + 1)": lambda s: 0.1 * np.log(s) + 1, "1": lambda s: 1.0,
}  # fmt: skip
BY_LENGTH: dict[str, Callable[[float, float], float]] = {  # of s and n/L
    "(s n/L - (s - 1))": lambda s, r: s * r - (s - 1), "s": lambda s, r: s, "(n/L)": lambda s, r: r,
    "(s n/L)": lambda s, r: s * r, "(s n/L - s)": lambda s, r: s * r - s, "(s n/L - 1)": lambda s, r: s * r - 1,
    "(s n/L + s - 1)": lambda s, r: s * r + s - 1,
    "(s n/L - s + 2)": lambda s, r: s * r - s + 2, "(n/L - (s - 1))": lambda s, r: r - (s - 1),
    "(2^ceil(log2(n/L) + 1) - 1)": lambda s, r: 2 ** np.ceil(np.log2(r) + 1) - 1,
    "2^ceil(log2(n/L))": lambda s, r: 2 ** np.ceil(np.log2(r)), "ceil(n/L)": lambda s, r: np.ceil(r),
    "sqrt(n/L)": lambda s, r: r**0.5, "(ln(n/L) + 1)": lambda s, r: np.log(r) + 1,
    "(log2(n/L) + 1)": lambda s, r: np.log2(r) + 1,
    "(s^2 - s + 1)": lambda s, r: s * s - s + 1, "(s + n/L - 1)": lambda s, r: s + r - 1, "(s + n/L)": lambda s, r: s + r,
}  # fmt: skip
POWERS: dict[str, Callable[[int], float]] = {
    "^(d/(d - 2))": lambda d: d / (d - 2), "": lambda d: 1.0, "^(d/(d - 1))": lambda d: d / (d - 1),
    "^((d - 2)/d)": lambda d: (d - 2) / d, "^(d/(d + 2))": lambda d: d / (d + 2), "^(d/(d - 4))": lambda d: d / (d - 4),
    "^2": lambda d: 2.0, "^(1/2)": lambda d: 0.5, "^(2/d)": lambda d: 2 / d,
}  # fmt: skip
PLACES: dict[str, Callable[[Reals, float, float, float], Reals]] = {  # of 2i/d, the base, X^P and s
    "the base is multiplied by {}": lambda e, b, x, s: (b * x) ** -e,
    "all frequencies are divided by {}": lambda e, b, x, s: b**-e / x,
    "all frequencies are multiplied by {}": lambda e, b, x, s: b**-e * x,
    "the base is multiplied by {}, and all frequencies are divided by s": lambda e, b, x, s: (b * x) ** -e / s,
    "{} is added to the base": lambda e, b, x, s: (b + x) ** -e,
    "the base is divided by {}": lambda e, b, x, s: np.divide(b, x) ** -e,
}
AS_IN = {"(2^ceil(log2(n/L) + 1) - 1)": ", as Qwen's own code has it", "(s^2 - s + 1)": ", as in vllm#41236"}
LENGTHS: dict[str, Callable[[float], float | None]] = {  # of n/L: the ratio that counts, or None where nothing is scaled
    " where n > L": lambda r: r if r > 1 else None, ", with max(n, L) for n": lambda r: max(r, 1.0),
    ", also where n < L": lambda r: r,
}  # fmt: skip


class Rule(NamedTuple):
    """A rule in words, the frequencies and the gain that it gives for the options of a call, and how far-fetched it is."""

    words: str
    of: Callable[[dict[str, Any]], tuple[Reals, float]]
    departures: int = 1


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the rules that cases of the only type of records that fails show, as mistakes; none if they show none."""
    shown = _by_kind(questions)
    return of_several(questions) if len(shown) == 1 else []


def of_several(questions: Sequence[Question]) -> list[Deviation]:
    """Return the rules of several types of records together; known mistakes say more, where each has its own."""
    fitting = [(kind, _fitting(kind, shown[:CASES])) for kind, shown in _by_kind(questions).items()]
    kinds = [kind for kind, rules in fitting if rules]
    chosen = product(*(rules for _, rules in fitting if rules)) if kinds else ()
    return [_deviation(dict(zip(kinds, rules, strict=True))) for rules in islice(chosen, SHOWN)]


def _by_kind(questions: Sequence[Question]) -> dict[type, list[Spectrum]]:
    """Return what failing cases show, by the type of their record."""
    by_kind: dict[type, list[Spectrum]] = {}
    for spectrum in spectra(questions):
        if type(spectrum.options["scaling"]) in RULES:
            by_kind.setdefault(type(spectrum.options["scaling"]), []).append(spectrum)
    return by_kind


def _fitting(kind: type, shown: Sequence[Spectrum]) -> list[Rule]:
    """
    Return rules of a type of record that all of some cases show, and that differ elsewhere: the plainest first.

    Of one call other rules have the numbers by chance: all are returned.
    """
    rules: dict[tuple[float, ...], Rule] = {}
    for rule in sorted(RULES[kind](), key=lambda rule: rule.departures):
        if all(_shows(rule, spectrum) for spectrum in shown):
            rules.setdefault(_elsewhere(rule, shown[0].options), rule)
    most = min((rule.departures for rule in rules.values()), default=0) if len(shown) > 1 else math.inf
    return [rule for rule in rules.values() if rule.departures <= most]


def _elsewhere(rule: Rule, options: dict[str, Any]) -> tuple[float, ...]:
    """Return what a rule gives for other sizes and other numbers of a record."""
    record = replace(options["scaling"], **{n: v for n, v in OTHERS.items() if hasattr(options["scaling"], n)})
    with quiet():
        both = [rule.of({"dim": 58, "base": 700.0, "scaling": record, "length": n}) for n in (173, 20)]
    return tuple(np.round([*(x for f, gain in both for x in (*f, gain))], 9).tolist())


def _shows(rule: Rule, spectrum: Spectrum) -> bool:
    with np.errstate(all="ignore"):
        frequencies, gain = rule.of(spectrum.options)
        return bool(spectrum.shows(np.asarray(frequencies)[None], np.asarray([gain]))[0])


def _plain(o: dict[str, Any]) -> tuple[Reals, Reals, float]:
    """Return plain frequencies, their exponents 2i/d, and the base."""
    exponents = 2 * np.arange(o["dim"] // 2) / o["dim"]
    return float(o["base"]) ** -exponents, exponents, float(o["base"])


def _departures(*parts: tuple[Mapping[str, Any], str]) -> int:
    """Return how many parts are not the first ones, those of the definition."""
    return sum(words != next(iter(known)) for known, words in parts)


def _power(words: str, power: str) -> str:
    """Return a power in words."""
    return words + power if power or not words.startswith("(") else words[1:-1]


def _fixed_rules() -> Iterator[Rule]:
    """Yield rules of a factor s, whatever the length."""
    for (words, number), (power_words, power), (place, frequencies) in product(FIXED.items(), POWERS.items(), PLACES.items()):

        def of(o: dict[str, Any], number: Any = number, power: Any = power, frequencies: Any = frequencies) -> Any:
            s = float(getattr(o["scaling"], "factor", getattr(o["scaling"], "alpha", 1.0)))
            _, exponents, base = _plain(o)
            return frequencies(exponents, base, number(s) ** power(o["dim"]), s), 1.0

        departures = _departures((FIXED, words), (POWERS, power_words), (PLACES, place))
        yield Rule(place.format(_power(words, power_words)), of, departures)


def _length_rules() -> Iterator[Rule]:
    """Yield rules of dynamic scaling: of a factor s, and of n/L."""
    for (words, number), (power_words, power), (place, frequencies), (where, ratio) in product(
        BY_LENGTH.items(), POWERS.items(), PLACES.items(), LENGTHS.items()
    ):

        def of(
            o: dict[str, Any], number: Any = number, power: Any = power, frequencies: Any = frequencies, ratio: Any = ratio
        ) -> Any:
            plain, exponents, base = _plain(o)
            s, r = float(o["scaling"].factor), ratio(o["length"] / o["scaling"].original_length)
            return plain if r is None else frequencies(exponents, base, number(s, r) ** power(o["dim"]), s), 1.0

        departures = _departures((BY_LENGTH, words), (POWERS, power_words), (PLACES, place))
        yield Rule(place.format(_power(words, power_words)) + where + AS_IN.get(words, ""), of, departures)


# ---- YaRN and Llama 3 --------------------------------------------------------------------------------------------------------
GAINS: dict[str, Callable[[float, float, float], float]] = {  # of the right gain, s and L
    "": lambda g, s, length: g, "the square root of the gain": lambda g, s, length: g**0.5,
    "the square of the gain": lambda g, s, length: g * g,
    "no gain": lambda g, s, length: 1.0, "one over the gain": lambda g, s, length: 1 / g,
    "a gain of ln(s) + 1": lambda g, s, length: np.log(s) + 1, "a gain of 0.1 ln(s)": lambda g, s, length: 0.1 * np.log(s),
    "a gain of sqrt(1 + ln(s)/ln(L))": lambda g, s, length: (1 + np.log(s) / np.log(length)) ** 0.5,
    "a gain of s": lambda g, s, length: s, "a gain of sqrt(s)": lambda g, s, length: s**0.5,
    "a gain of 0.1 s + 1": lambda g, s, length: 0.1 * s + 1, "twice the gain": lambda g, s, length: 2 * g,
}  # fmt: skip
RAMPS: dict[str, Callable[[Reals, Reals, float, float, Reals], Reals]] = {  # of plain ones, ramp, s, base, exponents
    "": lambda f, r, s, b, e: f * (1 - r) + f / s * r,
    "all frequencies are divided by s": lambda f, r, s, b, e: f / s,
    "no frequency is scaled": lambda f, r, s, b, e: f,
    "the base is multiplied by s^(d/(d - 2)), as NTK has it": lambda f, r, s, b, e: (b * s ** (1 / (1 - e[1]))) ** -e,
    "the base is multiplied by s": lambda f, r, s, b, e: (b * s) ** -e,
    "the ramp mixes wavelengths, not frequencies": lambda f, r, s, b, e: 1 / ((1 - r) / f + r * s / f),
    "the ramp mixes logarithms of frequencies": lambda f, r, s, b, e: f * s**-r,
    "the ramp is a step at its middle": lambda f, r, s, b, e: np.where(r > 0.5, f / s, f),
    "the ramp is a step at its start": lambda f, r, s, b, e: np.where(r > 0, f / s, f),
    "the ramp is a step at its end": lambda f, r, s, b, e: np.where(r < 1, f, f / s),
    "the ramp is reversed": lambda f, r, s, b, e: f * r + f / s * (1 - r),
    "the ramp is squared": lambda f, r, s, b, e: f * (1 - r * r) + f / s * r * r,
    "the ramp is smoothed, r^2 (3 - 2r)": lambda f, r, s, b, e: f + (f / s - f) * r * r * (3 - 2 * r),
}
COUNTS: dict[str, Callable[[Reals], Reals]] = {
    "": lambda i: i, "the ramp counts channels 2i, not pairs": lambda i: 2 * i, "the ramp counts pairs from 1": lambda i: i + 1,
    "the ramp counts i + 1/2": lambda i: i + 0.5, "the ramp counts i/2": lambda i: i / 2,
}  # fmt: skip
TOPS: dict[str, Callable[[float, float, int, bool], tuple[float, float]]] = {
    "": lambda low, high, d, cut: (max(np.floor(low) if cut else low, 0), min(np.ceil(high) if cut else high, d - 1)),
    "the limits are not clamped": lambda low, high, d, cut: (np.floor(low) if cut else low, np.ceil(high) if cut else high),
    "both limits are rounded down": lambda low, high, d, cut: (max(np.floor(low), 0), min(np.floor(high), d - 1)),
    "both limits are rounded up": lambda low, high, d, cut: (max(np.ceil(low), 0), min(np.ceil(high), d - 1)),
    "both limits are rounded to the nearest": lambda low, high, d, cut: (max(np.rint(low), 0), min(np.rint(high), d - 1)),
    "the limits are twice as far": lambda low, high, d, cut: (2 * max(low, 0), 2 * min(high, d - 1)),
}


def _yarn_rules() -> Iterator[Rule]:
    """Yield rules of YaRN: one departure in its frequencies, and one in its gain."""
    ways = [*((ramp, "", "") for ramp in RAMPS), *(("", count, "") for count in COUNTS), *(("", "", top) for top in TOPS)]
    for gain_words, (ramp, count, top) in product(GAINS, dict.fromkeys(ways)):

        def of(o: dict[str, Any], gain: Any = GAINS[gain_words], ramp: str = ramp, count: str = count, top: str = top) -> Any:
            s, (plain, exponents, base), d = o["scaling"], _plain(o), o["dim"]
            right, factor = rope_frequencies(d, base=base, scaling=s)
            factor_of_gain = gain(factor, s.factor, s.original_length)
            if not (ramp or count or top):
                return right, factor_of_gain
            low, high = (
                d * np.log(s.original_length / (beta * 2 * np.pi)) / (2 * np.log(base)) for beta in (s.beta_fast, s.beta_slow)
            )
            low, high = TOPS[top](low, high, d, s.truncate)
            share = np.clip((COUNTS[count](np.arange(d // 2)) - low) / (high - low if high != low else 1e-3), 0, 1)
            return RAMPS[ramp](plain, share, s.factor, base, exponents), factor_of_gain

        words = [part for part in (ramp, count, top) if part]
        words += [f"cosines and sines have {gain_words}"] if gain_words else []
        yield Rule(", and ".join(words), of)


SHARES: dict[str, Callable[[Reals, float, float], Reals]] = {  # of full rotations in L, low and high factor: 1 is not slowed
    "": lambda z, low, high: (z - low) / (high - low),
    "the ramp is linear in the wavelength": lambda z, low, high: (1 / low - 1 / z) / (1 / low - 1 / high),
    "the ramp is linear in the logarithm of the wavelength": lambda z, low, high: np.log(z / low) / np.log(high / low),
    "the ramp is a step at the low factor": lambda z, low, high: np.where(z > low, 1.0, 0.0),
    "the ramp is a step at the high factor": lambda z, low, high: np.where(z > high, 1.0, 0.0),
    "L is multiplied by the factors, not divided": lambda z, low, high: (z - 1 / low) / (1 / high - 1 / low),
    "L is multiplied by the high factor, and there is no ramp": lambda z, low, high: np.where(z * high > 1, 1.0, 0.0),
    "L is multiplied by the low factor, and there is no ramp": lambda z, low, high: np.where(z * low > 1, 1.0, 0.0),
    "the factors are exchanged": lambda z, low, high: (z - high) / (low - high),
    "the ramp is divided by the high factor": lambda z, low, high: (z - low) / high,
    "the ramp starts at 0": lambda z, low, high: z / high,
}


def _llama3_rules() -> Iterator[Rule]:
    """Yield rules of Llama 3: one departure in the ramp, or in what it mixes."""
    for words, mixes in (*((share, "") for share in SHARES), *(("", ramp) for ramp in RAMPS)):

        def of(o: dict[str, Any], words: str = words, mixes: str = mixes) -> Any:
            s, (plain, exponents, base) = o["scaling"], _plain(o)
            low, high = float(s.low_freq_factor), float(s.high_freq_factor)
            turns = s.original_length * plain / (2 * np.pi)
            share = np.where(turns >= low, 1.0, 0.0) if low == high and not words else SHARES[words](turns, low, high)
            return RAMPS[mixes](plain, 1 - np.clip(share, 0, 1), s.factor, base, exponents), 1.0

        yield Rule(words or mixes, of)


RULES: dict[type, Callable[[], Iterator[Rule]]] = {
    Linear: _fixed_rules, NTKAlpha: _fixed_rules, NTKAware: _fixed_rules, DynamicNTK: _length_rules, YaRN: _yarn_rules,
    Llama3: _llama3_rules,
}  # fmt: skip
LETTERS: dict[type, str] = {
    DynamicNTK: " (s is its factor, L its original length, n the length)",
    YaRN: " (s is its factor, L its original length)",
}


def _deviation(read: dict[type, Rule]) -> Deviation:
    def deviating(function: Function, dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **rest: Any) -> Any:
        frequencies, factor = function(dim, base=base, scaling=scaling, length=length, **rest)
        if type(scaling) not in read:
            return frequencies, factor
        right = rope_frequencies(dim, base=base, scaling=scaling, length=length)
        other = read[type(scaling)].of({"dim": dim, "base": base, "scaling": scaling, "length": length})
        return frequencies * (other[0] / right[0]), factor * (other[1] / right[1])

    said = [f"in {kind.__name__} {rule.words}{LETTERS.get(kind, ' (s is its factor)')}" for kind, rule in read.items()]
    return Deviation("", ", and ".join(said), {FREQUENCIES: around(deviating)})
