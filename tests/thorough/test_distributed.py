"""PyTorch's DTensor: constants join it, so that every operation takes it, whole or cut along tokens."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TARGET = Path(__file__).parents[1] / "targets" / "distributed.py"
CUT = dict.fromkeys(("circulant_string True", "path_logits True"), "redistribute")  # PyTorch asks to gather what is folded


@pytest.mark.thorough(dear=True)
def test_every_operation_takes_dtensors() -> None:
    done = subprocess.run([sys.executable, str(TARGET)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    off = json.loads(done.stdout.splitlines()[-1])
    assert off.keys() == CUT.keys(), off
    assert all(word in off[name] for name, word in CUT.items()), off
