"""What position functions look at in array values, to refuse those that are wrong."""

from posref.arrays import Array, Namespace, index_dtype


def first_where(values: Array, where: Array, xp: Namespace) -> int | None:
    """Return the first of `values` at which `where` is true, or None."""
    flat, chosen = xp.reshape(values, (-1,)), xp.reshape(where, (-1,))
    if not flat.shape[0] or not bool(xp.any(chosen)):
        return None
    return int(flat[int(xp.argmax(xp.astype(chosen, xp.int8)))])


def counted(function: str, mask: Array, xp: Namespace, *, check: bool) -> Array:
    """Return a mask as integers; refuse another dtype and, with `check`, anything but 0 and 1."""
    if not xp.isdtype(mask.dtype, ("bool", "integral")):
        msg = f"{function}: mask must be boolean or integer, 1 for tokens and 0 for padding; got {mask.dtype}."
        raise ValueError(msg)
    ones = xp.astype(mask, index_dtype(mask))
    other = first_where(ones, (ones != 0) & (ones != 1), xp) if check else None
    if other is not None:
        msg = f"{function}: mask must be 1 for tokens and 0 for padding; got {other}. Pass a mask, not token ids."
        raise ValueError(msg)
    return ones
