"""Implementations with a planted defect: every one is found, and its diagnosis is right or "unexplained", never wrong."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from posref.conformance import check
from posref.conformance.deviations import DEVIATIONS
from posref.conformance.report import Report
from posref.conformance.target import load

FILES = sorted((Path(__file__).parent / "defects").glob("*.py"))
NAMED: dict[str, list[str]] = {}  # what the diagnosis of each one printed


@pytest.fixture(scope="module", autouse=True)
def summary(request: pytest.FixtureRequest) -> Iterator[None]:
    """Print how many defects were named once all were checked."""
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        blank = sorted(name for name, names in NAMED.items() if not names)
        print(f"\ndefects: {len(NAMED)} found, {len(NAMED) - len(blank)} named; unexplained: {', '.join(blank)}")


def explained(report: Report) -> list[list[str]]:
    """Return the names of every diagnosis in a report."""
    return [list(op.diagnosis["names"]) for op in report.operations if op.diagnosis is not None]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_found_and_explained(file: Path) -> None:
    defect = load(str(file)).implementation
    report = check(str(file))
    assert not report.conformant
    assert report.exit_code == 1
    assert report.failures
    found = explained(report)
    NAMED[file.stem] = [name for names in found for name in names]
    for names in found:  # several at once give the same values on every case asked: one of them must be the planted one
        assert not names or set(names) & set(defect.NAMES), f"{defect.DEFECT} is not {names}"


def test_four_fifths_of_those_in_the_registry_are_named() -> None:
    known = [file.stem for file in FILES if load(str(file)).implementation.NAMES]
    if not set(known) <= set(NAMED):
        pytest.skip("needs the diagnoses of all defects: run the whole file")
    assert len([name for name in known if NAMED[name]]) >= 0.8 * len(known)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_defect_says_what_it_is_and_imports_nothing_of_posref(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.split(".")[0] == "posref"]
    assert ast.get_docstring(tree)
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
