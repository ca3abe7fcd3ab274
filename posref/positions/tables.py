"""A check that positions are rows of a learned table."""

from posref.core.arrays import library
from posref.positions.value_checks import first_where
from posref.types import T


def require_in_range(positions: T, length: int, /) -> T:
    """
    Return `positions` unchanged if each is a row of a table with `length` rows, else raise.

    Parameters
    ----------
    positions : array of integers
        Positions of any shape.
    length : int
        The number of rows in the table.

    Returns
    -------
    array of integers
        The same array.

    Raises
    ------
    ValueError
        If positions are not integers, or one is negative or at least `length`. The message has the first such position.

    Examples
    --------
    >>> import numpy as np
    >>> require_in_range(np.asarray([0, 511]), 512).tolist()
    [0, 511]
    """
    xp = library("require_in_range", positions=positions)
    if not xp.isdtype(positions.dtype, "integral"):
        msg = f"require_in_range: positions must be integers; got {positions.dtype}."
        raise ValueError(msg)
    outside = first_where(positions, (positions < 0) | (positions >= length), xp)
    if outside is not None:
        msg = f"require_in_range: positions must be from 0 to {length - 1} (the table has {length} rows); got {outside}."
        raise ValueError(msg)
    return positions
