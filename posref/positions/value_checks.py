"""Checks of array values: that positions are within a table and slots within a cache, and what position functions check."""

from posref.core.arrays import Array, Namespace, index_dtype, library
from posref.core.checks import check_integer
from posref.types import T


def require_in_range(positions: T, num_rows: int, /, *, check: bool = True) -> T:
    """
    Return `positions` unchanged if each is a row of a table with `num_rows` rows, else raise.

    Parameters
    ----------
    positions : array of integers
        Positions of any shape.
    num_rows : int
        The number of rows in the table.
    check : bool
        Check the values. Pass False under ``jax.jit``, ``torch.compile`` and export, where array values cannot be read.

    Returns
    -------
    array of integers
        The same array.

    Raises
    ------
    ValueError
        If positions are not integers. With `check`, also if one is negative or at least `num_rows`: the message has the first.

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
    if not check:
        return positions
    outside = first_where(positions, (positions < 0) | (positions >= num_rows), xp)
    if outside is not None:
        msg = f"require_in_range: positions must be from 0 to {num_rows - 1} (the table has {num_rows} rows); got {outside}."
        raise ValueError(msg)
    return positions


def require_slots(slots: T, num_slots: int, /, *, check: bool = True) -> T:
    """
    Return `slots` unchanged if `posref.write_cache` can write into them, else raise.

    Parameters
    ----------
    slots : array of integers, shape ``(T,)``
        The slot of each token in the cache, -1 for padding.
    num_slots : int
        The number of slots in the cache: pages times their size.
    check : bool
        Check the values. Pass False under ``jax.jit``, ``torch.compile`` and export, where array values cannot be read.

    Returns
    -------
    array of integers
        The same array.

    Raises
    ------
    ValueError
        If slots are not integers of shape (T,). With `check`, also if one is below -1 or at least `num_slots`, or two tokens
        have the same slot: the message has the first.

    Examples
    --------
    >>> import numpy as np
    >>> require_slots(np.asarray([5, -1, 0, -1]), 8).tolist()
    [5, -1, 0, -1]
    """
    xp = library("require_slots", slots=slots)
    if not xp.isdtype(slots.dtype, "integral") or slots.ndim != 1:
        msg = f"require_slots: slots must be integers of shape (T,); got {slots.dtype} {tuple(slots.shape)}."
        raise ValueError(msg)
    num_slots = check_integer("require_slots", "num_slots", num_slots, 0)
    if not check:
        return slots
    signed = xp.astype(slots, index_dtype(slots))
    outside = first_where(signed, (signed < -1) | (signed >= num_slots), xp)
    if outside is not None:
        msg = f"require_slots: slots must be from 0 to {num_slots - 1} (the cache has {num_slots} slots), or -1; got {outside}."
        raise ValueError(msg)
    ordered = xp.sort(signed)
    twice = first_where(ordered[1:], (ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0), xp)
    if twice is not None:
        msg = f"require_slots: slots must differ, since tokens are written in no order; got {twice} twice."
        raise ValueError(msg)
    return slots


def first_where(values: Array, where: Array, xp: Namespace) -> int | None:
    """Return the first of `values` for which `where` is true, or None."""
    if 0 in values.shape:  # Dask cannot reshape an empty array to (-1,)
        return None
    flat, chosen = xp.reshape(values, (-1,)), xp.reshape(where, (-1,))
    if not bool(xp.any(chosen)):
        return None
    return int(flat[int(xp.argmax(xp.astype(chosen, xp.int8)))])


def counted(function: str, mask: Array, xp: Namespace, *, check: bool) -> Array:
    """Return a mask as integers. Raise if it has another dtype or, with `check`, values other than 0 and 1."""
    if not xp.isdtype(mask.dtype, ("bool", "integral")):
        msg = f"{function}: mask must be boolean or integer, 1 for tokens and 0 for padding; got {mask.dtype}."
        raise ValueError(msg)
    ones = xp.astype(mask, index_dtype(mask))
    other = first_where(ones, (ones != 0) & (ones != 1), xp) if check else None
    if other is not None:
        msg = f"{function}: mask must be 1 for tokens and 0 for padding; got {other}. Pass a mask, not token ids."
        raise ValueError(msg)
    return ones


def starts_of(function: str, cu_seqlens: Array) -> Array:
    """Return `cu_seqlens` in the indexing dtype. Raise if it does not begin with 0, or decreases."""
    xp = library(function, cu_seqlens=cu_seqlens)
    if cu_seqlens.ndim != 1 or not cu_seqlens.shape[0] or not xp.isdtype(cu_seqlens.dtype, "integral"):
        shape = tuple(cu_seqlens.shape)
        msg = f"{function}: cu_seqlens must be integers of shape (sequences + 1,); got {cu_seqlens.dtype} {shape}."
        raise ValueError(msg)
    starts = xp.astype(cu_seqlens, index_dtype(cu_seqlens))
    if int(starts[0]) or bool(xp.any(starts[1:] < starts[:-1])):
        msg = f"{function}: cu_seqlens must begin with 0 and not decrease; got {[int(s) for s in starts]}."
        raise ValueError(msg)
    return starts
