"""What type checkers say of users' programs: `typing/right_*` pass strictly, and every marked line of `wrong_*` is refused."""

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import posref

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted((ROOT / "tests" / "typing").glob("*.py"))
MARK = re.compile(r"  # (?P<mypy>[a-z-]+), (?P<pyright>report\w+)$")
UNTYPED = ("UnknownMemberType", "UnknownArgumentType", "UnknownVariableType")  # JAX's and PyTorch's own functions
Found = set[tuple[str, int, str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an interpreter beside which posref lies as its wheel has it: checkers do not see a checkout's folders."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    site = next(home.glob("lib/python*/site-packages"))
    shutil.copytree(ROOT / "posref", site / "posref", ignore=shutil.ignore_patterns("__pycache__", "vectors"))  # through links
    (site / "libraries.pth").write_text("\n".join(p for p in sys.path if Path(p).name in {"site-packages", "dist-packages"}))
    return str(home / "bin" / "python")


def marked(checker: str) -> Found:
    """Return file, line and error of every line that a checker must refuse."""
    lines = ((path.name, number, MARK.search(line)) for path in PROGRAMS for number, line in enumerate(path.open(), 1))
    return {(name, number, mark[checker]) for name, number, mark in lines if mark}


def check(found: Found, expected: Found, output: str) -> None:
    """Every marked line has its error, perhaps beside others, and no other line has one."""
    assert expected <= found, output
    assert {error[:2] for error in found} == {error[:2] for error in expected}, output


def test_programs_hold_mistakes() -> None:
    assert {name for name, _, _ in marked("mypy")} == {path.name for path in PROGRAMS if path.name.startswith("wrong_")}


UNREAD = "[mypy]\n[mypy-numpy.*,array_api_compat.*]\nfollow_imports = skip\n"  # libraries take ten times as long to read


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("library", ["standard", pytest.param("", id="all")])
def test_mypy_passes_right_programs_and_refuses_every_marked_line(library: str, python: str, tmp_path: Path) -> None:
    """Plain runs ask of arrays that are no library's, thorough ones of NumPy's, PyTorch's and JAX's too."""
    (tmp_path / "mypy.ini").write_text(UNREAD if library else "")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(tmp_path / "mypy.ini"), "--no-pretty"]
    command += ["--python-executable", python, "--cache-dir", str(tmp_path), "--hide-error-context", "--no-error-summary"]
    programs = [str(path) for path in PROGRAMS if library in path.name]
    done = subprocess.run([*command, *programs], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "error:" in line]
    errors = [error for line in lines if (error := re.search(r"([^/]+):(\d+): error: .*\[([a-z-]+)\]$", line))]
    assert len(errors) == len(lines), done.stdout
    expected = {mark for mark in marked("mypy") if library in mark[0]}
    check({(error[1], int(error[2]), error[3]) for error in errors}, expected, done.stdout)


@pytest.mark.thorough(dear=True)
def test_pyright_passes_right_programs_and_refuses_every_marked_line(python: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "typing", tmp_path / "user")
    rules = {f"report{rule}": False for rule in UNTYPED}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"include": ["user"], "typeCheckingMode": "strict", **rules}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", python, "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    reports = json.loads(done.stdout)["generalDiagnostics"]
    found = {(Path(r["file"]).name, r["range"]["start"]["line"] + 1, r["rule"]) for r in reports if r["severity"] == "error"}
    check(found, marked("pyright"), done.stdout)


def test_every_record_is_a_scaling() -> None:
    classes = tuple(value for value in vars(posref.scaling).values() if isinstance(value, type))
    assert classes == (posref.scaling.Scaling, *posref.scaling.RECORDS)
