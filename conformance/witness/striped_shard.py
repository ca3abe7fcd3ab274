"""A striped shard. Source: Brandon et al., Striped Attention, arXiv:2311.09431, section 3.1: token p is on rank p mod c."""

from typing import Any


def striped_shard(length: int, *, rank: int, ranks: int) -> Any:
    """Return the positions of one rank."""
    return [p for p in range(length) if p % ranks == rank]
