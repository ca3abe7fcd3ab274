r"""
Reads ALiBi's slopes from outputs: which formula of the head's number gives them.

.. math:: m_h = b^{-\beta (h + c)/(H + e)}

for all heads alike, or for the power of two below H with other slopes for the rest. A formula that gives the slopes of some
failing cases is judged on all cases, as every other explanation is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from posref.core.composition import reaches

from ..evidence.shared.formulas import SLOPES
from ..evidence.tools.deviation import Deviation, Function, around
from .frequencies import Reals
from .hypotheses import Hypothesis, Question, quiet

SHOWN = 3  # formulas that are said, where stored cases do not tell them apart
PROBES = 3  # failing cases, of which all values must be those of a formula
SHARD, USUAL = {"first", "count"}, 8
Slopes = Callable[[int, float], Any]  # of the number of heads and the largest bias
FIRSTS = {"h": 0.0, "(h - 1)": -1.0, "(h + 1)": 1.0, "(h - 1/2)": -0.5}
BELOWS = {"H": 0, "(H + 1)": 1, "(H - 1)": -1}
BASES = {"2": 2.0, "e": np.e, "10": 10.0}
BIASES: dict[str, Callable[[int, float], float]] = {
    "{b}": lambda heads, b: b, "({b}/2)": lambda heads, b: b / 2, "2 {b}": lambda heads, b: 2 * b, "H": lambda heads, b: heads,
    "1": lambda heads, b: 1.0,
}  # fmt: skip
EXTRAS: dict[str, Callable[[Reals, int], Reals]] = {  # of the slopes of 2P heads, and how many heads are beyond P
    "": lambda s, n: s[0::2][:n], "the extra heads repeat the slopes of P heads": lambda s, n: s[1::2][:n],
    "the extra heads take places 1, 3, ... of 2P heads from the end": lambda s, n: s[0::2][::-1][:n],
    "the extra heads take the last places of 2P heads": lambda s, n: s[len(s) - n :],
    "the extra heads take the first places of 2P heads": lambda s, n: s[:n],
    "the extra heads have the slopes of places P + 1, ... of 2P heads": lambda s, n: s[len(s) // 2 :][:n],
}  # fmt: skip


def candidates(questions: Sequence[Question]) -> list[Deviation]:
    """Return the formula of slopes that failing cases show, as a mistake; none if they show none."""
    op = questions[0].op
    if op != SLOPES and SLOPES not in reaches(op):
        return []
    whole = [q for q in questions if q.failed and SHARD.isdisjoint(q.calls[0].params)]  # what ignores shards has slopes too
    whole.sort(key=lambda q: -q.calls[0].params.get("heads", 0))
    probes = whole[:PROBES] + [q for q in whole[PROBES:] if q.calls[0].params.get("max_bias", USUAL) != USUAL][:1]
    every = (*_others(), *_formulas())
    if probes and all(np.all(o.observed * o.expected <= 0) for q in probes for o in q.observations):
        every = (*_others(), *map(_negative, every))
    others = any(q.calls[0].params.get("max_bias", USUAL) != USUAL for q in probes)
    for fixed in (False, True) if others else (False,):
        by_slopes: dict[tuple[float, ...], Deviation] = {}
        for words, slopes in every:
            deviation = _deviation(words, slopes, fixed=fixed)
            hypothesis = Hypothesis(deviation, probes)
            if all(hypothesis.score(n) <= 1 for n in range(len(probes))) and Hypothesis(deviation, questions).fits():
                with quiet():
                    by_slopes.setdefault(tuple(np.round([*slopes(11, 6.5), *slopes(37, 9.0)], 9).tolist()), deviation)
        if by_slopes:
            break
    return list(by_slopes.values())[:SHOWN]


def _formulas() -> Iterator[tuple[str, Slopes]]:
    """Yield formulas in words and as functions, those nearest to the definition first."""
    for (h, first), (below, more), (base, number), (bias, largest) in sorted(
        product(FIRSTS.items(), BELOWS.items(), BASES.items(), BIASES.items()),
        key=lambda one: sum(part[0] not in ("h", "H", "2", "{b}") for part in one),
    ):

        def of(heads: int, b: float, c: float = first, e: int = more, n: float = number, size: Any = largest) -> Reals:
            return np.asarray(n ** (-size(heads, b) * (np.arange(1, heads + 1) + c) / (heads + e)))

        power = f"{base}^(-{bias.format(b='max_bias')} {h}/{below})".replace("(-1 ", "(-").replace("H h/H", "h")
        yield f"slope h of H heads (h from 1) is {power} for every H", of
        for extra in EXTRAS:
            yield (
                f"slope h of H heads (h from 1) is {power} for powers of two{extra and f', and {extra}'}",
                _with_extras(of, extra),
            )


def _with_extras(of: Slopes, extra: str) -> Slopes:
    def slopes(heads: int, b: float) -> Reals:
        below = 1 << heads.bit_length() - 1
        return np.concatenate([of(below, b), EXTRAS[extra](of(2 * below, b), heads - below)])

    return slopes


def _negative(plain: tuple[str, Slopes]) -> tuple[str, Slopes]:
    words, slopes = plain
    return f"slopes are negative, and {words}", lambda heads, b: -slopes(heads, b)


def _odd_first(heads: int, b: float) -> Reals:
    """Return the slopes at odd places and then at even ones, of the next power of two."""
    whole = 1 << (heads - 1).bit_length()
    slopes = 2.0 ** (-b * np.arange(1, whole + 1) / whole)
    return slopes if whole == heads else np.concatenate([slopes[0::2], slopes[1::2]])[:heads]


def _others() -> Iterator[tuple[str, Slopes]]:
    """Yield formulas of other kinds."""
    right = _with_extras(lambda heads, b: 2.0 ** (-b * np.arange(1, heads + 1) / heads), "")
    others: dict[str, Slopes] = {
        "slopes are 2^-linspace(1, max_bias, H)": lambda n, b: 2.0 ** -np.linspace(1, b, n),
        "slopes are 2^-linspace(0, max_bias, H)": lambda n, b: 2.0 ** -np.linspace(0, b, n),
        "all heads have the mean of the slopes": lambda n, b: np.full(n, float(np.mean(right(n, b)))),
        "all heads have the first slope": lambda n, b: np.full(n, right(n, b)[0]),
        "slope h (from 1) is 2^((-max_bias/H)^h), a power of a power": lambda n, b: 2.0 ** ((-b / n) ** np.arange(1, n + 1)),
        "slope h of H heads (h from 1) is h/H": lambda n, b: np.arange(1, n + 1) / n,
        "slope h (from 1) is 1/h": lambda n, b: 1.0 / np.arange(1.0, n + 1),
        "slope h of H heads (h from 1) is 1 - (h - 1)/H": lambda n, b: 1 - np.arange(n) / n,
        "slope h (from 1) is 1/2^h": lambda n, b: 2.0 ** -np.arange(1, n + 1),
        "slopes are their own logarithms: the exponents": lambda n, b: np.log2(right(n, b)),
        "slopes have places 1, 3, ... of 2P heads, then places 2, 4, ..., where H is not a power of two": _odd_first,
        "slopes are linspace(1, 0) in H steps": lambda n, b: np.linspace(1, 0, n),
        "slopes are already negative": lambda n, b: -right(n, b),
    }
    yield from others.items()


def _deviation(words: str, of: Slopes, *, fixed: bool) -> Deviation:
    """Return slopes of a formula as a mistake; with `fixed`, max_bias is always the usual one."""

    def deviating(
        function: Function, heads: int, /, *, max_bias: float = USUAL, first: int = 0, count: int | None = None, **rest: Any
    ) -> Any:
        right = function(heads, max_bias=max_bias, first=first, count=count, **rest)
        return np.asarray(of(heads, USUAL if fixed else max_bias))[first:][:count] + 0 * right

    return Deviation("", words + (f", and max_bias is always {USUAL}" if fixed else ""), {SLOPES: around(deviating)})
