"""Checks of array values, for the position functions that make them."""

from posref.core.arrays import Array, Namespace, index_dtype, library


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
