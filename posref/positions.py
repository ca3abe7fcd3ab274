"""
Position ids: from masks, tokens, packed sequences, shards, caches, and grids of image and video.

They are in tokens, in the indexing dtype of the argument's library (int64; int32 in JAX without x64); what is made from host
numbers is NumPy's unless `xp` is given. In 32 bits positions 2**31 apart or more are not told from nearer ones. The functions
of this module alone may look at array values.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from posref.arrays import Array, Namespace, check_integer, check_word, constants, created, index_dtype, namespace, placement

AFTER = ("max", "spatial")
BY = ("axis", "min", "max")


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
    outside = _first(positions, (positions < 0) | (positions >= length), xp)
    if outside is not None:
        msg = f"require_in_range: positions must be from 0 to {length - 1} (the table has {length} rows); got {outside}."
        raise ValueError(msg)
    return positions


def from_mask(mask: Array, /, *, padding: int) -> Array:
    r"""
    Return the position of every token of padded rows: the number of tokens before it that are not padding.

    .. math:: p_t = \sum_{u \le t} \mathrm{mask}_u - 1

    Parameters
    ----------
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        1 for tokens and 0 for padding, which may stand left, right or on both sides, but not between tokens.
    padding : int
        The position given to padding; nothing should depend on it. transformers' generation has 1, vLLM 0.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If a value is neither 0 nor 1, or padding stands between tokens.

    Notes
    -----
    BLOOM and OPT count so too; OPT adds 2 (`posref.learned` has an offset), and gives padding the row 1.

    Examples
    --------
    >>> import numpy as np
    >>> from_mask(np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]]), padding=0).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 0]]
    """
    xp = namespace(mask)
    ones = _counted("from_mask", mask, xp)
    counts = xp.cumulative_sum(ones, axis=-1)
    if mask.shape[-1]:
        begins = xp.astype((ones[..., 1:] == 1) & (ones[..., :-1] == 0), ones.dtype)
        runs = xp.sum(begins, axis=-1) + ones[..., 0]
        if bool(xp.any(runs > 1)):
            msg = "from_mask: padding must stand before or after the tokens of a row; got some between them. Use packed()."
            raise ValueError(msg)
    return xp.where(ones == 1, counts - 1, xp.asarray(padding, dtype=ones.dtype, **placement(mask, xp)))


def from_tokens(tokens: Array, /, *, padding_idx: int) -> Array:
    r"""
    Return RoBERTa's and fairseq's rows of a learned table: tokens count from ``padding_idx + 1``, padding is `padding_idx`.

    .. math:: p_t = \mathrm{pad} + [x_t \ne \mathrm{pad}] \sum_{u \le t} [x_u \ne \mathrm{pad}]

    Parameters
    ----------
    tokens : array of integers, shape ``(*B, T)``
        Token ids.
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


def packed(cu_seqlens: Array, /) -> Array:
    """
    Return positions that begin anew in every sequence of a packed batch.

    Parameters
    ----------
    cu_seqlens : array of integers, shape ``(S + 1,)``
        Where sequences begin, and the total at the end: 0, then not decreasing.

    Returns
    -------
    array of integers, shape ``(total,)``

    Raises
    ------
    ValueError
        If it does not begin with 0, or decreases.

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


def decode(cached: Array, new: int, /) -> Array:
    """
    Return the positions of `new` tokens of every row, after the tokens in its cache.

    Parameters
    ----------
    cached : array of integers, shape ``(*B,)``
        Tokens in the cache before this call, padding not counted.
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
    check_integer("decode", "new", new, 0)
    xp = namespace(cached)
    if not xp.isdtype(cached.dtype, "integral") or _first(cached, cached < 0, xp) is not None:
        msg = f"decode: cached must be integers of at least 0; got {cached.dtype}, or one below 0."
        raise ValueError(msg)
    before = xp.astype(cached, index_dtype(cached))
    return before[..., None] + xp.arange(new, dtype=before.dtype, **placement(cached, xp))


