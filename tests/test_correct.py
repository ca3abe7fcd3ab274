"""Correct implementations, written in many ways, stay within their class; and the class is no wider than they need."""

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from sources import assert_stands_alone

from posref.conformance import check
from posref.conformance.reports.report import Report

FILES = sorted((Path(__file__).parent / "correct").glob("*.py"))
REFERENCE = ("numpy", "torch")
Ratios = dict[tuple[str, str, str], dict[str, float]]  # (op, dtype, class) -> who -> worst error/bound


@cache
def of_file(file: Path) -> Report:
    """Return the report on an implementation, made once."""
    return check(str(file))


@cache
def of_reference(backend: str) -> Report:
    """Return the report on the reference, made once for each library."""
    return check("posref", backend=backend)


@cache
def ratios() -> Ratios:
    """Return the worst error of every operation, in tolerances of its claim; nobody where all results are exact."""
    reports = {file.stem: of_file(file) for file in FILES} | {f"posref on {b}": of_reference(b) for b in REFERENCE}
    found: Ratios = defaultdict(dict)
    for who, report in reports.items():
        for operation in report.operations:
            if operation.counts["pass"] and operation.dtype and operation.claim:
                known = {who: operation.worst_ratio} if operation.worst_ratio else {}
                found[operation.op, operation.dtype, operation.claim] |= known
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_case_fails(file: Path) -> None:
    report = of_file(file)
    assert not report.failures, [(case.id, case.message) for case in report.failures][:5]
    assert report.counts["pass"]


@pytest.mark.parametrize("backend", REFERENCE)
def test_the_reference_conforms(backend: str) -> None:
    """In every dtype and in the tightest class of each."""
    report = of_reference(backend)
    assert report.conformant, [(case.id, case.dtype, case.message) for case in report.failures][:5]
    assert not report.missing


def test_the_bounds_are_not_idle(capsys: pytest.CaptureFixture[str]) -> None:
    """The worst of the correct implementations comes within a hundredth of every bound, and none is beyond one."""
    with capsys.disabled():
        print("\nworst error/bound of correct implementations")
        for key, known in sorted(ratios().items()):
            who = max(known, key=lambda name: known[name], default=None)
            print(f"  {key[0]:17} {key[1]:9} {key[2]:8} {'exact' if who is None else f'{known[who]:<9.2g} {who}'}")
    worst = {key: max(known.values()) for key, known in ratios().items() if known}
    assert len(worst) > 50
    wide = {key: ratio for key, ratio in worst.items() if not 0.01 <= ratio <= 1}
    assert not wide


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_imports_nothing_of_posref(file: Path) -> None:
    assert_stands_alone(file)
