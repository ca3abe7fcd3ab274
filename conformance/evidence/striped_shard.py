"""Striped shard of a sequence: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.position_ids import changed_shard, every_rank
from .tools import Case, cases_of, deviations_of
from .tools.hints import SHARD_POSITIONS

USUAL: dict[str, Any] = {"length": 11, "rank": 1, "ranks": 3}
OTHER_VALUES = {"length": 14}

_case = cases_of("striped_shard")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("two/first", {"length": 8, "rank": 0, "ranks": 2}, tier="smoke"),
        _case("four/third", {"length": 41, "rank": 2, "ranks": 4}),
        _case("four/last", {"length": 24, "rank": 3, "ranks": 4}),
        _case("eight/long", {"length": 1043, "rank": 5, "ranks": 8}),
        _case("eight/few", {"length": 5, "rank": 4, "ranks": 8}, comment="one token"),
        _case("one/none", {"length": 0, "rank": 0, "ranks": 1}, comment="no tokens"),
        _case("refused/rank", {"length": 16, "rank": 4, "ranks": 4}, comment="no such rank", kind="reject"),
        every_rank("striped_shard", 17),
    )


_deviation = deviations_of("striped_shard")

DEVIATIONS = (
    _deviation("stripes-contiguous", "shards are contiguous",
               changed_shard(lambda length, rank, ranks: np.array_split(np.arange(length), ranks)[rank]),
               hint="Tokens are dealt to the ranks one by one."),
    _deviation("stripes-local", "positions count from 0 in every shard",
               changed_shard(lambda length, rank, ranks: range(len(range(rank, length, ranks)))),
               hint=SHARD_POSITIONS),
    _deviation("stripes-from-one", "ranks are counted from 1: positions are one too large",
               changed_shard(lambda length, rank, ranks: range(rank + 1, length + 1, ranks)), hint="Rank 0 begins at token 0."),
)  # fmt: skip
