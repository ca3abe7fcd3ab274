"""Positions as rows of a learned table."""

from posref.arrays import namespace
from posref.positions.looking import first_where
from posref.types import T


def require_in_range(positions: T, length: int, /) -> T:
    """
    Return integer `positions` unchanged if each is a row of a table of `length` rows.

    Raises
    ------
    ValueError
        If a position is negative or at least `length`. The message has the first such position.

    Examples
    --------
    >>> import numpy as np
    >>> require_in_range(np.asarray([0, 511]), 512).tolist()
    [0, 511]
    """
    xp = namespace(positions)
    if not xp.isdtype(positions.dtype, "integral"):
        msg = f"require_in_range: positions must be integers; got {positions.dtype}."
        raise ValueError(msg)
    outside = first_where(positions, (positions < 0) | (positions >= length), xp)
    if outside is not None:
        msg = f"require_in_range: positions must be from 0 to {length - 1} (the table has {length} rows); got {outside}."
        raise ValueError(msg)
    return positions
