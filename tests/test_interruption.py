"""Whatever interrupts a build, a copy or a report: what is left is whole, or is nothing, and the next run tidies up."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import interruptible
from interrupting import a_folder, scratch_of, tree
from sampling import QUARTER, few, share
from stopping import COMMANDS, stop_all

from posref.conformance.errors import VectorError
from posref.conformance.proof.build import build
from posref.conformance.suite import safe_files
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.suite.safe_files import put_aside, whole_directory, whole_file
from posref.conformance.suite.writer import copy

HERE = Path(__file__).parent
POSREF = [sys.executable, "-P", "-m", "posref"]


@few(
    1,
    ("kind", "count", "outcomes"),
    [
        pytest.param("build", 30, {"old", "new"}, marks=pytest.mark.thorough),
        pytest.param("check", 30, {"old", "new"}, marks=pytest.mark.thorough),
        ("folder", 0, {"absent", "old", "new"}),
        ("file", 0, {"absent", "old", "new"}),
        pytest.param("folder-ctrl-c", 0, {"absent", "old", "new"}, marks=pytest.mark.thorough),
        ("file-ctrl-c", 0, {"absent", "old", "new"}),
        pytest.param("file-sighup", 0, {"absent", "old", "new"}, marks=pytest.mark.thorough),
        pytest.param("folder-sigterm", 0, {"absent", "old", "new"}, marks=pytest.mark.thorough),
    ],
    dear=True,
)
def test_a_kill_at_any_moment_leaves_the_old_the_new_or_nothing(
    kind: str, count: int, outcomes: set[str], tmp_path: Path
) -> None:
    command = [sys.executable, str(HERE / "interrupting.py"), kind, str(tmp_path), str(count), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=interruptible)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert set(seen) <= outcomes
    assert "old" in seen
    assert sum(seen.values()) >= max(count, 25)


LIMITED = """import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])"""


def full(limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run posref where no file may grow beyond `limit` bytes, as on a disk that is full then."""
    command = [sys.executable, "-c", LIMITED, str(limit), *POSREF, *arguments]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.thorough(dear=True)
@few(
    1,
    ("limit", "arguments"),
    [
        (1000, ("vectors", "build", "{}/suite", "--tier", "smoke")),
        pytest.param(20_000, ("vectors", "build", "{}/suite", "--tier", "smoke"), marks=pytest.mark.thorough),
        (20_000, ("vectors", "copy", "{}/suite")),
        (20_000, ("vectors", "export", "{}/suite")),
        (500, ("check", "posref", "--op", "alibi_slopes", "--json", "{}/suite")),
        pytest.param(500, ("check", "posref", "--op", "alibi_slopes", "--html", "{}/suite"), marks=pytest.mark.thorough),
        pytest.param(100, ("check", "posref", "--op", "alibi_slopes", "--junit", "{}/suite"), marks=pytest.mark.thorough),
    ],
)
def test_a_full_disk_is_exit_code_2_and_leaves_nothing(limit: int, arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = full(limit, *(a.format(tmp_path) for a in arguments))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "File too large" in done.stderr
    assert "suite" in done.stderr  # what was being written
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough(dear=True)
def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "suite", ["alibi_slopes"])
    before = tree(tmp_path / "suite")
    assert full(20_000, "vectors", "build", str(tmp_path / "suite"), "--tier", "smoke").returncode == 2
    assert tree(tmp_path / "suite") == before
    assert scratch_of(tmp_path / "suite") == []


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_build_that_is_told_to_stop_leaves_nothing(signum: int, tmp_path: Path) -> None:
    place = tmp_path / "suite"
    process = subprocess.Popen([*POSREF, "vectors", "build", str(place)], stderr=subprocess.DEVNULL, preexec_fn=interruptible)
    while not scratch_of(place) and process.poll() is None:
        pass
    process.send_signal(signum)
    assert process.wait(timeout=60) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough(dear=True)
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by Linux's files")
@pytest.mark.parametrize("name", share(COMMANDS, QUARTER))
def test_a_command_that_is_stopped_leaves_nothing(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ends, wrong = stop_all(5, request.config.option.seed, [name], tmp_path)
    assert not wrong
    assert sum(ends[name].values()) == 5


def test_an_old_folder_that_was_put_aside_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "suite"
    copy(INSTALLED, tmp_path / ".suite.posref-12345678" / "old", ["alibi_slopes"])
    assert put_aside(place) == tmp_path / ".suite.posref-12345678" / "old"
    with pytest.raises(ZeroDivisionError), whole_directory(place):
        assert 1 / 0  # the next build fails too
    assert list(load_groups(place))
    assert put_aside(place) is None
    assert scratch_of(place) == []


def test_the_scratch_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    with whole_directory(tmp_path / "suite", lambda _: None) as mine:
        (mine / "a").write_text("mine")
        a_folder(tmp_path / "suite", "theirs")
        assert mine.is_dir()
    assert (tmp_path / "suite" / "a").read_text() == "mine"


def test_only_scratch_folders_of_that_name_are_removed(tmp_path: Path) -> None:
    kept = [
        ".suite.posref-notours",
        ".suite.posref-ABCDEFGH",
        ".suite-12345678",
        "suite.posref-12345678",
        ".sui.posref-12345678",
    ]
    for name in kept:
        (tmp_path / name).mkdir()
    (tmp_path / ".suite.posref-87654321").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".suite.posref-11111111").symlink_to("elsewhere")
    (tmp_path / ".suite.posref-22222222").mkdir()
    a_folder(tmp_path / "suite", "new")
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {*kept, ".suite.posref-87654321", "elsewhere", ".suite.posref-11111111", "suite"}


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_files, "fcntl", None)
    (tmp_path / ".suite.posref-12345678").mkdir()
    a_folder(tmp_path / "suite", "new")
    assert {p.name for p in tmp_path.iterdir()} == {"suite", ".suite.posref-12345678"}


def test_a_folder_that_is_not_replaced_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    with whole_directory(tmp_path / "suite") as new:
        (new / "a").write_text("new")
    with pytest.raises(VectorError, match="new or empty"), whole_directory(tmp_path / "suite") as new:
        (new / "a").write_text("newer")
    assert (tmp_path / "suite" / "a").read_text() == "new"


@pytest.mark.thorough(dear=True)
def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    build(tmp_path / "link", tier="smoke")
    assert (tmp_path / "link").is_symlink()
    assert list(load_groups(tmp_path / "real"))
    (tmp_path / "real" / "SUITE.json").unlink()
    with pytest.raises(VectorError, match="holds something else"):
        build(tmp_path / "link", tier="smoke")


def test_a_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    whole_file(tmp_path / "whole", "text")
    (tmp_path / "plain").write_text("text")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode
