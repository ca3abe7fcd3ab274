"""What works without fork, limits of resources and locks of files, as on Windows: all but the processes of targets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HIDING = """
import os, shutil, signal, subprocess, sys, tempfile  # the standard library itself has what it needs here
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "setsid", "killpg", "getpgid", "memfd_create", "pread", "pwrite"):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGHUP
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
    command = [sys.executable, "-c", HIDING + code, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


def test_definitions_and_checks_of_objects_work(tmp_path: Path) -> None:
    done = run(tmp_path, ALONE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("list",), 0),
        (("show", "rope"), 0),
        (("doctor",), 0),
        (("golden", "alibi_slopes", "--option", "heads=8", "-o", "out.npz"), 0),
        (("golden", "alibi_slopes", "--option", "heads=8", "--jobs", "1", "-o", "suite"), 0),
        (("vectors", "copy", "copied", "--op", "alibi_slopes"), 0),
        (("plot", "alibi"), 0),
        (("check", "posref"), 2),
        (("check", "--command", "anything"), 2),
    ],
)
def test_commands_work_or_say_what_they_need(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = run(tmp_path, "from posref.cli import main; main()", *arguments)
    assert done.returncode == code, done.stderr
    assert "fault of posref" not in done.stderr
    assert ("needs a process with limits" in done.stderr) == (code == 2)
