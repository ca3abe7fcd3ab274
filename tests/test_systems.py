"""What works without fork, limits of resources and locks of files, as on Windows: everything, targets without limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import everything, few

ROOT = Path(__file__).parents[1]
HIDING = """
import os, shutil, signal, subprocess, sys, tempfile  # the standard library itself has what it needs here
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "setsid", "killpg", "getpgid", "memfd_create", "pread", "pwrite"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "geteuid", "getuid", "set_blocking", "sysconf", "waitid", "mkfifo"):
    delattr(os, name)
for name in ("SIGHUP", "SIGCHLD", "SIGPIPE"):
    delattr(signal, name)
begin = subprocess.Popen.__init__
def refusing(self, *given, pass_fds=(), preexec_fn=None, **others):
    assert not pass_fds and preexec_fn is None, "not supported on Windows"
    begin(self, *given, **others)
subprocess.Popen.__init__ = refusing
"""
ALONE = """
import numpy as np, posref
from posref.conformance import check
from posref.testing import assert_conforms
assert posref.alibi_slopes(8).shape == (8,)
assert check(posref, op="alibi_slopes").conformant
positions, table = np.asarray([0, 1]), np.ones((2, 2), dtype=np.float32)
assert_conforms("learned", posref.learned(positions, table), positions, table)
"""


def run(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code where all this is hidden, also in the processes that it starts."""
    hidden = folder / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "sitecustomize.py").write_text(HIDING)
    command = [sys.executable, "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": f"{hidden}{os.pathsep}{ROOT}"}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


def test_definitions_and_checks_of_objects_work(tmp_path: Path) -> None:
    done = run(tmp_path, ALONE)
    assert done.returncode == 0, done.stderr


@few(
    1,
    ("arguments", "code"),
    [
        (("list",), 0),
        (("show", "rope"), 0),
        (("doctor",), 0),
        (("golden", "alibi_slopes", "--option", "heads=8", "-o", "out.npz"), 0),
        (("golden", "alibi_slopes", "--option", "heads=8", "--jobs", "1", "-o", "suite"), 0),
        (("vectors", "copy", "copied", "--op", "alibi_slopes"), 0),
        (("plot", "alibi"), 0),
        (("fuzz", "posref", "--op", "alibi_slopes", "--examples", "3"), 0),
        (("check", "--command", "anything"), 2),
    ],
)
def test_commands_work_or_say_what_they_need(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = run(tmp_path, "from posref.cli import main; main()", *arguments)
    assert done.returncode == code, done.stderr
    assert "fault of posref" not in done.stderr
    assert ("cannot run 'anything': No such file or directory" in done.stderr) == (code == 2)


def report(folder: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    """Return the exit code and the report of a check where all this is hidden."""
    done = run(folder, "from posref.cli import main; main()", "check", *arguments, "--seed", "1", "--json", "-")
    assert done.returncode < 2, done.stderr
    return done.returncode, dict(json.loads(done.stdout))


def usual(folder: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    """Return the exit code and the report of the same check on this system."""
    command = [sys.executable, "-P", "-m", "posref", "check", *arguments, "--seed", "1", "--json", "-"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    return done.returncode, dict(json.loads(done.stdout))


def assert_same(folder: Path, *arguments: str) -> None:
    """Assert that a check gives the same report here and there, but for where the target computes."""
    (there, hidden), (here, shown) = report(folder, *arguments), usual(folder, *arguments)
    assert there == here
    processes = {"limited", "plain"} if hasattr(os, "fork") else {"plain"}
    assert {hidden["target"].pop("process"), shown["target"].pop("process")} == processes
    assert "without limits of memory" in hidden["target"]["notes"].pop(-1)
    assert hidden == shown


@pytest.mark.thorough(dear=True)
def test_a_check_gives_the_same_report(tmp_path: Path) -> None:
    assert_same(tmp_path, "posref", "--op", "alibi")


@pytest.mark.thorough(dear=True)
def test_a_wrong_target_gives_the_same_report(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "import os, posref\n"
        "def alibi_slopes(heads, /): return posref.alibi_slopes(heads) * 2\n"
        "def sinusoidal(*given, **options): os._exit(3)\n",
        encoding="utf-8",
    )
    assert_same(tmp_path, "wrong.py")


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("tier", ["smoke", pytest.param("core", marks=everything)])
def test_all_operations_give_the_same_report(tmp_path: Path, tier: str) -> None:
    assert_same(tmp_path, "posref", "--tier", tier)


@pytest.mark.thorough(dear=True)
def test_a_call_that_hangs_ends_at_its_time_limit(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text("import time\ndef alibi_slopes(heads, /): time.sleep(600)\n", encoding="utf-8")
    code, found = report(tmp_path, "hanging.py", "--timeout", "1")
    assert code == 1
    assert found["counts"]["timeout"] == 1
    assert found["counts"]["not-run"]
