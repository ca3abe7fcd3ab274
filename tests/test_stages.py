"""Frequencies that are wrong beside a known mistake of the rotation or of positions are read together."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.conformance import Unsupported, check_call
from posref.testing import assert_conforms


def _right(a: Any, b: Any, c: Any, s: Any) -> tuple[Any, Any]:
    return a * c - b * s, b * c + a * s


def _rope(
    own: float | None = None,
    shift: int = 0,
    frequency: Callable[[Any, int], Any] = lambda i, d: 2 * i / d,
    turn: Callable[[Any, Any, Any, Any], tuple[Any, Any]] = _right,
) -> Callable[..., Any]:
    def rope(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        if layout != "half":
            raise Unsupported(layout)
        d = x.shape[-1]
        angles = (np.asarray(positions, np.float64)[..., None] + shift) * (own or base) ** -frequency(np.arange(d // 2), d)
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate(turn(a, b, np.cos(angles), np.sin(angles)), -1).astype(x.dtype)

    return rope


def _in_place(a: Any, b: Any, c: Any, s: Any) -> tuple[Any, Any]:
    first = a * c - b * s
    return first, b * c + first * s


PAIRS = {
    "another base": (_rope(5e5, turn=_in_place), "frequency i is 500000^(-2i/d)", "in-place-update"),
    "denominator": (
        _rope(frequency=lambda i, d: 2 * i / (d - 1), turn=lambda a, b, c, s: (a * c + b * s, b * c + a * s)),
        "frequency i is base^(-2i/(d - 1))",
        "both-sums",
    ),
    "positions": (_rope(frequency=lambda i, d: 2 * i / (d + 2), shift=1), "(d + 2)", "positions-plus-1"),
}


@pytest.mark.thorough
@few(1, "name", PAIRS)
def test_frequencies_and_a_known_mistake_are_named_together(name: str) -> None:
    function, formula, mistake = PAIRS[name]
    found = check_call(function, op="rope", dtype="float32", experiments=0).operations[0].diagnosis
    text = str((found or {})["text"])
    assert formula in text
    assert mistake in text


@pytest.mark.thorough
def test_exchanged_words_of_three_are_named() -> None:
    def rope(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        other: Any = {"half": "interleaved", "interleaved": "half", "interleaved_to_half": "interleaved_to_half"}[layout]
        return posref.rope(x, positions, layout=other, base=base)

    found = check_call(rope, op="rope", dtype="float32", experiments=0).operations[0].diagnosis
    assert "layout 'half' and 'interleaved' are exchanged" in str((found or {})["text"])


def test_a_few_pairs_of_one_call_are_a_place() -> None:
    rng = np.random.default_rng(1)
    x, positions = rng.normal(size=(2, 24, 64)).astype("float32"), np.arange(24)
    out = posref.rope(x, positions, layout="half", base=1e4)
    out[..., [8, 9, 40, 41]] = x[..., [8, 9, 40, 41]]
    with pytest.raises(AssertionError, match=r"Only pairs 8 to 9 are wrong\. There .*\(not-rotated\)"):
        assert_conforms("rope", out, x, positions, layout="half", base=1e4)


@pytest.mark.thorough
@pytest.mark.parametrize("offset", [3, -7])
def test_an_offset_of_the_queries_of_one_call_is_named(offset: int) -> None:
    q, k = np.arange(40, 48), np.arange(48)
    out = posref.alibi(q + offset, k, heads=8, form="causal")
    with pytest.raises(AssertionError, match=f"for queries, positions are offset by {offset}"):
        assert_conforms("alibi", out, q, k, heads=8, form="causal")


def test_a_word_that_is_taken_for_another_is_named() -> None:
    def mrope(x: Any, positions: Any, /, *, sections: Any, arrangement: Any, layout: Any, base: float) -> Any:
        if arrangement not in ("chunked", "interleaved"):
            raise Unsupported(arrangement)
        word: Any = "round_robin" if arrangement == "interleaved" else arrangement
        return posref.mrope(x, positions, sections=sections, arrangement=word, layout=layout, base=base)

    found = check_call(mrope, op="mrope", dtype="float32", experiments=0).operations[0].diagnosis
    assert "arrangement 'interleaved' is taken for 'round_robin'" in str((found or {})["text"])


@pytest.mark.thorough
def test_exchanged_words_beside_a_known_mistake_are_named() -> None:
    def kerple(q: Any, k: Any, r1: Any, r2: Any, /, *, form: str) -> Any:
        apart = np.maximum(np.asarray(q, np.float64)[..., :, None] - np.asarray(k)[..., None, :], 0)[..., None, :, :]
        p, a = (np.asarray(r, np.float64)[:, None, None] for r in (r1, r2))
        out = {"power": -p * np.log(1 + a * apart), "log": -p * apart**a, "weight": np.exp(-p * apart**a)}[form]
        return out.astype(r1.dtype)

    found = check_call(kerple, op="kerple", dtype="float32", experiments=0).operations[0].diagnosis
    assert "form 'log' and 'power' are exchanged" in str((found or {})["text"])
    assert "kerple-future-zero" in str((found or {})["text"])
