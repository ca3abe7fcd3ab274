"""The forms of a report: its figures' numbers, Markdown, JUnit and the badge."""

import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from planting import written
from quality import named
from reporting import case, document, every_verdict, hostile, of_reference, of_the_example, operation, unfinished
from rich.console import Console
from sampling import few

import posref
from posref.conformance import check, judge
from posref.conformance.accuracy import OF_DTYPE
from posref.conformance.model import BAD, Answer, Call, CaseResult, LoadedCase, Operation
from posref.conformance.reports import html, summaries, terminal
from posref.conformance.reports.document import state
from posref.conformance.reports.report import Report
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.suite.schemas import validate
from posref.conformance.summary import curves
from posref.conformance.targets.base import PROCESSES
from posref.conformance.vocabulary import axes
from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
FORMS = (summaries.markdown, summaries.junit, summaries.badge, html.render)


@pytest.fixture(scope="module")
def broken() -> dict[str, Any]:
    return of_the_example().to_json()


@pytest.fixture(scope="module")
def part_of_itself() -> dict[str, Any]:
    """One operation of the reference: a plain run does not check them all."""
    return of_reference(dtype="float32", op="rope").to_json()


# The numbers behind the figures


@given(error=st.floats(0) | st.just(float("nan")), width=st.floats(0, allow_infinity=False))
def test_a_ratio_is_above_one_just_where_an_error_is_beyond_its_tolerance(error: float, width: float) -> None:
    ratio = judge.ratios(np.asarray([error]), np.asarray([width]))[0]
    assert (ratio > 1) == (not error <= width)
    assert not np.isnan(ratio)


@pytest.mark.thorough(dear=True)
def test_every_operation_has_a_map_and_those_with_positions_a_curve() -> None:
    itself = of_reference(dtype="float32").to_json()
    validate("report", itself, Path("report.json"))
    for op in itself["operations"]:
        with_places = any(
            axes.places(op["op"], call, name) is not None
            for group in load_groups(INSTALLED, ops=(op["op"],))
            for entry in group.cases
            if entry.kind == "value" and op["dtype"] in entry.dtypes
            for call in entry.calls
            for name in call.expected
        )
        assert op["heat"] is not None, op["op"]
        assert bool(op["curve"]) == with_places, op["op"]
    assert {op["op"] for op in itself["operations"]} == set(REGISTRY)
    assert any(op["curve"] for op in itself["operations"])


@pytest.mark.thorough(dear=True)
def test_a_curve_is_beyond_its_bounds_where_the_cases_fail(broken: dict[str, Any]) -> None:
    for op in broken["operations"]:
        beyond = [p["position"] for p in op["curve"] if not float(p["ratio"]) <= 1]
        assert min(beyond, default=None) == op["first_failing_position"]
        assert [p["position"] for p in op["curve"]] == sorted({p["position"] for p in op["curve"]})
        for point in op["curve"]:
            assert {"angle64", "angle32"} <= set(point["bounds"]) <= set(OF_DTYPE["float32"])
            if isinstance(point["error"], float):
                assert (point["error"] > point["bounds"]["angle32"]) == (float(point["ratio"]) > 1)
    assert {op["op"]: op["first_failing_position"] for op in broken["operations"]}["rope"] == 2049


def fill(values: Callable[[Call], np.ndarray], calls: list[Call], op: str = "rope") -> Operation:
    """Return an operation filled from answers that `values` computes."""
    result = Operation(op, "float32", "angle32", [])
    answers = []
    for k, call in enumerate(calls):
        entry = LoadedCase(f"{op}/made/{k}", op, "value", "core", "", ("float32",), (call,))
        answers.append(Answer(entry, "float32", [{"out": values(call)}]))
    curves.draw(result, answers)
    return result


def made(positions: np.ndarray, width: int, bound: float = 1e-7) -> Call:
    """Return a call of rope that expects zeros, all within `bound`."""
    shape = (*positions.shape, width)
    widths = {c: {"out": np.full(shape, bound * scale)} for c, scale in (("angle64", 0.25), ("angle32", 1.0))}
    return Call({}, {"x": np.zeros(shape), "positions": positions}, {"out": np.zeros(shape)}, {}, widths)


