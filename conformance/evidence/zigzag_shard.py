"""Zig-zag shard of a sequence: cases and known mistakes."""

from typing import Any

from .shared.position_ids import changed_shard, every_rank
from .tools import Case, cases_of, deviations_of
from .tools.hints import SHARD_POSITIONS

USUAL: dict[str, Any] = {"length": 12, "rank": 1, "ranks": 3}

_case = cases_of("zigzag_shard")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("two/first", {"length": 8, "rank": 0, "ranks": 2}, tier="smoke"),
        _case("four/third", {"length": 40, "rank": 2, "ranks": 4}),
        _case("four/last", {"length": 24, "rank": 3, "ranks": 4}),
        _case("eight/long", {"length": 1040, "rank": 5, "ranks": 8}),
        _case("one/none", {"length": 0, "rank": 0, "ranks": 1}, comment="no tokens"),
        _case("refused/odd", {"length": 10, "rank": 0, "ranks": 4}, comment="not two chunks for each rank", kind="reject"),
        _case("refused/rank", {"length": 16, "rank": 4, "ranks": 4}, comment="no such rank", kind="reject"),
        every_rank("zigzag_shard", 18),
    )


def _chunks(length: int, ranks: int, *which: int) -> list[int]:
    size = length // (2 * ranks)
    return [chunk * size + i for chunk in which for i in range(size)]


_deviation = deviations_of("zigzag_shard")

DEVIATIONS = (
    _deviation("shard-contiguous", "shards are contiguous",
               changed_shard(lambda length, rank, ranks: _chunks(length, ranks, 2 * rank, 2 * rank + 1)),
               hint="Rank r has chunk r and the r-th from the end."),
    _deviation("shard-not-mirrored", "the second chunk is counted from the middle, not from the end",
               changed_shard(lambda length, rank, ranks: _chunks(length, ranks, rank, ranks + rank)),
               hint="The second chunk is counted from the end: 2c - 1 - r."),
    _deviation("shard-local", "positions count from 0 in every shard",
               changed_shard(lambda length, rank, ranks: range(length // ranks)),
               hint=SHARD_POSITIONS),
    _deviation("shard-tail-first", "the second chunk comes before the first",
               changed_shard(lambda length, rank, ranks: _chunks(length, ranks, 2 * ranks - 1 - rank, rank)),
               hint="The chunk from the front comes first."),
    _deviation("shard-tail-backwards", "the second chunk is reversed",
               changed_shard(lambda length, rank, ranks: [*_chunks(length, ranks, rank),
               *_chunks(length, ranks, 2 * ranks - 1 - rank)[::-1]]),
               hint="Only the order of chunks is mirrored, not the tokens in a chunk."),
)  # fmt: skip
