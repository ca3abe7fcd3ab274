"""
Rotate ten million positions in bounded memory with Dask: chunks of tokens are made, rotated, used and dropped.

    python examples/larger/dask_tokens.py [TOKENS]

It prints the size of all queries, and by how much the memory of this process grew.
"""

import resource
import sys

import dask
import dask.array as da
import numpy as np

import posref

TOKENS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
HEAD, CHUNK = 32, 65_536
OPTIONS = {"layout": "half", "base": 10_000_000.0}


def peak() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def queries(positions):
    """Return made-up queries at some positions, where a model would read a file."""
    return (positions[:, None] % 97 - np.arange(HEAD, dtype=np.int64)).astype(np.float32)


positions = da.arange(TOKENS, chunks=CHUNK)
x = positions.map_blocks(queries, dtype=np.float32, new_axis=1, chunks=(positions.chunks[0], (HEAD,)))
rotated = posref.rope(x, positions, **OPTIONS)
assert rotated.chunks[0] == x.chunks[0]  # no chunk of tokens was joined with another

last = slice(TOKENS - 3, TOKENS)
before = peak()
with dask.config.set(scheduler="threads", num_workers=2):
    norm, norm_rotated, end = dask.compute((x**2).sum(), (rotated**2).sum(), rotated[last])
grown = peak() - before

there = np.arange(TOKENS)[last]
assert np.array_equal(end, posref.rope(queries(there), there, **OPTIONS))  # the same bits as without Dask
assert abs(norm_rotated / norm - 1) < 1e-4  # a rotation keeps every norm
print(f"{TOKENS} positions: {x.nbytes / 2**20:.0f} MiB of queries, memory grew by {grown / 2**20:.0f} MiB")
