"""Positions with a key cache: of the next tokens, of keys left after eviction, and of compressed keys."""

from typing import Any

from posref.core.arrays import index_dtype, library, placement
from posref.core.checks import check_integer, check_tokens
from posref.core.grids import made
from posref.positions.value_checks import first_where
from posref.types import HOST, ArrayOf, N, NamespaceOf, T


def decode(cached: ArrayOf[T], new: int, /, *, check: bool = True) -> T:
    """
    Return the positions of the next `new` tokens of every row: they continue after the cached tokens.

    Parameters
    ----------
    cached : array of integers, shape ``(*B,)``
        The number of tokens in the cache before this call, padding not counted.
    new : int
        The number of tokens in this call.
    check : bool
        Check the values. Pass False under ``jax.jit``, ``torch.compile`` and export, where array values cannot be read.

    Returns
    -------
    array of integers, shape ``(*B, new)``

    Raises
    ------
    ValueError
        If `cached` is not integers. With `check`, also if a number is below 0.

    Examples
    --------
    >>> import numpy as np
    >>> decode(np.asarray([7, 3]), 2).tolist()
    [[7, 8], [3, 4]]
    """
    new = check_integer("decode", "new", new, 0)
    xp = library("decode", cached=cached)
    wrong = None if xp.isdtype(cached.dtype, "integral") else cached.dtype
    if check and wrong is None:
        wrong = first_where(cached, cached < 0, xp)
    if wrong is not None:
        msg = f"decode: cached must be integers of at least 0 (the tokens in each row's cache); got {wrong}."
        raise ValueError(msg)
    before = xp.astype(cached, index_dtype(cached))
    return before[..., None] + xp.arange(new, dtype=before.dtype, **placement(cached, xp))


def evicted(kept: ArrayOf[T], /, *, reindex: bool, check: bool = True) -> T:
    """
    Return the positions of the keys left in a cache after others were evicted.

    `lambda_window` says which keys StreamingLLM keeps.

    Parameters
    ----------
    kept : array of integers, shape ``(*B, K)``
        Original positions of the kept keys, increasing along K.
    reindex : bool
        True returns the places in the cache, 0 to K - 1 (StreamingLLM; the query is then at K). False returns the original
        positions (H2O, SnapKV).
    check : bool
        Check the values. Pass False under ``jax.jit``, ``torch.compile`` and export, where array values cannot be read.

    Returns
    -------
    array of integers, shape ``(*B, K)``

    Raises
    ------
    ValueError
        If `kept` is not integers or has no axes. With `check`, also if it does not increase along the last axis.

    Examples
    --------
    >>> import numpy as np
    >>> evicted(np.asarray([0, 1, 900, 901]), reindex=True).tolist()
    [0, 1, 2, 3]
    """
    xp = library("evicted", kept=kept)
    if not xp.isdtype(kept.dtype, "integral"):
        msg = f"evicted: kept must be integers; got {kept.dtype}."
        raise ValueError(msg)
    check_tokens("evicted", kept=kept)
    late = first_where(kept[..., 1:], kept[..., 1:] <= kept[..., :-1], xp) if check else None
    if late is not None:
        msg = f"evicted: kept must increase along the last axis; got {late} after an equal or larger position."
        raise ValueError(msg)
    signed = xp.astype(kept, index_dtype(kept))
    if not reindex:
        return signed
    places = xp.arange(kept.shape[-1], dtype=signed.dtype, **placement(kept, xp))
    return xp.broadcast_to(places, kept.shape)


def compressed(windows: int, /, *, rate: int, first_position: int, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return the positions of compressed keys, each made from a window of tokens: :math:`w r + s`, the first token of window w.

    Parameters
    ----------
    windows : int
        The number of windows that this call compresses. Add the tokens left over from earlier calls to the tokens of this call,
        divide by r and round down.
    rate : int
        r, tokens per window: 4 in DeepSeek-V4's compressed sparse attention, 128 in its heavily compressed attention.
    first_position : int
        s, the number of tokens compressed before this call.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array of integers, shape ``(windows,)``

    Raises
    ------
    ValueError
        If a number is not an int, `rate` is below 1, or `windows` or `first_position` is below 0.

    Source
    ------
    transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py, lines 430 and 562.

    Notes
    -----
    In the sparse attention, key w mixes the tokens of windows w - 1 and w. Its position is still the first token of window w.
    Keys that are not compressed keep their own positions. `visible_windows` says which windows each query sees.

    Examples
    --------
    >>> compressed(2, rate=4, first_position=0).tolist()
    [0, 4]
    """
    windows = check_integer("compressed", "windows", windows, 0)
    rate = check_integer("compressed", "rate", rate, 1)
    first_position = check_integer("compressed", "first_position", first_position, 0)
    return made([w * rate + first_position for w in range(windows)], (windows,), xp, device)
