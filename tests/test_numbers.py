"""A number that explains all failures is fitted, in its own digits; one that is no other than the right one is not said."""

import re
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sampling import QUARTER, share

import posref
from posref.conformance import check, check_call
from posref.conformance.diagnosis import hypotheses, numbers
from posref.conformance.diagnosis.hypotheses import Budget
from posref.scaling import YaRN
from posref.testing import assert_conforms

Rope = Callable[..., Any]


def told(function: Any, op: str, **options: Any) -> str:
    """Return the diagnosis of a function."""
    found = check_call(function, op=op, **options).operations[0].diagnosis
    return str(found["text"])


@pytest.mark.thorough
def test_a_gain_within_what_rounding_may_do_is_not_said() -> None:
    """Two roundings to float16 in place of one; the largest value of a case is 1.0004 times what is expected."""

    def apply_rope(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
        pairs = cos.shape[-1]
        wide, half = np.float32, np.float16
        if layout != "half":
            raise NotImplementedError
        a, b, rest = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
        first = a.astype(wide) * cos + (-b.astype(wide) * sin).astype(half)
        second = b.astype(wide) * cos + (a.astype(wide) * sin).astype(half)
        return np.concatenate([first.astype(half), second.astype(half), rest], -1)

    text = told(apply_rope, "apply_rope", dtype="float16", claim="fused")
    assert "every value" not in text


def test_a_budget_that_is_spent_yields_nothing_more_and_says_so() -> None:
    budget = Budget(60)
    assert list(budget.within("ab")) == ["a", "b"]
    assert not budget.short
    budget.meter.done += 60
    assert list(budget.within("ab")) == []
    assert budget.short


@pytest.mark.thorough(dear=True)
def test_work_is_counted_in_values_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that does not come to its end ends at the same mistake where each second is ten."""

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        return np.tanh(posref.sinusoidal(positions, dim, **options))

    monkeypatch.setattr(hypotheses, "OF_A_CALL", 100 * hypotheses.OF_A_CALL)
    slow = told(sinusoidal, "sinusoidal")
    assert "that was tried" in slow
    monkeypatch.setattr(hypotheses, "process_time", lambda: 10 * process_time())
    assert told(sinusoidal, "sinusoidal") == slow


def test_a_diagnosis_ends_after_many_seconds_whatever_work_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget()
    assert not budget.spent()
    monkeypatch.setattr(hypotheses, "process_time", lambda: process_time() + hypotheses.SECONDS)
    assert any(budget.spent() for _ in range(33))  # not every look at the work is one at the clock
    assert any(budget.part(0).spent() for _ in range(33))


@pytest.mark.thorough
def test_a_report_without_time_says_that_not_every_mistake_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "spent", lambda self: setattr(self, "short", True) or True)
    text = told(lambda heads, /, **options: posref.alibi_slopes(heads, **options) * 2, "alibi_slopes")
    assert text.endswith("No known mistake that was tried gives these values.")


def test_a_relation_makes_no_whole_number_so_large_that_a_definition_makes_a_list_of_it() -> None:
    """The definition of `t5_buckets` makes a list of `max_distance` numbers."""
    wrap = numbers._changed("t5_buckets", "max_distance", lambda v: v * v)["t5_buckets"]
    given = wrap(lambda *args, **options: options["max_distance"])
    assert given(np.arange(3), max_distance=128) == 128**2
    assert given(np.arange(3), max_distance=1000) == 1000
    assert given(np.arange(3)) == 128**2


def test_the_work_of_a_report_is_shared_by_all_operations() -> None:
    budget = Budget()
    assert budget.part(0).left == budget.left
    assert budget.part(4).left == budget.left - 4 * hypotheses.RESERVE
    assert Budget(1000).part(99).left == 10
    budget.part(0).meter.done += 1000
    assert budget.left == hypotheses.WORK - 1000


def test_an_operation_for_which_no_time_is_left_is_said_to_be_untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "spent", lambda self: True)
    wrong = {
        op: lambda *args, op=op, **options: getattr(posref, op)(*args, **options) + 1 for op in ("logn_scale", "deberta_rows")
    }
    first, second = (o.diagnosis or {} for o in check(SimpleNamespace(**wrong), op=list(wrong)).operations)
    untried = "not tried, for want of time: other operations fail too. Check this one alone: --op "
    assert sum(str(d["text"]).startswith(untried) for d in (first, second)) == 1
    alone = SimpleNamespace(dtypes=("float32", "float64"), logn_scale=wrong["logn_scale"])
    _, other = (o.diagnosis or {} for o in check(alone, op="logn_scale").operations)
    assert other["text"].startswith(
        "not tried, for want of time: other dtypes fail too. Check this one alone: --op logn_scale --dt"
    )


# ---- rotations: a black box that is wrong in one number, or in one beside a known mistake ------------------------------------
def turned(
    x: Any, positions: Any, /, *, gain: float = 1.0, scale: float = 1.0, offset: float = 0.0, fixed: Any = None, **options: Any
) -> Any:
    """Rotate with positions ``scale (p + offset)``, a gain, and options that are fixed whatever is asked."""
    options |= fixed or {}
    kept = options.get("rotary_dim") or x.shape[-1]
    out = np.array(posref.rope(x.astype(np.float64), scale * (positions + offset), **options))
    out[..., :kept] *= gain
    return out


def black_box(**changes: Any) -> Rope:
    """Return a rope in float32 that is wrong in some way."""

    def rope(x: Any, positions: Any, /, *, layout: str, base: float, rotary_dim: Any = None, inverse: bool = False) -> Any:
        asked = {"layout": layout, "base": base, "rotary_dim": rotary_dim, "inverse": inverse}
        return turned(x, positions, **asked, **changes).astype(x.dtype)

    return rope


SCENARIOS: dict[str, tuple[dict[str, Any], str]] = {
    "base": ({"fixed": {"base": 123456.0}}, "base is 123456 (passed: 10000, "),
    "base of Llama 3": ({"fixed": {"base": 5e5}}, "base is 500000 (passed: 10000, "),
    "gain": ({"gain": 0.9}, "the gain is 0.9 times what it should be"),
    "scale": ({"scale": 2.0}, "frequency i is 2 base^(-2i/d)."),
    "divided": ({"scale": 1 / 3}, "positions are divided by 3"),
    "offset": ({"offset": 7.0}, "positions are offset by 7"),
    "far offset": ({"offset": -1000.0}, "positions are offset by -1000"),
    "half an offset": ({"offset": 0.5}, "positions are offset by 0.5"),
    "other way, faster": ({"scale": -2.0}, "frequency i is 2 base^(-2i/d), and the rotation has the wrong direction: "),
    "partial": ({"fixed": {"rotary_dim": 6}}, "rotary_dim is 6 (passed: "),
    "layout and base": (
        {"fixed": {"layout": "interleaved_to_half", "base": 2e4}},
        "layout is always 'interleaved_to_half' (layout-interleaved-to-half), and base is 20000 (passed: ",
    ),
}


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("name", share(SCENARIOS, QUARTER))
def test_the_number_of_a_rotation_is_recovered(name: str) -> None:
    """From float32 outputs; and nothing is said that was not changed."""
    changes, words = SCENARIOS[name]
    assert told(black_box(**changes), "rope").startswith(f"Matches the reference if {words}")


@pytest.mark.thorough
def test_a_number_is_found_beside_a_known_mistake() -> None:
    def apply_rope(x: Any, cos: Any, sin: Any, /, *, layout: str, inverse: bool = False) -> Any:
        out = np.array(posref.apply_rope(x, cos, -sin, layout=layout, inverse=inverse))
        out[..., : 2 * cos.shape[-1]] *= np.float32(0.75)
        return out

    assert "(sign-flipped), and the gain is 0.75 times what it should be." in told(apply_rope, "apply_rope")


def test_an_offset_is_found_in_a_single_call() -> None:
    x = np.random.default_rng(0).standard_normal((2, 24, 64)).astype(np.float32)
    options = {"layout": "half", "base": 1e4}
    with pytest.raises(AssertionError, match=r"if positions are offset by 5\."):
        assert_conforms("rope", posref.rope(x, np.arange(24) + 5, **options), x, np.arange(24), **options)


def roots(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    """Angles that no scale and offset give."""
    return turned(x, np.sqrt(np.abs(positions)), layout="interleaved", base=base, gain=0.5).astype(x.dtype)


def frequencies_of_no_base(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    scaling = posref.scaling.Llama3(factor=8, original_length=64)
    return posref.rope(x, positions, layout=layout, base=base, scaling=scaling)


def noise(x: Any, positions: Any, /, **options: Any) -> Any:
    return np.random.default_rng(1).standard_normal(x.shape).astype(x.dtype)


def nothing_finite(x: Any, positions: Any, /, **options: Any) -> Any:
    return np.full_like(x, np.nan)


def one_lane_scaled(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    out = np.array(posref.rope(x, positions, layout=layout, base=base))
    out[..., 0] *= 1.5
    return out


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(
    "function", [roots, frequencies_of_no_base, noise, nothing_finite, one_lane_scaled], ids=lambda f: f.__name__
)
def test_nothing_is_said_of_what_no_number_gives(function: Rope) -> None:
    text = told(function, "rope")
    assert re.search(r"o known mistake [a-z ]*gives these values\.$", text)
    assert "the reference if" not in text


@pytest.mark.thorough
def test_frequencies_may_grow() -> None:
    """The minus of the exponent is lost: the base is one over that asked for."""
    assert "frequency i is base^(2i/d)." in told(
        lambda x, positions, /, *, layout, base: turned(x, positions, layout=layout, base=1 / base).astype(x.dtype), "rope"
    )


@pytest.mark.thorough(dear=True)
def test_zeros_are_told_as_such() -> None:
    assert "if x is treated as 0." in told(lambda x, positions, /, **options: 0 * x, "rope")


def test_a_flag_of_a_record_is_the_opposite_of_what_is_asked() -> None:
    def rope_frequencies(dim: int, /, *, base: float, scaling: Any = None, **rest: Any) -> Any:
        if isinstance(scaling, YaRN):
            scaling = replace(scaling, truncate=not scaling.truncate)
        return posref.rope_frequencies(dim, base=base, scaling=scaling, **rest)

    text = told(rope_frequencies, "rope_frequencies", experiments=0)
    assert "YaRN's truncate is the opposite of the value passed" in text


def test_errors_lead_where_most_cases_end_in_one() -> None:
    """The few cases that have values are wrong otherwise."""

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        if np.ndim(positions) > 1:
            return -posref.sinusoidal(positions, dim, **options)
        raise ValueError("no rows")

    text = told(sinusoidal, "sinusoidal", experiments=0)
    assert re.match(r"\d+ cases ended in an error: ValueError: no rows \(.*\)\. Of the others: ", text), text


@pytest.mark.thorough
def test_outputs_that_are_exchanged_are_named_beside_a_mistake() -> None:
    """Cosines and sines are in each other's place, and cells are counted from one."""

    def axial_table(positions: Any, /, *arrays: Any, **options: Any) -> Any:
        cos, sin = posref.axial_table(np.asarray(positions) + 1, *arrays, **options)
        return sin, cos

    assert "cos and sin are exchanged, and cells are counted from one" in told(axial_table, "axial_table", experiments=0)