def test_a_curve_has_the_worst_of_all_values_one_by_one() -> None:
    """A value beyond its bound is worse than one that errs more within a wider bound."""
    rng = np.random.default_rng(3)
    calls = [made(rng.integers(-9, 10, size), 3, bound) for size, bound in (((4, 5), 1e-7), ((6,), 5e-7), ((2, 1, 4), 1e-7))]
    values = [rng.choice([0.0, 1e-8, 9e-8, 1.5e-7, 4e-7, np.nan], call.expected["out"].shape) for call in calls]
    drawn = iter(values)
    result = fill(lambda call: next(drawn), calls)
    kept = {}
    for k, (call, value) in enumerate(zip(calls, values, strict=True)):
        bound = call.widths["angle32"]["out"]
        for at in np.ndindex(value.shape):
            error = np.inf if np.isnan(value[at]) else value[at]
            entry = (error > bound[at], error, bound[at], -k)
            place = abs(int(call.inputs["positions"][at[:-1]]))
            kept[place] = max(kept.get(place, entry), entry)
    found = [(p["position"], float(p["error"]), p["bounds"]["angle32"], p["case"]) for p in result.curve]
    assert all(p["bounds"]["angle64"] == 0.25 * p["bounds"]["angle32"] for p in result.curve)
    assert found == [(float(p), kept[p][1], kept[p][2], f"rope/made/{-kept[p][3]}") for p in sorted(kept)]


def test_what_is_not_a_number_is_the_worst_and_json_holds_it() -> None:
    result = fill(lambda call: np.asarray([[0.0, 9.0], [np.nan, 0.0]]), [made(np.asarray([1, 2]), 2)])
    assert [(p["position"], p["ratio"]) for p in result.curve] == [(1.0, pytest.approx(9e7)), (2.0, "inf")]
    assert result.heat["values"] == [[0.0, 9e7], ["inf", 0.0]]
    json.dumps([result.curve, result.heat], allow_nan=False)


def test_figures_are_bounded_and_reduce_by_the_maximum() -> None:
    positions = np.arange(3000) ** 2
    errors = np.full((3000, 500), 1e-8)
    errors[1234, 321] = 4.5e-7
    result = fill(lambda call: errors, [made(positions, 500)])
    assert len(result.curve) <= curves.POINTS
    assert [p["position"] for p in result.curve if p["ratio"] > 1] == [1234.0**2]
    heat = result.heat
    labels = (len(heat["row_labels"]), len(heat["column_labels"]))
    assert np.asarray(heat["values"]).shape == (curves.ROWS, curves.COLUMNS) == labels
    (row, column), *others = np.argwhere(np.asarray(heat["values"]) > 1).tolist()
    assert not others
    for label, place in ((heat["row_labels"][row], 1234**2), (heat["column_labels"][column], 321)):
        low, high = (int(part) for part in label.split(" to "))
        assert low <= place <= high
    assert heat["values"][row][column] == 4.5


def test_a_map_never_rounds_a_value_beyond_its_bound_to_one_within() -> None:
    result = fill(lambda call: np.asarray([[1.0004e-7, 0.9999e-7]]), [made(np.asarray([1]), 2)])
    assert result.heat["values"] == [[1.01, 1.0]]


def test_rows_without_one_position_are_named_by_their_index() -> None:
    expected = np.zeros((2, 3, 2))
    widths = {"angle32": {"out": np.ones((2, 3, 2))}, "angle64": {"out": np.ones((2, 3, 2))}}
    call = Call({}, {}, {"out": expected}, {}, widths)
    result = fill(lambda call: expected + np.arange(12.0).reshape(2, 3, 2), [call], op="apply_rope")
    assert result.curve == []
    assert result.heat["rows"] == "row"
    assert result.heat["row_labels"] == ["0, 0", "0, 1", "0, 2", "1, 0", "1, 1", "1, 2"]
    assert result.heat["values"][-1] == [10.0, 11.0]


