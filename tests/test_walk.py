"""A thought crosses few files: what a check and golden data call."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("walk.py")
# Files. Six of a check speak the protocol, and seven ask fresh calls on which near names differ. Of golden data 14 are
# definitions and witnesses of four operations, and the core.
MOST = {"check": 72, "golden": 38}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MOST)
def test_a_walk_crosses_few_files(name: str) -> None:
    """In a process of its own, in which nothing was asked before."""
    done = subprocess.run([sys.executable, str(PROGRAM), name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [line for line in done.stdout.splitlines() if line.startswith(" ")]
    assert 20 < len(files) <= MOST[name], done.stdout
