"""
A zig-zag shard. Source: Megatron-core, get_batch_on_this_cp_rank: of 2c chunks, rank r has chunks r and 2c - r - 1.
"""

from typing import Any


def zigzag_shard(length: int, *, rank: int, ranks: int) -> Any:
    """Return the positions whose chunk is one of the two."""
    chunk = length // (2 * ranks)
    return [p for p in range(length) if p // chunk in (rank, 2 * ranks - rank - 1)]
