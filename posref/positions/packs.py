"""Positions of packed sequences, and the sequences that positions belong to."""

from posref.core.arrays import library, placement
from posref.positions.value_checks import starts_of
from posref.types import ArrayOf, T


def packed(cu_seqlens: ArrayOf[T], /) -> T:
    """
    Return positions that restart at 0 in every sequence of a packed batch.

    Parameters
    ----------
    cu_seqlens : array of integers, shape ``(S + 1,)``
        Where each of the S sequences begins, then the total number of tokens. Begins with 0 and never decreases.

    Returns
    -------
    array of integers, shape ``(total,)``

    Raises
    ------
    ValueError
        If `cu_seqlens` is not a 1-D array of integers, does not begin with 0, or decreases.

    Examples
    --------
    >>> import numpy as np
    >>> packed(np.asarray([0, 3, 3, 5])).tolist()
    [0, 1, 2, 0, 1]
    """
    xp = library("packed", cu_seqlens=cu_seqlens)
    starts = starts_of("packed", cu_seqlens)
    every = xp.arange(int(starts[-1]), dtype=starts.dtype, **placement(cu_seqlens, xp))
    sequence = xp.searchsorted(starts, every, side="right") - 1
    return every - xp.take(starts, sequence, axis=0)
