"""The rooms of `conformance/`: imports point one way, without a circle, and every room stays a room."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sampling import few

ROOT = Path(__file__).parents[1]
CHECK = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(config_filename=sys.argv[1], no_cache=True))"
)
MOST_FILES, MOST_LINES_OF_A_FUNCTION = 9, 60


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the package as it is installed: backends and conformance inside it, without the vectors."""
    folder = tmp_path_factory.mktemp("package")
    python_only = shutil.ignore_patterns("vectors", "templates", "__pycache__")
    shutil.copytree(ROOT / "posref", folder / "posref", ignore=python_only)
    for name in ("backends", "conformance"):
        shutil.copytree(ROOT / name, folder / "posref" / name, ignore=python_only, dirs_exist_ok=True)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts in pyproject.toml on the package in a folder."""
    command = [sys.executable, "-c", CHECK, str(ROOT / "pyproject.toml")]
    return subprocess.run(
        command, check=False, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True
    )


def test_imports_point_one_way_and_never_in_a_circle(package: Path) -> None:
    """Typing-only and lazy imports count: the contracts stand in pyproject.toml."""
    found = lint(package)
    assert found.returncode == 0, found.stdout + found.stderr


@few(
    1,
    ("file", "line"),
    [
        ("suite/reader.py", "from ..targets.base import Target"),
        ("proof/witnesses.py", "def f() -> None:\n    from . import build"),
        ("model.py", "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .reports.report import Report"),
        ("new_file.py", "nothing = None"),
    ],
    ids=["climb", "lazy circle", "typing-only climb", "a file without a place"],
)
def test_a_wrong_import_is_found(package: Path, tmp_path: Path, file: str, line: str) -> None:
    shutil.copytree(package / "posref", tmp_path / "posref")
    path = tmp_path / "posref" / "conformance" / file
    assert path.exists() or file == "new_file.py"
    with path.open("a") as source:
        source.write(f"\n\n{line}\n")
    found = lint(tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    assert Path(file).parts[0].removesuffix(".py") in found.stdout  # of a circle, any of its imports may be named


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every function of a file with its lines, the docstring not counted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            documented = (first.end_lineno or first.lineno) - first.lineno + 1 if told else 0
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - documented


@pytest.mark.thorough
def test_functions_are_short() -> None:
    """But lists of cases, which are data."""
    files = [p for folder in ("posref", "backends", "conformance") for p in (ROOT / folder).rglob("*.py")]
    lists = ROOT / "conformance" / "evidence"
    found = [(p, name, lines) for p in files for name, lines in functions(p) if not (p.parent == lists and name == "cases")]
    assert len(found) > 1000
    long = {f"{p.relative_to(ROOT)}: {name}": lines for p, name, lines in found if lines > MOST_LINES_OF_A_FUNCTION}
    assert not long


def test_no_two_modules_of_conformance_have_one_name() -> None:
    """But those of one encoding, and adapters, which are named after libraries."""
    files = [p.relative_to(ROOT) for p in (ROOT / "conformance").rglob("*.py") if p.name != "__init__.py"]
    names = [p.name for p in files if p.parts[1] not in ("witness", "evidence", "adapters", "vectors")]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))


def test_few_files_stand_outside_the_rooms() -> None:
    loose = [p.name for p in (ROOT / "conformance").iterdir() if p.is_file()]
    assert len(loose) <= MOST_FILES, f"conformance/ has {len(loose)} files at its root, at most {MOST_FILES}: {sorted(loose)}"
