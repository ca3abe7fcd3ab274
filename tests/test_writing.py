"""Every file that posref writes: whole or not at all, in a regular file of its name alone, and by one function."""

import ast
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run
from sampling import few

import posref
from posref.conformance.errors import VectorError
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.suite.safe_files import expect_writable, whole_file
from posref.conformance.suite.writer import copy, expect_suite

ROOTS = (Path(str(posref.__file__)).parent, *(Path(__file__).parents[1] / name for name in ("conformance", "backends")))
WRITER = "conformance/suite/safe_files.py"
# What else begins a file: `open` with a mode that writes, and functions of the libraries that are used here
WRITERS = {
    "write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile", "copyfile", "copy2", "copytree", "mknod", "mkfifo",
}  # fmt: skip
OF_LIBRARIES = {("np", "savez"), ("np", "save"), ("np", "savetxt"), ("safetensors", "save_file"), ("figure", "savefig")}
IN_MEMORY = {"file"}  # the name of a stream in memory, the first argument of these


def writers(source: str) -> list[str]:
    """Return every call in a source that writes a file, as text."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and writes(node)]


def writes(call: ast.Call) -> bool:
    """Return whether a call writes a file of some name."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    of = getattr(call.func.value, "id", "") if isinstance(call.func, ast.Attribute) else ""
    if (of, name) in OF_LIBRARIES:
        return not (call.args and getattr(call.args[0], "id", "") in IN_MEMORY)
    modes = [a.value for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Constant)]
    if name == "open":
        return of == "os" or any(isinstance(m, str) and len(m) < 4 and {*m} & {*"wax+"} for m in modes)
    return name in WRITERS


@pytest.mark.parametrize(
    "source",
    [
        "open(p, 'w')", "p.open('xb')", "p.open(mode='a')", "io.open(p, 'r+')", "p.write_text(t)", "p.write_bytes(b)",
        "p.touch()", "np.savez(path, a=a)", "tempfile.mkstemp()", "shutil.copyfile(a, b)", "os.open(p, flags)",
        "figure.savefig(path)",
    ],
)  # fmt: skip
def test_a_writer_is_seen(source: str) -> None:
    assert writers(source)
    assert not writers("p.open('rb'); open(p); np.savez(file, a=a); self.open()")


SHARED = "open(place, 'r+b', buffering=0)"  # memory of two processes, no file of a user's
READING = {SHARED, "os.open(os.devnull, os.O_WRONLY)", "os.open(os.devnull, os.O_RDONLY)", "os.open(os.devnull, os.O_RDWR)"}


@pytest.mark.thorough
def test_there_is_one_writer() -> None:
    checkout, installed = Path(__file__).parents[1], Path(str(posref.__file__)).parents[1]
    files = {path for top in ROOTS for path in top.rglob("*.py")}
    names = {p: p.resolve().relative_to(checkout if p.resolve().is_relative_to(checkout) else installed) for p in files}
    found = {names[path].as_posix(): writers(path.read_text(encoding="utf-8")) for path in files}
    assert len(found) > 300
    others = {name: [c for c in calls if c not in READING] for name, calls in found.items() if not name.endswith(WRITER)}
    assert {name: calls for name, calls in others.items() if calls} == {}


# ---- one file ------------------------------------------------------------------------------------------------------------
def link(place: Path) -> None:
    (place.parent / "target").write_text("kept")
    place.symlink_to("target")


KINDS: dict[str, Callable[[Path], None]] = {
    "a symbolic link": link,
    "a symbolic link to nothing": lambda place: place.symlink_to("nothing"),
    "a pipe": os.mkfifo,
    "a folder": lambda place: place.mkdir(),
    "a device": lambda place: os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 7)),
}
SLOPES = ("golden", "alibi_slopes", "--option", "heads=8")
COMMANDS: dict[str, tuple[str, ...]] = {
    "out.npz": (*SLOPES, "-o"),
    "out.safetensors": (*SLOPES, "-o"),
    "out.json": ("check", "posref", "--op", "alibi_slopes", "--tier", "smoke", "--json"),
    "out.svg": ("plot", "alibi", "-o"),
    "data.json": ("plot", "alibi", "-o", "{}/picture.svg", "--save-data"),
    "adapter.py": ("adapter", "new", "mine", "--like", "table", "-o"),
}


def planted(kind: str, place: Path) -> None:
    """Make what is not a regular file; making a device takes rights that not everybody has."""
    try:
        KINDS[kind](place)
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_no_regular_file_is_refused_by_name(name: str, kind: str, tmp_path: Path) -> None:
    place = tmp_path / name
    planted(kind, place)
    before = {p.name: p.lstat()[:2] for p in tmp_path.iterdir()}
    result = run(*(a.format(tmp_path) for a in COMMANDS[name]), place)
    assert result.exit_code == 2, result.output
    assert name in result.output
    assert {p.name: p.lstat()[:2] for p in tmp_path.iterdir() if p.name != "picture.svg"} == before
    assert "target" not in before or (tmp_path / "target").read_text() == "kept"


