"""Frequencies, context extensions, sinusoids and slopes that are drawn at random are read as formulas that say them."""

import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from sample import stored
from sampling import few

from posref import rope_frequencies
from posref.conformance import Unsupported, check_call
from posref.conformance.calls import bind
from posref.conformance.diagnosis import combinations, extensions, frequencies
from posref.conformance.evidence.shared.formulas import KNOWN
from posref.conformance.evidence.tools.deviation import Deviation
from posref.scaling import DynamicNTK, Llama3, NTKAware, YaRN

EXPONENT = re.compile(r"base\^\((.+)/(\(.+?\)|d)\)$")


def told(function: Callable[..., Any], op: str, dtype: str = "float64") -> str:
    """Return the text of the diagnosis of a function."""
    found = check_call(function, op=op, experiments=0, dtype=dtype).operations[0].diagnosis
    return str(found["text"])


def spoken(text: str, d: int, base: float) -> Any:
    """Return the frequencies that a sentence describes."""
    found = re.search(r"frequency i is (?:base\^\()(.+)/(\([^()]+\)|d)\)[.,]", text)
    assert found, text
    exponent, below = (re.sub(r"(\d)([di(])", r"\1*\2", part.replace("mod", "%")) for part in found.groups())
    return [base ** (eval(exponent, {"i": i, "d": d}) / eval(below, {"d": d})) for i in range(d // 2)]


def drawn(seed: int) -> Callable[[int, float], Any]:
    """Return frequencies of a drawn slope, offset and denominator, or of a drawn index."""
    rng = np.random.default_rng(seed)
    slope, offset, more = rng.choice([2, 1, 4, -2]), rng.choice([0, 0, 1, 2, -1]), rng.choice([0, 0, -1, 1, 2])
    offset, more = (offset, 0) if rng.integers(2) else (0, more)  # two departures at most
    index = rng.choice([0, 1, 2]) if not (offset or more) else 0
    indices = (lambda i, n: i, lambda i, n: i // 2, lambda i, n: n - 1 - i)

    def of(d: int, base: float) -> Any:
        return base ** (-(slope * indices[index](np.arange(d // 2), d // 2) + offset) / (d + more))

    return of


@few(1, "seed", range(24))
@few(1, "op", ["rope_frequencies", "sinusoidal", "rope"])
def test_drawn_frequencies_are_read(op: str, seed: int) -> None:
    of = drawn(seed)

    def other(function: Any) -> Any:
        def wrong(dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **rest: Any) -> Any:
            if scaling is not None:
                raise Unsupported
            return np.asarray(of(dim, base)), 1.0

        return wrong

    def sinusoidal(positions: Any, dim: int, /, *, layout: str, base: float = 1e4, **options: Any) -> Any:
        if layout != "interleaved" or dim % 2 or options.get("endpoint") or options.get("scale", 1) != 1:
            raise Unsupported
        angles = np.asarray(positions, dtype=np.float64)[..., None] * of(dim, base)
        return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(*angles.shape[:-1], dim)

    wrong = sinusoidal if op == "sinusoidal" else Deviation("", "", {"rope_frequencies": other}).operations()[op]
    found = check_call(wrong, op=op, experiments=0, dtype="float64")
    text = "" if found.conformant else str((found.operations[0].diagnosis or {})["text"])
    if "frequency i is" not in text:  # the draw is the definition or a known mistake
        assert found.conformant or found.operations[0].diagnosis["names"] or "o known mistake " in text, text  # type: ignore[index]
        return
    for d, base in ((6, 100.0), (10, 1e4), (16, 30.0), (64, 5e5)):
        np.testing.assert_allclose(spoken(text, d, base), of(d, base), rtol=1e-12)


def test_formulas_say_what_they_compute() -> None:
    for formula in frequencies.formulas("d"):
        if EXPONENT.match(formula.words):
            for d, base in ((10, 100.0), (16, 7.0)):
                said = spoken(f"frequency i is {formula.words}.", d, base)
                np.testing.assert_allclose(said, formula.of(d, base, float(d)), rtol=1e-12, err_msg=formula.words)


def scaled(kind: type, of: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """Return frequencies with another rule for one type of record, and no other records."""

    def frequencies_of(dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **rest: Any) -> Any:
        if scaling is None:
            return rope_frequencies(dim, base=base)
        if type(scaling) is not kind:
            raise Unsupported
        return of({"dim": dim, "base": base, "scaling": scaling, "length": length})

    return frequencies_of


@pytest.mark.thorough
@few(1, "number", range(16))
@few(2, "kind", [DynamicNTK, YaRN, Llama3, NTKAware])
def test_a_drawn_rule_of_an_extension_is_read(kind: type, number: int) -> None:
    rules = list(extensions.RULES[kind]())
    rule = rules[np.random.default_rng(number).integers(len(rules))]
    with np.errstate(all="ignore"):
        report = check_call(scaled(kind, rule.of), op="rope_frequencies", experiments=0, dtype="float64")
        diagnosis = report.operations[0].diagnosis
        if report.conformant or diagnosis is None or diagnosis["names"]:
            return
        text = diagnosis["text"]
        said = [other for other in rules if f"in {kind.__name__} {other.words} (s is" in text]
        if not said:  # one wrong value, or numbers that are not finite, tell nothing
            assert "o known mistake " in text or " is " in text
            return
        for options in ({"dim": 12, "base": 1e4, "length": 300}, {"dim": 40, "base": 5e5, "length": 40}):
            record = next(s for s in SAMPLES if type(s) is kind)
            own = [other.of(options | {"scaling": record}) for other in (rule, *said)]
            assert any(np.allclose(own[0][0], f, equal_nan=True) and np.isclose(own[0][1], gain) for f, gain in own[1:]), text


SAMPLES = (DynamicNTK(3.5, 64), YaRN(factor=6, original_length=512, truncate=False), Llama3(6, 500, 2, 9), NTKAware(2.5))


@pytest.mark.thorough
@few(1, ("says", "slopes"), [
    ("2^(-max_bias (h - 1)/H) for every H", lambda n: 2.0 ** (-8 * np.arange(n) / n)),
    ("slopes are 2^-linspace(1, max_bias, H)", lambda n: 2.0 ** -np.linspace(1, 8, n)),
    ("slope h of H heads (h from 1) is 2^(-max_bias h/(H + 1)) for every H",
     lambda n: 2.0 ** (-8 * np.arange(1, n + 1) / (n + 1))),
    ("if slopes are negative, and slope h of H heads (h from 1) is 2^(-max_bias (h + 1)/H) for every H",
     lambda n: -(2.0 ** (-8 * np.arange(2, n + 2) / n))),
    ("slope h (from 1) is 2^((-max_bias/H)^h), a power of a power", lambda n: 2.0 ** ((-8 / n) ** np.arange(1, n + 1))),
])  # fmt: skip
@pytest.mark.parametrize("op", ["alibi_slopes", "alibi"])
def test_slopes_are_read(op: str, says: str, slopes: Callable[[int], Any]) -> None:
    def wrap(_: Any) -> Any:
        def other(heads: int, /, *, max_bias: float = 8, first: int = 0, count: int | None = None, **rest: Any) -> Any:
            if max_bias != 8:
                raise Unsupported
            return slopes(heads)[first:][:count]

        return other

    assert says in told(Deviation("", "", {"alibi_slopes": wrap}).operations()[op], op)


def sinusoids(first: Callable[[Any], Any], second: Callable[[Any], Any], *, zero: bool = False) -> Callable[..., Any]:
    """Return sinusoids of two waves, each of angles."""

    def sinusoidal(positions: Any, dim: int, /, *, layout: str, base: float = 1e4, **options: Any) -> Any:
        if layout != "interleaved" or dim % 2 or options.get("endpoint") or options.get("scale", 1) != 1:
            raise Unsupported
        p, i = np.asarray(positions, dtype=np.float64)[..., None], 2 * np.arange(dim // 2) / dim
        out = np.stack([first((p, base, i, dim)), second((p, base, i, dim))], axis=-1).reshape(*p.shape[:-1], dim)
        return np.where(p == 0, 0.0, out) if zero else out

    return sinusoidal


@pytest.mark.thorough
@few(1, ("says", "first", "second", "zero"), [
    ("the sine column of pair i is the sine of p base^(-4i/d) and the cosine column of pair i is the cosine of p "
     "base^(-(4i + 2)/d), and position 0 has zeros.",
     lambda a: np.sin(a[0] * a[1] ** (-2 * a[2])), lambda a: np.cos(a[0] * a[1] ** (-2 * a[2] - 2 / a[3])), True),
    ("the cosine column of pair i is the sine of p base^(-2i/d).",
     lambda a: np.sin(a[0] * a[1] ** -a[2]), lambda a: np.sin(a[0] * a[1] ** -a[2]), False),
    ("frequency i is base^(-4i/d), and positions are one too large.",
     lambda a: np.sin((a[0] + 1) * a[1] ** (-2 * a[2])), lambda a: np.cos((a[0] + 1) * a[1] ** (-2 * a[2])), False),
    ("if sines and cosines are exchanged, and positions are one too large.",
     lambda a: np.cos((a[0] + 1) * a[1] ** -a[2]), lambda a: np.sin((a[0] + 1) * a[1] ** -a[2]), False),
    ("if frequency i is base^(-4i/d), and sines and cosines are exchanged.",
     lambda a: np.cos(a[0] * a[1] ** (-2 * a[2])), lambda a: np.sin(a[0] * a[1] ** (-2 * a[2])), False),
    ("the result is multiplied by sqrt(d).",
     lambda a: a[3] ** 0.5 * np.sin(a[0] * a[1] ** -a[2]), lambda a: a[3] ** 0.5 * np.cos(a[0] * a[1] ** -a[2]), False),
])  # fmt: skip
def test_waves_are_read(says: str, first: Any, second: Any, zero: bool) -> None:
    assert says in told(sinusoids(first, second, zero=zero), "sinusoidal")


@pytest.mark.thorough
@few(1, "seed", range(20))
@few(1, "op", sorted(KNOWN))
def test_drawn_parts_of_a_formula_are_read(op: str, seed: int) -> None:
    """A combination that is said gives what the drawn one gives, in every stored call."""
    _, make, parts = KNOWN[op]
    public = {"window_rows": "window_bias"}.get(op, op)
    rng = np.random.default_rng(seed)

    def of(words: Sequence[str]) -> Callable[..., Any]:
        wrap = make(*(part[word] for part, word in zip(parts, words, strict=True)))
        return Deviation("", "", {op: wrap}).operations()[public]

    wrong = of([str(rng.choice(list(part))) for part in parts])
    report = check_call(wrong, op=public, experiments=0, dtype="float64")
    diagnosis = report.operations[0].diagnosis
    if report.conformant or diagnosis is None or diagnosis["names"] or "Matches the reference if" not in diagnosis["text"]:
        return
    texts = ((words, combinations.in_words(op, words)) for words in product(*parts))
    said = [words for words, text in texts if text and f"if {text}" in diagnosis["text"]]
    said.sort(key=lambda words: -len(combinations.in_words(op, words)))  # the text of one may begin another's
    for case in stored(public) if said else ():
        if case.kind == "value" and all(x.size for x in case.calls[0].inputs.values()):
            arrays, options = bind(public, case.calls[0].inputs, case.calls[0].params)
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(
                    of(said[0])(*arrays, **options), wrong(*arrays, **options), rtol=1e-6, err_msg=case.id
                )
