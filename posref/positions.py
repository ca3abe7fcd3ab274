"""
Position ids: from masks, tokens, packed sequences, shards, caches, and grids of image and video.

They count tokens, in the indexing dtype of the argument's library (int64; int32 in JAX without x64). Functions of host numbers
return NumPy arrays unless `xp` is given. In 32 bits, positions 2**31 or more apart wrap around and look nearer. Only the
functions of this module may look at array values.
"""

from posref.arrays import Array, Namespace, index_dtype, namespace, placement
from posref.checks import check_integer
from posref.grids import centred, grid, made, multimodal, scaled, with_origin
from posref.types import HOST, ArrayOf, N, NamespaceOf, T

__all__ = [
    "centred", "decode", "evicted", "from_mask", "from_tokens", "grid", "multimodal", "packed", "require_in_range", "scaled",
    "with_origin", "zigzag",
]  # fmt: skip


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
    outside = _first(positions, (positions < 0) | (positions >= length), xp)
    if outside is not None:
        msg = f"require_in_range: positions must be from 0 to {length - 1} (the table has {length} rows); got {outside}."
        raise ValueError(msg)
    return positions


def from_mask(mask: ArrayOf[T], /, *, padding: int, check: bool = True) -> T:
    r"""
    Return the position of every token of padded rows: the number of tokens before it, padding not counted.

    .. math:: p_t = \sum_{u \le t} m_u - 1

    where m is the mask and t the place in the row.

    Parameters
    ----------
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        m, 1 for tokens and 0 for padding. Padding may be on the left, on the right or on both sides, but not between tokens.
    padding : int
        The position given to padding; nothing should depend on it. transformers' generation has 0 (5.23.0,
        generation/utils.py:906; older versions 1), vLLM 0.
    check : bool
        Look at the values of the mask, to refuse what is not one. Under ``jax.jit`` and ``torch.compile`` they cannot be looked
        at: pass False there.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If the mask is neither boolean nor integer; with `check`, if a value is neither 0 nor 1 or there is padding between
        tokens.

    Notes
    -----
    BLOOM and OPT count in this way too. OPT then adds 2 (`posref.learned` has an offset) and gives padding row 1.

    Examples
    --------
    >>> import numpy as np
    >>> from_mask(np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]]), padding=0).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 0]]
    """
    xp = namespace(mask)
    ones = _counted("from_mask", mask, xp, check=check)
    counts = xp.cumulative_sum(ones, axis=-1)
    if check and mask.shape[-1]:
        begins = xp.astype((ones[..., 1:] == 1) & (ones[..., :-1] == 0), ones.dtype)
        runs = xp.sum(begins, axis=-1) + ones[..., 0]
        if bool(xp.any(runs > 1)):
            msg = "from_mask: padding must come before or after the tokens of a row; got some between them. Use packed()."
            raise ValueError(msg)
    return xp.where(ones == 1, counts - 1, xp.asarray(padding, dtype=ones.dtype, **placement(mask, xp)))


def from_tokens(tokens: ArrayOf[T], /, *, padding_idx: int) -> T:
    r"""
    Return RoBERTa's and fairseq's rows of a learned table: tokens count from ``padding_idx + 1``, padding is `padding_idx`.

    .. math:: p_t = \mathrm{pad} + [x_t \ne \mathrm{pad}] \sum_{u \le t} [x_u \ne \mathrm{pad}]

    where x_t is token t, pad is `padding_idx`, and a bracket is 1 if true, else 0.

    Parameters
    ----------
    tokens : array of integers, shape ``(*B, T)``
        x, token ids.
    padding_idx : int
        The id of the padding token; 1 in RoBERTa, XLM-R, BART's encoder and M2M100.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Examples
    --------
    >>> import numpy as np
    >>> from_tokens(np.asarray([0, 42, 7, 1, 1]), padding_idx=1).tolist()
    [2, 3, 4, 1, 1]
    """
    xp = namespace(tokens)
    if not xp.isdtype(tokens.dtype, "integral"):
        msg = f"from_tokens: tokens must be integers; got {tokens.dtype}."
        raise ValueError(msg)
    real = xp.astype(tokens != padding_idx, index_dtype(tokens))
    return xp.cumulative_sum(real, axis=-1) * real + padding_idx


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
    if not xp.isdtype(cached.dtype, "integral") or _first(cached, cached < 0, xp) is not None:
        msg = f"decode: cached must be integers of at least 0; got {cached.dtype}, or a negative one."
        raise ValueError(msg)
    before = xp.astype(cached, index_dtype(cached))
    return before[..., None] + xp.arange(new, dtype=before.dtype, **placement(cached, xp))


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


def _counted(function: str, mask: Array, xp: Namespace, *, check: bool) -> Array:
    """Return a mask as integers; refuse another dtype and, with `check`, anything but 0 and 1."""
    if not xp.isdtype(mask.dtype, ("bool", "integral")):
        msg = f"{function}: mask must be boolean or integer, 1 for tokens and 0 for padding; got {mask.dtype}."
        raise ValueError(msg)
    ones = xp.astype(mask, index_dtype(mask))
    other = _first(ones, (ones != 0) & (ones != 1), xp) if check else None
    if other is not None:
        msg = f"{function}: mask must be 1 for tokens and 0 for padding; got {other}. Pass a mask, not token ids."
        raise ValueError(msg)
    return ones


def _first(values: Array, where: Array, xp: Namespace) -> int | None:
    """Return the first of `values` at which `where` is true, or None."""
    flat, chosen = xp.reshape(values, (-1,)), xp.reshape(where, (-1,))
    if not flat.shape[0] or not bool(xp.any(chosen)):
        return None
    return int(flat[int(xp.argmax(xp.astype(chosen, xp.int8)))])
