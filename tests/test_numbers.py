"""A number that explains all failures is fitted, in its own digits; one that is no other than the right one is not said."""

from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import posref
from posref.conformance import check, check_call
from posref.conformance.diagnosis import hypotheses, numbers
from posref.conformance.diagnosis.hypotheses import Budget


def told(function: Any, op: str, **options: Any) -> str:
    """Return the diagnosis of a function."""
    found = check_call(function, op=op, **options).operations[0].diagnosis
    assert found is not None
    return str(found["text"])


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


def test_work_is_counted_in_values_whatever_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that does not come to its end ends at the same mistake where each second is ten."""

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        return np.tanh(posref.sinusoidal(positions, dim, **options))

    monkeypatch.setattr(hypotheses, "OF_A_CALL", 100 * hypotheses.OF_A_CALL)
    slow = told(sinusoidal, "sinusoidal")
    assert "for want of time" in slow
    monkeypatch.setattr(hypotheses, "process_time", lambda: 10 * process_time())
    assert told(sinusoidal, "sinusoidal") == slow


def test_a_diagnosis_ends_after_many_seconds_whatever_work_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget()
    assert not budget.spent()
    monkeypatch.setattr(hypotheses, "process_time", lambda: process_time() + hypotheses.SECONDS)
    assert budget.spent()
    assert budget.part(0).spent()


def test_a_report_without_time_says_that_not_every_mistake_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "spent", lambda self: setattr(self, "short", True) or True)
    text = told(lambda heads, /, **options: posref.alibi_slopes(heads, **options) * 2, "alibi_slopes")
    assert text.startswith("unexplained")
    assert "Not every mistake was tried, for want of time." in text


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