def zigzag(length: int, /, *, rank: int, ranks: int, xp: Namespace | None = None) -> Array:
    """
    Return the positions of one rank's shard under context parallelism with balanced causal work.

    The sequence is cut into ``2 * ranks`` chunks; rank r has chunk r and chunk ``2 * ranks - 1 - r``.

    Parameters
    ----------
    length : int
        Tokens in the whole sequence, a multiple of ``2 * ranks``.
    rank, ranks : int
        This shard, from 0, and how many there are.

    Returns
    -------
    array of integers, shape ``(length // ranks,)``

    Raises
    ------
    ValueError
        If `length` does not divide or `rank` is out of range.

    Examples
    --------
    >>> zigzag(8, rank=0, ranks=2).tolist()
    [0, 1, 6, 7]
    """
    check_integer("zigzag", "length", length, 0)
    check_integer("zigzag", "ranks", ranks, 1)
    check_integer("zigzag", "rank", rank, 0)
    if rank >= ranks or length % (2 * ranks):
        msg = f"zigzag: rank must be below ranks and length a multiple of {2 * ranks}; got {rank} of {ranks}, {length}."
        raise ValueError(msg)
    chunk = length // (2 * ranks)
    starts = (rank * chunk, (2 * ranks - 1 - rank) * chunk)
    return _made([start + i for start in starts for i in range(chunk)], (2 * chunk,), xp)


