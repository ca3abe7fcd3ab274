"""Positions in packed sequences."""

from posref.arrays import index_dtype, namespace, placement
from posref.types import ArrayOf, T


def packed(cu_seqlens: ArrayOf[T], /) -> T:
    """
    Return positions that start again from 0 in every sequence of a packed batch.

    Parameters
    ----------
    cu_seqlens : array of integers, shape ``(S + 1,)``
        Where each of the S sequences begins, then the total. The first is 0, and none is less than the one before.

    Returns
    -------
    array of integers, shape ``(total,)``

    Raises
    ------
    ValueError
        If `cu_seqlens` does not begin with 0, or decreases.

    Examples
    --------
    >>> import numpy as np
    >>> packed(np.asarray([0, 3, 3, 5])).tolist()
    [0, 1, 2, 0, 1]
    """
    xp = namespace(cu_seqlens)
    if cu_seqlens.ndim != 1 or not cu_seqlens.shape[0] or not xp.isdtype(cu_seqlens.dtype, "integral"):
        shape = tuple(cu_seqlens.shape)
        msg = f"packed: cu_seqlens must be integers of shape (sequences + 1,); got {cu_seqlens.dtype} {shape}."
        raise ValueError(msg)
    starts = xp.astype(cu_seqlens, index_dtype(cu_seqlens))
    if int(starts[0]) or bool(xp.any(starts[1:] < starts[:-1])):
        msg = f"packed: cu_seqlens must begin with 0 and not decrease; got {[int(s) for s in starts]}."
        raise ValueError(msg)
    every = xp.arange(int(starts[-1]), dtype=starts.dtype, **placement(cu_seqlens, xp))
    own = xp.searchsorted(starts, every, side="right") - 1
    return every - xp.take(starts, own, axis=0)
