"""What a failing case asked, in words; where a file that cannot be run went wrong; and coverage."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from quality import named, report_on

import posref
from posref.conformance import PosrefError, check
from posref.conformance.diagnosis.places import common
from posref.conformance.model import Call, LoadedCase
from posref.conformance.summary.call_words import call_in_words
from posref.scaling import LongRoPE


def case(op: str, *calls: Call) -> LoadedCase:
    return LoadedCase(f"{op}/a/b", op, "value", "core", "", ("float32",), calls)


def test_a_call_is_told_by_what_it_does_not_leave_at_its_default() -> None:
    scaling = LongRoPE((1.0, 1.1, 1.2, 1.3, 1.4), (2.0,) * 5, 4096, factor=32.0)
    arrays = {"positions": np.asarray([7, 2, 4095]), "x": np.zeros((2, 3, 10))}
    call = Call({"base": 500000.0, "layout": "half", "scaling": scaling, "inverse": False}, arrays)
    assert call_in_words(case("rope", call)) == (
        "layout=half, base=500000, scaling=LongRoPE(short_factor=(1, 1.1, 1.2, 1.3, ... 5 in all), "
        "long_factor=(2, 2, 2, 2, ... 5 in all), original_length=4096, factor=32), x (2, 3, 10), positions (3,) from 2 to 4095"
    )


def test_calls_of_a_sequence_are_told_one_by_one() -> None:
    places = {"q_positions": np.asarray([4]), "k_positions": np.zeros(0)}
    calls = [Call({"heads": heads, "form": "causal"}, places) for heads in (2, 3)]
    assert call_in_words(case("alibi", *calls)) == (
        "call 1: heads=2, form=causal, q_positions (1,) at 4, k_positions (0,); "
        "call 2: heads=3, form=causal, q_positions (1,) at 4, k_positions (0,)"
    )


def test_failing_cases_alone_have_their_call_in_the_report() -> None:
    report = report_on(named("alibi_sign"))
    for found in report.to_json()["cases"]:
        assert bool(found["call"]) == (found["kind"] != "reject" and found["verdict"] == "fail"), found["id"]


@pytest.mark.thorough
def test_coverage_counts_every_case_once_for_each_option() -> None:
    rope = SimpleNamespace(rope=lambda x, p, /, *, layout, base: posref.rope(x, p, layout=layout, base=base))
    report = check(rope, op="rope")
    [operation] = report.operations
    for axis in {row["axis"] for row in operation.coverage} - {"positions"}:
        asked = sum(row["asked"] for row in operation.coverage if row["axis"] == axis)
        assert asked >= sum(operation.counts.values()), axis  # a case of several calls may have several words
    half = next(row for row in operation.coverage if (row["axis"], row["value"]) == ("layout", "half"))
    assert half["asked"] > half["answered"] == half["passed"] > 0


def test_a_file_that_cannot_be_run_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "library_of_mine.py").write_text("a = {}\nb = a['b']\n")
    file = tmp_path / "target.py"
    file.write_text("import library_of_mine\n")
    with pytest.raises(PosrefError, match=r"target\.py: running it raised KeyError: 'b' \(.*library_of_mine\.py, line 2\)"):
        check(str(file))


@pytest.mark.parametrize("wrong", [True, False])
def test_no_values_have_nothing_in_common(wrong: bool) -> None:
    """A judge can prove a value wrong that the bounds of the diagnosis leave open."""
    seen = SimpleNamespace(call=0, wrong=np.full(3, wrong), observed=np.full(3, np.nan), expected=np.ones(3))
    question = SimpleNamespace(failed=True, op="rope", dtype="float32", calls=[SimpleNamespace(inputs={})], observations=[seen])
    assert common([question]) == (" The wrong values are NaN." if wrong else "")  # type: ignore[list-item]
