"""Position ids. The functions of this module alone may look at array values."""

from posref.arrays import Array, namespace


def require_in_range(positions: Array, length: int, /) -> Array:
    """
    Return integer `positions` unchanged if every one is a row of a table of `length` rows.

    Raises
    ------
    ValueError
        If one is negative or at least `length`; it names the first.

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
    flat = xp.reshape(positions, (-1,))
    outside = (flat < 0) | (flat >= length)
    if flat.shape[0] and bool(xp.any(outside)):
        first = int(flat[int(xp.argmax(xp.astype(outside, xp.int8)))])
        msg = f"require_in_range: positions must be from 0 to {length - 1} (the table has {length} rows); got {first}."
        raise ValueError(msg)
    return positions