def test_an_answer_that_is_not_whole_is_not_drawn() -> None:
    result = Operation("rope", "float32", "angle32", [])
    entry = LoadedCase("rope/made/0", "rope", "sequence", "core", "", ("float32",), (made(np.asarray([1]), 2),) * 2)
    curves.draw(result, [Answer(entry, "float32", [{"out": np.ones((1, 2))}])])
    assert (result.curve, result.heat) == ([], None)


def test_integers_that_must_be_exact_are_drawn() -> None:
    wrong = SimpleNamespace(__name__="wrong", t5_buckets=lambda p, /, **options: posref.t5_buckets(p, **options) + (p > 200))
    report = check(wrong, op="t5_buckets")
    op = report.operations[0]
    assert op.worst_ratio == float("inf")
    assert {p["ratio"] for p in op.curve} == {0.0, "inf"}
    drawn = min(p["position"] for p in op.curve if p["ratio"] == "inf")
    assert op.first_failing_position is not None
    assert op.first_failing_position <= drawn <= 1.1 * op.first_failing_position  # of a stretch of the axis the worst is drawn
    assert "must be exact" in html.render(report.to_json())


# Every form


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_a_function_of_the_json(form: Callable[[dict[str, Any]], str], broken: dict[str, Any]) -> None:
    again = json.loads(json.dumps(broken, sort_keys=True, allow_nan=False))
    assert form(again) == form(broken)


@pytest.mark.thorough
def test_reports_are_of_their_schema(broken: dict[str, Any], part_of_itself: dict[str, Any]) -> None:
    for report in (broken, part_of_itself, every_verdict(), hostile()):
        validate("report", report, Path("report.json"))


def test_incomplete_reports_are_never_conformant() -> None:
    whole = document([operation(), operation("alibi")], [case("a", "pass"), case("b", "pass", op="alibi")])
    assert state(whole) == "conformant"
    assert state(document([operation(conformant=False)], [case("a", "pass")], conformant=True)) == "not conformant"
    for report in unfinished(whole):
        assert state(report) == "incomplete"
        for form in FORMS:
            text = form(report)
            assert "incomplete" in text.lower()
            assert "CONFORMANT" not in text
        assert ET.fromstring(summaries.junit(report)).get("errors") == "1"


