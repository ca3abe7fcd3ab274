"""Positions of one rank's tokens under context parallelism."""

from posref.checks import check_integer
from posref.grids import made
from posref.types import HOST, N, NamespaceOf


def zigzag(length: int, /, *, rank: int, ranks: int, xp: NamespaceOf[N] | None = HOST) -> N:
    """
    Return the positions of one rank's shard under context parallelism, shared out so that causal work is balanced.

    The sequence is cut into ``2 * ranks`` chunks. Rank r has chunks r and ``2 * ranks - 1 - r``.

    Parameters
    ----------
    length : int
        Tokens in the whole sequence, a multiple of ``2 * ranks``.
    rank, ranks : int
        The number of this shard, from 0, and how many there are.

    Returns
    -------
    array of integers, shape ``(length // ranks,)``

    Raises
    ------
    ValueError
        If `length` is not a multiple of ``2 * ranks`` or `rank` is out of range.

    Examples
    --------
    >>> zigzag(8, rank=0, ranks=2).tolist()
    [0, 1, 6, 7]
    """
    length = check_integer("zigzag", "length", length, 0)
    ranks = check_integer("zigzag", "ranks", ranks, 1)
    rank = check_integer("zigzag", "rank", rank, 0)
    if rank >= ranks or length % (2 * ranks):
        msg = f"zigzag: rank must be below ranks and length a multiple of {2 * ranks}; got {rank} of {ranks}, {length}."
        raise ValueError(msg)
    chunk = length // (2 * ranks)
    starts = (rank * chunk, (2 * ranks - 1 - rank) * chunk)
    return made([start + i for start in starts for i in range(chunk)], (2 * chunk,), xp)
