"""The numbers of a rank and of all ranks."""

from posref.core.checks import check_integer
from posref.spec import Domain, Integer

# limits for the calls of `posref check`; the functions themselves take more ranks
RANKS: dict[str, Domain] = {"rank": Integer(0, 63, usual=3), "ranks": Integer(1, 64, usual=4)}


def check_rank(function: str, rank: int, ranks: int) -> tuple[int, int]:
    """Return both as ints. Raise if rank is not from 0 to ``ranks - 1``."""
    ranks = check_integer(function, "ranks", ranks, 1)
    rank = check_integer(function, "rank", rank, 0)
    if rank >= ranks:
        msg = f"{function}: rank must be below ranks ({ranks}); got {rank}."
        raise ValueError(msg)
    return rank, ranks