@pytest.mark.thorough
def test_the_methods_write_what_the_functions_return(tmp_path: Path) -> None:
    report = check(str(ROOT / "examples/broken_rope.py"), op="rope_frequencies")
    for name, form in zip(("markdown", "junit", "badge", "html"), FORMS, strict=True):
        getattr(report, f"write_{name}")(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == form(report.to_json())


# Markdown


def test_markdown_says_what_is_wrong_and_where(broken: dict[str, Any]) -> None:
    text = summaries.markdown(broken)
    counts = (
        re.escape(f"# posref: `{ROOT / 'examples/broken_rope.py'}`")
        + r"\n\n\*\*NOT CONFORMANT\*\*: \d+ passed, \d+ fail, \d+ outside"
    )
    assert re.match(counts, text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    rows = [t for t in tokens if t.type == "tr_open"]
    assert len(rows) == 1 + len(broken["operations"])
    assert "positions are held in float16" in text
    assert "first failure at position 2049" in text
    assert "--case rope/word/usual-distant --dtype float32`" in text


@pytest.mark.parametrize(("failing", "more"), [(3, []), (4, ["- and 1 more"]), (9, ["- and 6 more"])])
def test_three_failing_cases_are_spelled_out_and_the_others_counted(failing: int, more: list[str]) -> None:
    cases = [case(f"fail-{k}", "fail") for k in range(failing)]
    lines = summaries.markdown(document([operation(conformant=False, reason="wrong")], cases)).splitlines()
    assert sum(line.startswith("- `rope/half/fail-") for line in lines) == 3
    assert [line for line in lines if " more" in line] == more


def test_hostile_text_stays_text_in_markdown() -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(summaries.markdown(hostile()))
    flat = [token for t in tokens for token in (t, *(t.children or []))]
    kinds = Counter(token.type for token in flat)
    assert not kinds.keys() & {"html_block", "html_inline", "link_open", "image", "em_open", "fence", "code_block"}
    assert kinds["heading_open"] == 1
    assert kinds["tr_open"] == 2
    assert kinds["th_open"] == kinds["td_open"] == 7
    assert all(token.content.isprintable() for token in flat if token.type in ("text", "code_inline"))
    assert any("`code` ``| a" in token.content for token in flat if token.type == "code_inline")


# JUnit


def test_junit_maps_every_verdict() -> None:
    root = ET.fromstring(summaries.junit(every_verdict()))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["rope float32", "alibi float32", "invalid calls (these do not decide conformance)", "missing"]
    outcome = {t.get("name"): [(e.tag, e.get("type")) for e in t] for t in suites["rope float32"].iter("testcase")}
    assert outcome.pop("rope/half/pass") == []
    assert outcome.pop("rope/half/fail") == [("failure", "fail")]
    assert outcome.pop("rope/half/unsupported") == [("skipped", None)]
    assert outcome == {f"rope/half/{v}": [("error", v)] for v in ("error", "crash", "timeout", "protocol", "not-run")}
    numbers = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert numbers == {"tests": "16", "failures": "2", "errors": "5", "skipped": "6"}
    assert [s.get("message") for s in suites["missing"].iter("skipped")] == ["the target does not offer this operation"]
    properties = {p.get("name"): p.get("value") for p in suites["rope float32"].iter("property")}
    assert properties["conformant"] == "false"
    assert properties["diagnosis"] == "positions are held in bfloat16"


def test_refusals_never_fail_junit_and_too_little_support_does() -> None:
    suites = {suite.get("name"): suite for suite in ET.fromstring(summaries.junit(every_verdict()))}
    refusals = suites["invalid calls (these do not decide conformance)"]
    assert (refusals.get("failures"), refusals.get("errors"), refusals.get("skipped")) == ("0", "0", "1")
    assert [f.get("message") for f in suites["alibi float32"].iter("failure")] == ["only 1 of 4 cases passed"]
    conformant = document([operation()], [case("a", "pass"), case("b", "fail", kind="reject")])
    root = ET.fromstring(summaries.junit(conformant))
    assert (root.get("failures"), root.get("errors")) == ("0", "0")


def test_hostile_text_stays_text_in_junit() -> None:
    root = ET.fromstring(summaries.junit(hostile()))
    assert {e.tag for e in root.iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped",
    }  # fmt: skip
    shown = [text for e in root.iter() for text in (*e.attrib.values(), (e.text or "").strip())]
    assert all(text.isprintable() for text in shown)
    assert any("<script>" in text for text in shown)


# The badge


def words(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    return [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_badge_has_the_loosest_class_and_the_cases(part_of_itself: dict[str, Any]) -> None:
    passed, lacking = (part_of_itself["counts"][verdict] for verdict in ("pass", "unsupported"))  # gradients, which NumPy lacks
    assert words(summaries.badge(part_of_itself)) == ["posref 0.1.0 core", "angle64", f"in scope {passed}/{passed + lacking}"]
    two = document([operation(achieved="low"), operation("alibi", achieved="float64")], [case("a", "pass")])
    two["totals"] = {"operations": 2, "cases": 1}
    assert words(summaries.badge(two))[1] == "low"
    trig = "angle32+trig(0.00048828125)"
    widened = document([operation(achieved="angle32"), operation("alibi", achieved=trig)], [case("a", "pass")])
    assert words(summaries.badge(widened))[1] == trig


@pytest.mark.thorough
def test_forms_say_in_which_process_the_target_computed() -> None:
    itself = of_reference(dtype="float32").to_json()
    for kind, words_of_it in PROCESSES.items():
        document = itself | {"target": itself["target"] | {"process": kind}}
        for form in (summaries.markdown, summaries.badge, html.render):
            assert f"; computed {words_of_it}" in form(document)
    older = itself | {"target": {n: v for n, v in itself["target"].items() if n != "process"}}
    assert "computed" not in summaries.badge(older)


def test_a_badge_of_what_does_not_conform_names_no_class() -> None:
    assert words(summaries.badge(every_verdict())) == ["posref 0.1.0 core", "not conformant", "2/12"]
    assert words(summaries.badge(unfinished(document([operation()], [case("a", "pass")]))[0]))[1] == "incomplete"


def test_a_badge_is_wide_enough_and_plain() -> None:
    svg = summaries.badge(hostile())
    root = ET.fromstring(svg)
    assert {e.tag.partition("}")[2] for e in root.iter()} == {"svg", "title", "clipPath", "g", "rect", "text"}
    assert not any(name.startswith("on") or "href" in name for e in root.iter() for name in e.attrib)
    rects = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("fill", "#fff") != "#fff"]
    assert sum(int(e.get("width", "0")) for e in rects) == int(root.get("width", "0"))


# The snippet and the terminal


def snippet(report: dict[str, Any], op: str) -> str:
    [shown] = [o["snippet"] for o in html._operations(report) if o["op"] == op]
    return shown


@pytest.mark.thorough(dear=True)
@few(
    1,
    ("target", "op", "expected"),
    [
        ("broken_rope", "rope_table", "sin[0, 0]: expected np.float64(0.6300284"),
        ("alibi_sign", "alibi", "out["),
        ("positions_bfloat16", "rope", "out["),
    ],
)
def test_the_snippet_of_a_failure_repeats_it(target: str, op: str, expected: str, tmp_path: Path) -> None:
    file = ROOT / "examples" / "broken_rope.py" if target == "broken_rope" else written(named(target), tmp_path)
    report = check(str(file)).to_json()
    done = subprocess.run([sys.executable, "-P", "-c", snippet(report, op)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith(f"{op} {{")
    assert expected in done.stdout
    nearest = next(c for c in html._operations(report)[0]["parts"][0]["cases"] if c["verdict"] == "fail")
    assert f"got np.float64({nearest['worst']['got']!r}" in done.stdout or nearest["worst"]["output"] in done.stdout


def test_programs_have_a_command_and_no_snippet() -> None:
    report = every_verdict()
    report["target"]["kind"] = "program"
    assert snippet(report, "rope") == ""
    assert html._operations(report)[0]["reproduce"] == "posref check me --case rope/half/crash"


def test_the_terminal_does_not_call_an_unfinished_check_conformant(capsys: pytest.CaptureFixture[str]) -> None:
    report = check("posref", op="t5_buckets", dtype="float32")
    unfinished_report = Report(report.target, report.suite, report.tier, report.operations, report.missing, complete=False)
    terminal.show(unfinished_report, Console(width=120))
    assert f"INCOMPLETE: {report.operations[0].counts['pass']} passed" in capsys.readouterr().out


@pytest.mark.parametrize("verdict", BAD)
def test_one_case_that_does_not_pass_is_enough(verdict: str) -> None:
    cases = [CaseResult(f"rope/half/{n}", "rope", "value", "core", "float32", "pass") for n in range(5)]
    assert Operation("rope", "float32", "angle32", cases).conformant
    wrong = Operation("rope", "float32", "angle32", [*cases, replace(cases[0], verdict=verdict)])
    assert not wrong.conformant
    ended = verdict in ("crash", "timeout", "protocol")
    assert verdict == "selective" or wrong.reason == (f"{verdict} at rope/half/0" if ended else "1 of 6 cases fail")
    refused = Operation("rope", "float32", "angle32", [*cases, replace(cases[0], kind="reject", verdict=verdict)])
    assert refused.conformant is (verdict not in ("crash", "timeout", "protocol"))


def test_one_mistake_in_two_dtypes_is_explained_once() -> None:
    def one_later(positions: Any, inv_freq: Any, /, **options: Any) -> Any:
        return posref.rope_table(positions + 1, inv_freq, **options)

    def twice(positions: Any, inv_freq: Any, /, *, dtype: Any = None, **options: Any) -> Any:
        shift = 1 if dtype == np.float64 else -1
        return posref.rope_table(positions + shift, inv_freq, dtype=dtype, **options)

    for function, times in ((one_later, 1), (twice, 2)):
        target = SimpleNamespace(__name__="t", rope_table=function, dtypes=("float64", "float32"))
        console = Console(width=200, record=True, file=io.StringIO())
        terminal.show(check(target, tier="smoke"), console)
        text = console.export_text()
        assert text.count("diagnosis:") == text.count("repeat:") == times, text
        assert ("  the same in float32: 1 of 1 cases" in text) is (times == 1)
