"""Positions beside a cache of keys."""

from posref.arrays import index_dtype, namespace, placement
from posref.checks import check_integer
from posref.positions.looking import first_where
from posref.types import ArrayOf, T


def decode(cached: ArrayOf[T], new: int, /) -> T:
    """
    Return the positions of the next `new` tokens of every row, after the tokens in its cache.

    Parameters
    ----------
    cached : array of integers, shape ``(*B,)``
        Number of tokens in the cache before this call, without padding.
    new : int
        Tokens in this call.

    Returns
    -------
    array of integers, shape ``(*B, new)``

    Examples
    --------
    >>> import numpy as np
    >>> decode(np.asarray([7, 3]), 2).tolist()
    [[7, 8], [3, 4]]
    """
    new = check_integer("decode", "new", new, 0)
    xp = namespace(cached)
    if not xp.isdtype(cached.dtype, "integral") or first_where(cached, cached < 0, xp) is not None:
        msg = f"decode: cached must be integers of at least 0; got {cached.dtype}, or a negative one."
        raise ValueError(msg)
    before = xp.astype(cached, index_dtype(cached))
    return before[..., None] + xp.arange(new, dtype=before.dtype, **placement(cached, xp))


def evicted(kept: ArrayOf[T], /, *, reindex: bool) -> T:
    """
    Return the positions of the keys left in a cache after others were evicted (`lambda_window` says which).

    Parameters
    ----------
    kept : array of integers, shape ``(*B, K)``
        Original positions of the keys kept, increasing along K.
    reindex : bool
        True: their places in the cache, 0 to K - 1 (StreamingLLM, where the query is then at K). False: their original
        positions (H2O, SnapKV).

    Returns
    -------
    array of integers, shape ``(*B, K)``

    Examples
    --------
    >>> import numpy as np
    >>> evicted(np.asarray([0, 1, 900, 901]), reindex=True).tolist()
    [0, 1, 2, 3]
    """
    xp = namespace(kept)
    if not xp.isdtype(kept.dtype, "integral") or bool(xp.any(kept[..., 1:] <= kept[..., :-1])):
        msg = f"evicted: kept must be integers that increase along the last axis; got {kept.dtype}, or some that do not."
        raise ValueError(msg)
    own = xp.astype(kept, index_dtype(kept))
    if not reindex:
        return own
    places = xp.arange(kept.shape[-1], dtype=own.dtype, **placement(kept, xp))
    return xp.broadcast_to(places, kept.shape)