def evicted(kept: Array, /, *, reindex: bool) -> Array:
    """
    Return the positions of the keys that are left in a cache from which others were evicted (`lambda_window` says which).

    Parameters
    ----------
    kept : array of integers, shape ``(*B, K)``
        Original positions of the keys kept, increasing along K.
    reindex : bool
        True: their places in the cache, 0 to K - 1 (StreamingLLM; the query then is at K). False: their own (H2O, SnapKV).

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
        msg = f"evicted: kept must be integers that increase along the last axis; got {kept.dtype} that do not."
        raise ValueError(msg)
    own = xp.astype(kept, index_dtype(kept))
    if not reindex:
        return own
    places = xp.arange(kept.shape[-1], dtype=own.dtype, **placement(kept, xp))
    return xp.broadcast_to(places, kept.shape)


def grid(*sizes: int, merge: int = 1, xp: Namespace | None = None) -> Array:
    """
    Return the coordinates of the cells of a grid, counted from its corner, the last axis of the grid varying fastest.

    Parameters
    ----------
    sizes : int
        Cells along each axis: (H, W) of an image, (T, H, W) of a video, after patches are merged.
    merge : int
        Above 1, the cells of the last two axes come in blocks of ``merge * merge``, those of a block together: so Qwen2-VL's
        vision encoder and its successors have the patches that are merged into one later.

    Returns
    -------
    array of integers, shape ``(A, cells)``
        Coordinates in cells, from 0, in the order of `sizes`: the positions of `axial_rope`. Llama 4's are one more.

    Raises
    ------
    ValueError
        If there are not two axes of whole blocks to merge.

    Examples
    --------
    >>> grid(2, 3).tolist()
    [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
    """
    for n in sizes:
        check_integer("grid", "sizes", n, 0)
    cells: list[tuple[int, ...]] = [()]
    for n in sizes:
        cells = [(*cell, i) for cell in cells for i in range(n)]
    check_integer("grid", "merge", merge, 1)
    if merge > 1:
        if len(sizes) < 2 or any(n % merge for n in sizes[-2:]):
            msg = f"grid: merge must divide the last two of two or more sizes; got {merge} and {sizes}."
            raise ValueError(msg)
        cells.sort(key=lambda cell: (cell[:-2], cell[-2] // merge, cell[-1] // merge))  # stable: rows first within a block
    return _made([cell[axis] for axis in range(len(sizes)) for cell in cells], (len(sizes), len(cells)), xp)


def centred(sizes: Sequence[int], /, *, by: str = "axis", xp: Namespace | None = None) -> Array:
    r"""
    Return the centres of a grid's cells, each axis from -1 to 1: :math:`2 (i + 1/2) / n - 1`, as DINOv3 has them.

    Parameters
    ----------
    sizes : sequence of ints
        Cells along each axis.
    by : {"axis", "min", "max"}
        What n is: the cells along the axis itself, as transformers has it, or along the shortest or the longest one, for all
        axes (DINOv3's code has all three).

    Returns
    -------
    array of float64 (the library's default real dtype where `xp` is given), shape ``(A, cells)``
        For `axial_rope` with ``unit="turns"``.

    Examples
    --------
    >>> centred((1, 2)).tolist()
    [[0.0, 0.0], [-0.5, 0.5]]
    """
    check_word("centred", "by", by, BY)
    cells, c = grid(*sizes), constants(None)
    over = [{"axis": n, "min": min(sizes), "max": max(sizes)}[by] for n in sizes]
    return created((2 * cells + 1) / c.asarray([[float(n)] for n in over]) - 1, xp, None, None)


def scaled(sizes: Sequence[int], reference: Sequence[int], /, *, xp: Namespace | None = None) -> Array:
    r"""
    Return the coordinates of a grid's cells on the grid that a model was made for: :math:`i \, r / n`.

    Parameters
    ----------
    sizes, reference : sequences of ints
        Cells n along each axis, and r of the reference. EVA-02 has r of its pretraining; CogVideoX, without a crop's offset,
        that of its base size. CogView4 rounds down: `floor` of these.

    Returns
    -------
    array of float64 (the library's default real dtype where `xp` is given), shape ``(A, cells)``

    Raises
    ------
    ValueError
        If `reference` has not a size for every axis.

    Examples
    --------
    >>> scaled((1, 4), (1, 6)).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 1.5, 3.0, 4.5]]
    """
    if len(sizes) != len(reference):
        msg = f"scaled: reference must have a size for every axis; got {tuple(reference)} for {tuple(sizes)}."
        raise ValueError(msg)
    for n in reference:
        check_integer("scaled", "reference", n, 1)
    c = constants(None)
    over, under = (c.asarray([[float(n)] for n in lengths]) for lengths in (reference, sizes))
    return created(grid(*sizes) * over / under, xp, None, None)


def with_origin(positions: Array, /, *, before: int = 0, after: int = 0) -> Array:
    """
    Return coordinates with tokens at 0 on every axis, which rotary encodings leave as they are, before and after the others.

    Parameters
    ----------
    positions : array, shape ``(A, *B, T)``
        Coordinates of the patches.
    before, after : int
        Class and register tokens: 5 before the patches in DINOv3 (one class and four registers), 1 after them in Llama 4.

    Returns
    -------
    array, shape ``(A, *B, before + T + after)``

    Examples
    --------
    >>> with_origin(grid(1, 2) + 1, after=1).tolist()
    [[1, 1, 0], [1, 2, 0]]
    """
    check_integer("with_origin", "before", before, 0)
    check_integer("with_origin", "after", after, 0)
    xp = namespace(positions)
    shape, kind = tuple(positions.shape[:-1]), {"dtype": positions.dtype, **placement(positions, xp)}
    return xp.concat(
        [xp.zeros((*shape, before), **kind), positions, xp.zeros((*shape, after), **kind)], axis=positions.ndim - 1
    )


def multimodal(segments: Sequence[tuple[Any, ...]], /, *, after: str, xp: Namespace | None = None) -> Array:
    r"""
    Return M-RoPE's three positions (time, height, width) of the tokens of a prompt of text, images and videos.

    Text has the same number on all three axes and counts on. The cells of an image or video that begins at p have
    :math:`(p + \lfloor t \cdot \text{interval} \rfloor, p + h, p + w)`. What follows begins at the largest position so far
    plus one, or at p plus the larger of the two spatial sizes.

    Parameters
    ----------
    segments : sequence of tuples
        ``("text", tokens)``, ``("image", height, width)`` or ``("video", frames, height, width, interval)``, sizes in cells
        after merging (transformers' grid_thw divided by spatial_merge_size). The interval is in positions for each frame: 1
        in Qwen2-VL, ``tokens_per_second * second_per_grid_t`` in Qwen2.5-VL, a fraction perhaps. Qwen3-VL has its frames as
        images of their own, with text (timestamps) between.
    after : {"max", "spatial"}
        Qwen2-VL's paper and first code, and vLLM: one more than the largest position. Or, as transformers 5.23, the start
        plus max(height, width): the same unless a video lasts longer than it is wide or high.

    Returns
    -------
    array of integers, shape ``(3, T)``

    Raises
    ------
    ValueError
        For an unknown segment, a size below 0, or a negative interval.

    Source
    ------
    Qwen2-VL, arXiv:2409.12191, section 2.1; Qwen2.5-VL, arXiv:2502.13923.

    Examples
    --------
    >>> multimodal([("text", 2), ("image", 1, 2), ("text", 1)], after="max").tolist()
    [[0, 1, 2, 2, 4], [0, 1, 2, 2, 4], [0, 1, 2, 3, 4]]
    """
    check_word("multimodal", "after", after, AFTER)
    found: list[tuple[int, int, int]] = []
    start = 0
    for segment in segments:
        frames, height, width, interval = _segment(segment)
        if segment[0] == "text":
            found += [(start + i,) * 3 for i in range(width)]
            start += width
            continue
        times = [int(t * Fraction(interval)) for t in range(frames)]
        cells = [(start + t, start + h, start + w) for t in times for h in range(height) for w in range(width)]
        found += cells
        if after == "spatial":
            start += max(height, width)
        else:
            start = max((max(cell) + 1 for cell in cells), default=start)
    return _made([cell[axis] for axis in range(3) for cell in found], (3, len(found)), xp)


def _segment(segment: tuple[Any, ...]) -> tuple[int, int, int, float]:
    """Return frames, height, width and interval of a segment; of text, its tokens are the width."""
    match segment:
        case ("text", tokens):
            sizes, interval = (1, 1, tokens), 1.0
        case ("image", height, width):
            sizes, interval = (1, height, width), 1.0
        case ("video", frames, height, width, interval):
            sizes = (frames, height, width)
        case _:
            msg = (
                "multimodal: a segment must be ('text', tokens), ('image', height, width) or "
                f"('video', frames, height, width, interval); got {segment!r}."
            )
            raise ValueError(msg)
    for size in sizes:
        check_integer("multimodal", f"a size of {segment!r}", size, 0)
    if not 0 <= interval < float("inf"):
        msg = f"multimodal: an interval must be finite and at least 0; got {interval!r} in {segment!r}."
        raise ValueError(msg)
    return (*sizes, interval)


def _counted(function: str, mask: Array, xp: Namespace) -> Array:
    """Return a mask as int64, or raise if it holds anything but 0 and 1."""
    if not xp.isdtype(mask.dtype, ("bool", "integral")):
        msg = f"{function}: mask must be boolean or integer, 1 for tokens and 0 for padding; got {mask.dtype}."
        raise ValueError(msg)
    ones = xp.astype(mask, index_dtype(mask))
    other = _first(ones, (ones != 0) & (ones != 1), xp)
    if other is not None:
        msg = f"{function}: mask must be 1 for tokens and 0 for padding; got {other}. Token ids are no mask."
        raise ValueError(msg)
    return ones


def _made(values: list[int], shape: tuple[int, ...], xp: Namespace | None) -> Array:
    """Return host integers as an array of a shape, of NumPy or of `xp`."""
    c = constants(None)
    host = c.reshape(c.asarray(values, dtype=c.int64), shape)
    return host if xp is None else xp.asarray(host)


def _first(values: Array, where: Array, xp: Namespace) -> int | None:
    """Return the first of `values` at which `where` is true, or None."""
    flat, chosen = xp.reshape(values, (-1,)), xp.reshape(where, (-1,))
    if not flat.shape[0] or not bool(xp.any(chosen)):
        return None
    return int(flat[int(xp.argmax(xp.astype(chosen, xp.int8)))])
