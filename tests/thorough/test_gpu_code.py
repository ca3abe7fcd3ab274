"""
The tests for a GPU run on a CPU too, with a stand-in for CuPy: so their code is tested, and every call that a definition makes
is one that CuPy takes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from posref.spec import REGISTRY

TESTS = Path(__file__).parents[1]


def ran(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "pytest", str(TESTS / "gpu"), "-n", "0", "-q", "-p", "no:cacheprovider", *options)
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS.parent, env=alone | environment)


@pytest.mark.thorough(dear=True)
def test_every_operation_is_right_on_the_stand_in_for_cupy() -> None:
    done = ran(POSREF_SMALL="1")
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert int(passed[1]) > len(REGISTRY)
    assert "skipped" not in done.stdout


@pytest.mark.thorough(dear=True)
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_they_fail_and_say_what_runs() -> None:
    done = ran("--co")
    assert done.returncode != 0
    assert "no GPU that PyTorch knows: `POSREF_SMALL=1 pytest tests/gpu` runs these tests on a CPU" in done.stdout
