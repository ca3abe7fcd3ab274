"""Implementations with a planted defect: every one is found, and its diagnosis is right or "unexplained", never wrong."""

from functools import cache
from pathlib import Path

import pytest
from sources import assert_stands_alone

from posref.conformance import check
from posref.conformance.deviations import DEVIATIONS
from posref.conformance.report import Report
from posref.conformance.target import load

FILES = sorted((Path(__file__).parent / "defects").glob("*.py"))


@cache
def report_on(file: Path) -> Report:
    """Return the report on a defect, made once."""
    return check(str(file))


def explained(report: Report) -> list[list[str]]:
    """Return the names of every diagnosis in a report."""
    return [list(op.diagnosis["names"]) for op in report.operations if op.diagnosis is not None]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_found_and_explained(file: Path) -> None:
    defect = load(str(file)).implementation
    report = report_on(file)
    assert not report.conformant
    assert report.exit_code == 1
    assert report.failures
    for names in explained(
        report
    ):  # several at once give the same values on every case asked: one of them must be the planted one
        assert not names or set(names) & set(defect.NAMES), f"{defect.DEFECT} is not {names}"


def test_four_fifths_of_those_in_the_registry_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    blank = [file.stem for file in FILES if not any(explained(report_on(file)))]
    with capsys.disabled():
        print(f"\ndefects: {len(FILES)}, {len(FILES) - len(blank)} named; unexplained: {', '.join(blank)}")
    known = [file for file in FILES if load(str(file)).implementation.NAMES]
    assert len([file for file in known if any(explained(report_on(file)))]) >= 0.8 * len(known)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_defect_says_what_it_is_and_imports_nothing_of_posref(file: Path) -> None:
    assert_stands_alone(file)
    defect = load(str(file)).implementation
    assert defect.DEFECT
    assert set(defect.NAMES) <= set(DEVIATIONS)


def test_the_first_example_is_explained_by_its_first_wrong_stage() -> None:
    report = check(str(FILES[0].parents[2] / "examples" / "broken_rope.py"))
    broken = {op.op: op for op in report.operations if op.diagnosis is not None}
    assert set(broken) == {"rope_table", "rope"}
    for operation in broken.values():
        assert operation.first_failing_position == 2049
        assert operation.diagnosis is not None
        assert operation.diagnosis["names"] == ["positions-float16"]
    assert "first wrong stage is rope_table" in str(broken["rope"].diagnosis)
