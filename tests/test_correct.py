"""Correct implementations, written in many ways, stay within their class."""

from pathlib import Path

import pytest
from sampling import few
from sources import assert_stands_alone

from posref.conformance import Report, check
from posref.conformance.targets.python import load_python

FILES = sorted((Path(__file__).parent / "correct").glob("*.py"))
# thorough/test_bounds.py asks all
FEW = ("numpy_alibi_bloom", "numpy_complex", "numpy_exp_log", "numpy_fused_tiles", "torch_attention")


@few(1, "file", [file for file in FILES if file.stem in FEW], ids=lambda file: file.stem)
def test_no_case_fails(file: Path) -> None:
    assert_no_failure(check(load_python(str(file)).implementation, experiments=0))


def assert_no_failure(report: Report) -> None:
    assert not report.failures, [(case.id, case.message) for case in report.failures][:5]
    assert report.counts["pass"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_imports_nothing_of_posref(file: Path) -> None:
    assert_stands_alone(file)