@pytest.mark.parametrize("kind", KINDS)
def test_the_refusal_says_what_is_there(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "out"
    planted(kind, place)
    for refuses in (lambda: whole_file(place, "text"), lambda: expect_writable(place)):
        with pytest.raises(VectorError, match=f"out: must be a regular file or new; it is {kind.removesuffix(' to nothing')}"):
            refuses()


def test_what_is_planted_beside_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    for name in ("out.npz.part", "out.npz.tmp"):
        (tmp_path / name).symlink_to("mine")
    assert run(*COMMANDS["out.npz"], tmp_path / "out.npz").exit_code == 0
    assert (tmp_path / "mine").read_text() == "kept"
    assert {p.name for p in tmp_path.iterdir()} == {"mine", "out.npz", "out.npz.part", "out.npz.tmp"}


def test_a_file_keeps_its_permissions_and_is_not_replaced_without_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "out"
    place.write_text("old")
    place.chmod(0o600)
    whole_file(place, "new")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert place.read_text() == "new"
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may always
    with pytest.raises(PermissionError) as caught:
        whole_file(place, "newer")
    assert caught.value.filename == str(place)
    assert place.read_text() == "new"


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "no/such/folder/out", "x" * 300])
def test_an_error_names_the_file_that_was_asked_for(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    if len(os.fsencode(name)) <= 255 and "/" not in name:
        whole_file(place, "text")
        assert place.read_text() == "text"
        return
    for refuses in (lambda: whole_file(place, "text"), lambda: expect_writable(place)):
        with pytest.raises(OSError, match=r".") as caught:
            refuses()
        assert caught.value.filename == str(place)


@few(1, "name", ["-", "/dev/stdout"])
@few(1, "command", [(*SLOPES, "--format", "json", "-o"), COMMANDS["out.json"]])
def test_a_dash_is_standard_output(command: tuple[str, ...], name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "posref", *command, name], cwd=tmp_path, capture_output=True, check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert json.loads(done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_a_dash_needs_a_format_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for extra in ((), ("--format", "suite")):
        result = run(*SLOPES, *extra, "-o", "-")
        assert result.exit_code == 2
        assert "-o - is standard output and needs --format npz, safetensors or json" in result.output
    assert list(tmp_path.iterdir()) == []


# ---- folders -------------------------------------------------------------------------------------------------------------
SUITES: dict[str, tuple[str, ...]] = {
    "golden": (*SLOPES, "-o"),
    "build": ("vectors", "build", "--tier", "smoke", "--op", "alibi_slopes"),
}
FOREIGN = {
    "notes.txt": lambda root: (root / "notes.txt").write_text("mine"),
    ".git/HEAD": lambda root: ((root / ".git").mkdir(), (root / ".git/HEAD").write_text("mine")),
    "alibi_slopes/mine": lambda root: (root / "alibi_slopes/mine").mkdir(),
    "smoke.json": lambda root: ((root / "smoke.json").unlink(), (root / "smoke.json").symlink_to("SUITE.json")),
}


@few(3, "command", SUITES)
@few(1, "name", FOREIGN)
def test_a_foreign_file_in_a_suite_is_a_refusal_that_names_it(name: str, command: str, tmp_path: Path) -> None:
    root = tmp_path / "suite"
    copy(INSTALLED, root, ["alibi_slopes"])
    FOREIGN[name](root)
    before = sorted(root.rglob("*"))
    result = run(*SUITES[command], root)
    assert result.exit_code == 2, result.output
    assert str(root / Path(name).parts[0]) in result.output
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("command", SUITES)
def test_a_folder_with_another_manifest_is_not_a_suite(command: str, tmp_path: Path) -> None:
    (tmp_path / "SUITE.json").write_text("{}")
    result = run(*SUITES[command], tmp_path)
    assert result.exit_code == 2
    assert "must be new, empty, or hold a suite" in result.output
    assert (tmp_path / "SUITE.json").read_text() == "{}"


@pytest.mark.thorough
@pytest.mark.parametrize("command", SUITES)
def test_a_suite_is_replaced_and_keeps_its_own_page(command: str, tmp_path: Path) -> None:
    root = tmp_path / "suite"
    copy(INSTALLED, root, ["alibi_slopes"])
    (root / "README.md").write_text("mine")
    result = run(*SUITES[command], root)
    assert result.exit_code == 0, result.output
    assert (root / "README.md").read_text() == "mine"
    assert {group.op for group in load_groups(root)} == {"alibi_slopes"}
    expect_suite(root)
    assert [p.name for p in tmp_path.iterdir()] == ["suite"]


def test_what_comes_into_a_folder_while_it_is_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from posref.conformance.proof import build

    root = tmp_path / "suite"
    copy(INSTALLED, root, ["alibi_slopes"])
    closing = build._close
    monkeypatch.setattr(build, "_close", lambda *given: (closing(*given), (root / "notes.txt").write_text("mine")))
    with pytest.raises(VectorError, match=r"notes\.txt is not"):
        build.build(root, tier="smoke", ops=["alibi_slopes"])
    assert (root / "notes.txt").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["suite"]
