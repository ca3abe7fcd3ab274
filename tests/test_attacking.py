"""Attacks on files, folders, streams, signals, numbers and names end with a sentence, or the verdict, and lose nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
from attacking import ATTACKS
from sampling import few, share

SCRIPT = Path(__file__).with_name("attacking.py")


@pytest.mark.skipif(sys.platform != "linux", reason="devices, limits and signals are Linux's")
@few(1, "name", share(ATTACKS, part=0.5))
def test_an_attack_loses_nothing(name: str) -> None:
    """In a process of its own, whose memory is small: that of a child is counted from its parent's on."""
    command = [sys.executable, str(SCRIPT), f"={name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 attacks, 0 end badly" in done.stdout
