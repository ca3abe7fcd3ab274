"""More than one process or device holds: the examples of the guide, each in processes of its own."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples" / "larger"


def printed(name: str) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_dask_rotates_ten_million_positions_in_bounded_memory() -> None:
    found = re.fullmatch(r"10000000 positions: (\d+) MiB of queries, memory grew by (\d+) MiB\n", printed("dask_tokens.py"))
    assert found is not None
    queries, grown = map(int, found.groups())
    assert queries == round(10_000_000 * 32 * 4 / 2**20)
    assert grown * 4 < queries  # chosen: chunks of 8 MiB on two threads, and far less than a whole array


def test_four_processes_share_a_sequence_with_dtensor() -> None:
    shards = [f"process {k}: tokens {16 * k} to {16 * k + 15} are right, nothing was sent" for k in range(4)]
    assert sorted(printed("dtensor_tokens.py").splitlines()) == shards


def test_four_devices_share_a_sequence_with_shard_map() -> None:
    assert printed("jax_tokens.py") == "4 devices: each has 16 of 64 tokens, nothing was sent\n"
