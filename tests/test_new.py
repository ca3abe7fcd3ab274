"""The script that begins an encoding: its files run, and each of them fails with what is to be written in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from every_encoding.written import assert_written, left_to_do
from sampling import few

from posref.conformance.new import new
from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
NAME, LIKE = "bias_of_nobody", "t5_bias"
FILES = [f"{folder}/{NAME}.py" for folder in ("posref/bias", "conformance/witness", "conformance/evidence", "tests/plain")]
PICTURES = "posref/plots/pictures/bias.py"
LISTED = ("CHANGELOG.md", "pyproject.toml", "posref", "backends", "conformance", "tests/plain")


def copied(target: Path) -> Path:
    """Return a checkout in a folder, without vectors."""
    for name in LISTED:
        source, there = ROOT / name, target / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, there, symlinks=True, ignore=shutil.ignore_patterns("vectors", "__pycache__"))
        else:
            shutil.copy(source, there)
    return target


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the posref of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(root / "cache")}
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout in which an encoding was begun."""
    root = copied(tmp_path_factory.mktemp("checkout"))
    done = python(root, "-m", "posref.conformance.new", NAME, "--like", LIKE)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()[:4]] == [f"wrote {file}" for file in FILES]
    return root


def counted(line: str) -> str:
    """Return a line of CHANGELOG.md as it is with one more definition."""
    return line.replace(f"Definitions** of {len(REGISTRY)} ", f"Definitions** of {len(REGISTRY) + 1} ")


def test_four_files_a_picture_and_two_lines_are_written(begun: Path) -> None:
    assert all((begun / file).is_file() for file in FILES)
    for name in ("posref/__init__.py", "CHANGELOG.md"):
        before, after = ((root / name).read_text(encoding="utf-8").splitlines() for root in (ROOT, begun))
        (line,) = [line for line in after if NAME in line]
        assert [other for other in after if other != line] == [counted(line) for line in before]
    before, after = ((root / PICTURES).read_text(encoding="utf-8") for root in (ROOT, begun))
    assert after.startswith(before)
    assert '\n@of_kind("bias")\n' in after.removeprefix(before)
    names = sorted(
        path.relative_to(begun).as_posix() for path in begun.rglob(f"*{NAME}*") if not path.is_relative_to(begun / "cache")
    )
    assert names == sorted(FILES)


def test_they_are_formatted_and_in_order(begun: Path) -> None:
    files = [*FILES[:3], "posref/__init__.py", PICTURES]
    assert python(begun, "-m", "ruff", "check", "--no-cache", *files).stdout == "All checks passed!\n"
    assert python(begun, "-m", "ruff", "format", "--no-cache", "--check", *files).returncode == 0


FAILS = {
    "posref/bias": "import posref; posref.{0}(1, 2, 3, bidirectional=True)",
    "conformance/witness": "from posref.conformance.witness.{0} import {0}; {0}(1, 2, 3, bidirectional=True)",
    "conformance/evidence": "from posref.conformance.evidence import {0} as of; of.DEVIATIONS[0].wraps[of.OP](abs)(1)",
    "tests/plain": "import runpy; runpy.run_path('tests/plain/{0}.py')['{0}'](1, 2, 3, bidirectional=True)",
}


@few(2, "folder", FAILS)
def test_each_file_runs_and_says_what_to_write(folder: str, begun: Path) -> None:
    done = python(begun, "-c", FAILS[folder].format(NAME))
    error = done.stderr.splitlines()[-1]
    assert error.startswith(("NotImplementedError: ", "AssertionError: "))
    assert "write" in error or "transcribe" in error
    assert error.endswith(f", in {folder}/{NAME}.py")


def test_cases_are_those_of_the_new_operation(begun: Path) -> None:
    code = (
        f"from posref.conformance.evidence import {NAME} as of; cases = of.cases();"
        "print({case.op for case in cases}, {case.kind for case in cases} >= {'value', 'vjp'}, cases[0].tier)"
    )
    done = python(begun, "-c", code)
    assert done.stdout == f"{{'{NAME}'}} True smoke\n", done.stderr


def test_the_new_mistake_is_in_the_list_of_mistakes(begun: Path) -> None:
    code = "from posref.conformance.evidence.catalogue import mistakes; print(mistakes()['bias-of-nobody-sign']['catches'])"
    done = python(begun, "-c", code)
    assert done.stdout == "TO DO: what is wrong, in a sentence\n", done.stderr


@pytest.mark.thorough
def test_a_build_names_the_file_that_lacks_its_formula(begun: Path) -> None:
    done = python(begun, "-m", "posref", "vectors", "build", str(begun / "new"), "--op", NAME)
    assert done.returncode == 2
    assert f"{NAME}: TO DO: write the formula, in posref/bias/{NAME}.py" in done.stderr
    assert not (begun / "new" / NAME).exists()


def test_the_test_of_the_operation_names_every_line_to_be_written(begun: Path) -> None:
    left = left_to_do(NAME, begun)
    assert {line.partition(":")[0] for line in left} == {*FILES, "CHANGELOG.md", PICTURES}
    with pytest.raises(AssertionError, match=rf"{NAME}: {len(left)} lines are to be written:\n +CHANGELOG\.md:\d+: - `{NAME}`"):
        assert_written(NAME, begun)
    assert_written(LIKE, ROOT)


@pytest.mark.parametrize(
    ("name", "like", "message"),
    [
        ("alibi", "alibi", "posref has alibi already, in posref.bias.alibi"),
        ("t5_rows", "alibi", "posref has t5_rows already, in posref.bias.t5_bias"),
        ("scaling", "alibi", "posref has scaling already"),
        ("2d", "alibi", "NAME must be a Python name in lower case"),
        ("lambda", "alibi", "NAME must be a Python name in lower case"),
        ("Kerple", "alibi", "NAME must be a Python name in lower case"),
        ("../alibi", "alibi", "NAME must be a Python name in lower case"),
        ("lists", "alibi", "lists already has conformance/witness/lists.py"),
        ("shared", "alibi", "shared already has conformance/evidence/shared"),
        (NAME, "alibbi", "--like must be the name of an operation; got 'alibbi'. Did you mean alibi"),
    ],
)
def test_names_that_cannot_be_are_refused(name: str, like: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posref.conformance.new.checkout", lambda: ROOT)  # posref may be installed elsewhere
    done = CliRunner().invoke(new, [name, "--like", like])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("CHANGELOG.md", "posref/__init__.py", FILES[2], "conformance/witness/t5_bias.py", "tests/plain/t5_bias.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file if (ROOT / file).exists() else ROOT / "LICENSE", tmp_path / file)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr("posref.conformance.new.checkout", lambda: tmp_path)
    done = CliRunner().invoke(new, [NAME, "--like", LIKE])
    assert done.exit_code == 2
    assert f"{NAME} already has {FILES[2]}." in " ".join(done.output.split())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_installed_posref_is_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posref.conformance.new.__file__", str(tmp_path / "posref" / "conformance" / "new" / "__init__.py"))
    done = CliRunner().invoke(new, [NAME, "--like", LIKE])
    assert done.exit_code == 2
    assert "this needs a checkout of posref" in done.output
    assert not list(tmp_path.iterdir())
