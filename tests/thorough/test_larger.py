"""More than one process or device holds: the examples of the guide, each in processes of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "larger"


def printed(name: str) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.thorough(dear=True)
def test_dask_rotates_ten_million_positions_in_bounded_memory() -> None:
    found = re.fullmatch(r"10000000 positions: (\d+) MiB of queries, memory grew by (\d+) MiB\n", printed("dask_tokens.py"))
    queries, grown = map(int, found.groups())
    assert queries == round(10_000_000 * 32 * 4 / 2**20)
    assert grown * 4 < queries  # chosen: chunks of 8 MiB on two threads, and far less than a whole array


@pytest.mark.thorough(dear=True)
def test_four_processes_share_a_sequence_with_dtensor() -> None:
    shards = [f"process {k}: tokens {16 * k} to {16 * k + 15} are right, nothing was sent" for k in range(4)]
    assert sorted(printed("dtensor_tokens.py").splitlines()) == shards


@pytest.mark.thorough(dear=True)
def test_four_devices_share_a_sequence_with_shard_map() -> None:
    assert printed("jax_tokens.py") == "4 devices: each has 16 of 64 tokens, nothing was sent\n"


GROWTH = """
import numpy as np
import torch
import posref
from benchmarks.measure import peak
from posref.core import blocks

x, positions = np.ones((1, 32, 8192, 128), dtype=np.float32), np.arange(8192)  # 128 MiB

def show(make, layout):
    grown = peak(lambda: posref.rope(make(x), make(positions), layout=layout, base=10_000.0))
    print(grown / x.nbytes)

for make in (np.asarray, torch.from_numpy):
    for layout in ("half", "interleaved"):
        show(make, layout)
blocks.ON = False
show(np.asarray, "half")
"""


@pytest.mark.thorough(dear=True)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory")
def test_queries_are_rotated_in_the_memory_of_their_result() -> None:
    """The result is 1, and all that is held beside it 0.15, on NumPy and PyTorch in both layouts. All at once needs more."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=False, timeout=500, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    *in_blocks, at_once = map(float, done.stdout.split())
    assert len(in_blocks) == 4
    assert max(in_blocks) < 1.15, in_blocks
    assert at_once > 1.5
