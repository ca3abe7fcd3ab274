"""Correct implementations, written in many ways, stay within their class."""

from pathlib import Path

import pytest
from sources import assert_stands_alone

from posref.conformance import Report, check
from posref.conformance.targets.python import load_python

FILES = sorted((Path(__file__).parent / "correct").glob("*.py"))
SLOW = ("torch_half", "jax_")  # every rotation in two dtypes, and code that compiles every shape: thorough/test_bounds.py


@pytest.mark.few(4)
@pytest.mark.parametrize("file", [f for f in FILES if not f.stem.startswith(SLOW)], ids=lambda file: file.stem)
def test_no_case_fails(file: Path) -> None:
    assert_no_failure(check(load_python(str(file)).implementation))


def assert_no_failure(report: Report) -> None:
    assert not report.failures, [(case.id, case.message) for case in report.failures][:5]
    assert report.counts["pass"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_imports_nothing_of_posref(file: Path) -> None:
    assert_stands_alone(file)
