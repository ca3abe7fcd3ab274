"""Correct implementations, written in many ways, stay within their class; and the class is no wider than they need."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from posref.conformance import check
from posref.conformance.report import Report

FILES = sorted((Path(__file__).parent / "correct").glob("*.py"))
REFERENCE = ("numpy", "torch")
RATIOS: dict[tuple[str, str, str], dict[str, float | None]] = defaultdict(
    dict
)  # (op, dtype, class) -> who -> worst error/bound
CHECKED: set[str] = set()


def note(who: str, report: Report) -> None:
    """Keep the worst error of every operation, in tolerances of its claim; None where the tolerance is zero throughout."""
    CHECKED.add(who)
    for operation in report.operations:
        if operation.counts["pass"] and operation.dtype and operation.claim:
            RATIOS[operation.op, operation.dtype, operation.claim][who] = operation.worst_ratio


@pytest.fixture(scope="module", autouse=True)
def summary(request: pytest.FixtureRequest) -> Iterator[None]:
    """Print how near the bounds the correct implementations come."""
    yield
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\nworst error/bound of correct implementations")
        for key, found in sorted(RATIOS.items()):
            known = {who: ratio for who, ratio in found.items() if ratio is not None}
            worst = max(known, key=lambda who: known[who], default=None)
            shown = "exact" if worst is None else f"{known[worst]:<9.2g} {worst}"
            print(f"  {key[0]:17} {key[1]:9} {key[2]:8} {shown}")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_case_fails(file: Path) -> None:
    report = check(str(file))
    note(file.stem, report)
    assert not report.failures, [(case.id, case.message) for case in report.failures][:5]
    assert report.counts["pass"]


@pytest.mark.parametrize("backend", REFERENCE)
def test_the_reference_conforms(backend: str) -> None:
    """In every dtype and in the tightest class of each."""
    report = check("posref", backend=backend)
    note(f"posref on {backend}", report)
    assert report.conformant, [(case.id, case.dtype, case.message) for case in report.failures][:5]
    assert not report.missing


def test_the_bounds_are_not_idle() -> None:
    """The worst of the correct implementations comes within a hundredth of every bound, and none is beyond one."""
    if not {*(file.stem for file in FILES), *(f"posref on {b}" for b in REFERENCE)} <= CHECKED:
        pytest.skip("needs all implementations: run the whole file")
    worst = {key: max((r for r in found.values() if r is not None), default=None) for key, found in RATIOS.items()}
    wide = {key: ratio for key, ratio in worst.items() if ratio is not None and not 0.01 <= ratio <= 1}
    assert not wide


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_imports_nothing_of_posref(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.split(".")[0] == "posref"]
    assert ast.get_docstring(tree)
