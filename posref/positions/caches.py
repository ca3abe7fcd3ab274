"""Positions beside a cache of keys: of the next tokens, of the keys that are left, and of keys compressed from many."""

from typing import Any

from posref.arrays import index_dtype, namespace, placement, whole
from posref.checks import check_integer, check_tokens
from posref.grids import made
from posref.positions.looking import counted, first_where
from posref.spec import Axes, Integer, encoding
from posref.types import HOST, ArrayOf, N, NamespaceOf, T


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


def decode_delta(positions: ArrayOf[T], mask: ArrayOf[T], /) -> T:
    r"""
    Return what to add to the number of tokens in the cache, for the positions of the tokens after an M-RoPE prompt.

    .. math:: \Delta = \max_{a, t} p_{a,t} + 1 - n

    with the maximum over all axes and the tokens of a row, of which there are n, padding not counted.

    Parameters
    ----------
    positions : array, integer or real floating, shape ``(A, *B, T)``
        p, positions of the whole prompt, as `multimodal` and `tmrope` make them. None is negative.
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        1 for tokens and 0 for padding.

    Returns
    -------
    array, shape ``(*B,)``
        In the dtype of floating positions, else in the indexing dtype; 0 for a row without tokens.

    Raises
    ------
    ValueError
        If the mask is neither boolean nor integer, or its shape is not that of one axis of the positions.

    Source
    ------
    transformers 5.23.0, models/qwen2_5_omni/modeling_qwen2_5_omni.py, get_rope_index (mrope_position_deltas).

    Notes
    -----
    All axes of the next tokens have ``decode(cached, new) + delta[..., None]``, with `cached` the number of tokens in the cache
    without padding. The difference belongs to a request and never changes. Mistakes: one for a mixed batch, or one kept on the
    model, which the next request overwrites. Where a prompt is processed in parts, compute its positions once and slice them.

    Examples
    --------
    >>> import numpy as np
    >>> prompt = np.asarray([[0, 1, 1, 1, 1, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 3]])
    >>> delta = decode_delta(prompt, np.ones(6, dtype=bool))
    >>> int(delta), (decode(np.asarray(6), 2) + delta).tolist()
    (-2, [4, 5])
    """
    xp = namespace(positions, mask)
    if positions.ndim < 2 or tuple(positions.shape[1:]) != tuple(mask.shape):
        shapes = f"{tuple(mask.shape)} for positions {tuple(positions.shape)}"
        msg = f"decode_delta: mask must have the shape of one axis of the positions; got {shapes}."
        raise ValueError(msg)
    ones = counted("decode_delta", mask, xp, check=False)
    own = whole("decode_delta", "positions", positions) if xp.isdtype(positions.dtype, "integral") else positions
    shape, kind = tuple(own.shape), {"dtype": own.dtype, **placement(positions, xp)}
    below = xp.full((*shape[:-1], 1), -1, **kind)  # so that a row without tokens has a maximum
    largest = xp.max(xp.concat([xp.where(ones[None, ...] == 1, own, xp.full_like(own, -1)), below], axis=-1), axis=-1)
    return xp.max(largest, axis=0) + 1 - xp.astype(xp.sum(ones, axis=-1), own.dtype)


def compressed(windows: int, /, *, rate: int, first: int, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return the positions of keys that stand for whole windows of tokens: :math:`w r + s` for window w, its first token.

    Parameters
    ----------
    windows : int
        How many windows this call compresses: its tokens, with those that waited, divided by r and rounded down.
    rate : int
        r, tokens in a window: 4 in DeepSeek-V4's compressed sparse attention, 128 in its heavily compressed attention.
    first : int
        s, tokens compressed before this call.

    Returns
    -------
    array of integers, shape ``(windows,)``

    Raises
    ------
    ValueError
        If a number is not an int, `rate` is below 1, or another is below 0.

    Source
    ------
    transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py, lines 430 and 562.

    Notes
    -----
    The sparse attention mixes the tokens of windows w - 1 and w, and the position is that of w all the same. Keys that are not
    compressed keep their own positions. `visible_windows` has which queries see which windows.

    Examples
    --------
    >>> compressed(2, rate=4, first=0).tolist()
    [0, 4]
    """
    windows = check_integer("compressed", "windows", windows, 0)
    rate = check_integer("compressed", "rate", rate, 1)
    first = check_integer("compressed", "first", first, 0)
    return made([w * rate + first for w in range(windows)], (windows,), xp, device)


@encoding(
    family="positions",
    source="DeepSeek-V4: transformers 5.23.0, modeling_deepseek_v4.py, lines 448 and 589",
    models=("DeepSeek-V4",),
    domains={"rate": Integer(1)},
    arrays={"q_positions": Axes("*R Q", "integer")},
    result="*R Q",
    rows="*R Q",
    returns="integer",
)
def visible_windows(q_positions: ArrayOf[T], /, *, rate: int) -> T:
    r"""
    Return how many compressed windows each query sees: those that are complete, :math:`\lfloor (m + 1) / r \rfloor`.

    Parameters
    ----------
    q_positions : array of integers, shape ``(*B, Q)``
        m, positions of the queries. A query sees window w if w is below the result.
    rate : int
        r, tokens in a window, as for `compressed`.

    Returns
    -------
    array of integers, shape ``(*B, Q)``

    Raises
    ------
    ValueError
        If positions are not integers or have no axis of tokens, or `rate` is below 1.

    Source
    ------
    transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py, lines 448 and 589.

    Examples
    --------
    >>> import numpy as np
    >>> visible_windows(np.asarray([2, 3, 7]), rate=4).tolist()
    [0, 1, 2]
    """
    rate = check_integer("visible_windows", "rate", rate, 1)
    check_tokens("visible_windows", q_positions=q_positions)
    return (whole("visible_windows", "q_positions", q_positions) + 1) // rate
