"""
Four processes share one sequence with PyTorch's DTensor: each has a quarter of the tokens, and no process gets the others'.

    torchrun --nproc-per-node 4 examples/larger/dtensor_tokens.py

Without torchrun it starts four processes itself. Every process compares its quarter with the rows of a whole computation.
"""

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode

import posref

PROCESSES, TOKENS, FIRST = 4, 64, 100_000
OPTIONS = {"layout": "half", "base": 500_000.0}


def whole():
    """Return queries, keys, values and positions of all tokens, the same in every process."""
    torch.manual_seed(0)
    return *torch.randn(3, 2, 4, TOKENS, 32), torch.arange(FIRST, FIRST + TOKENS)


def layer(q, k, v, q_positions, k_positions):
    """Return attention with rotated queries and keys and ALiBi: any bias adds to it in the same way."""
    rotated = [posref.rope(x, p, **OPTIONS) for x, p in ((q, q_positions), (k, k_positions))]
    bias = posref.alibi(q_positions, k_positions, heads=4, form="causal", dtype=torch.float32)
    near = posref.sliding_window(q_positions, k_positions, window=16, counting="with_query", sides="causal")
    return posref.attention(*rotated, v, bias=bias, mask=near)


def work():
    """Compute this process's quarter, and compare it."""
    mesh = init_device_mesh("cpu", (PROCESSES,))
    q, k, v, positions = whole()
    tokens, rows, all_of_them = [Shard(2)], [Shard(0)], [Replicate()]
    shards = distribute_tensor(q, mesh, tokens), *(distribute_tensor(x, mesh, all_of_them) for x in (k, v))
    q_positions, k_positions = (distribute_tensor(positions, mesh, placed) for placed in (rows, all_of_them))
    with CommDebugMode() as sent:
        rotated = posref.rope(shards[0], q_positions, **OPTIONS)
        found = layer(*shards, q_positions, k_positions)
    assert isinstance(found, DTensor)
    assert rotated.placements == found.placements == tuple(tokens)
    assert sent.get_total_counts() == 0, sent.get_comm_counts()  # nothing was sent between processes
    mine = slice(dist.get_rank() * TOKENS // PROCESSES, (dist.get_rank() + 1) * TOKENS // PROCESSES)
    assert torch.equal(rotated.to_local(), posref.rope(q, positions, **OPTIONS)[:, :, mine])
    # averages of normal numbers, below 5, whose products are added in another order: two units in the last place
    torch.testing.assert_close(found.to_local(), layer(q, k, v, positions, positions)[:, :, mine], rtol=0.0, atol=1e-6)
    print(f"process {dist.get_rank()}: tokens {mine.start} to {mine.stop - 1} are right, nothing was sent", flush=True)


def child(rank, folder):
    """Run one of four processes that meet in a file."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=PROCESSES)
    torch.set_num_threads(1)
    work()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        work()
        dist.destroy_process_group()
    else:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.start_processes(child, (str(Path(folder)),), nprocs=PROCESSES, start_method="fork")
