"""
Positions on grids: cells of images and videos, extra tokens beside them, and prompts that mix them with text.

All are made from host numbers. The public functions are in `posref.positions`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, get_args

from posref.arrays import Array, Namespace, constants, default_real, namespace, placement
from posref.checks import check_integer, check_word
from posref.types import HOST, ArrayOf, N, NamespaceOf, T

After = Literal["max", "spatial"]
AFTER: tuple[After, ...] = get_args(After)
By = Literal["axis", "min", "max"]
BY: tuple[By, ...] = get_args(By)


def grid(*sizes: int, merge: int = 1, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    """
    Return the coordinates of the cells of a grid, counted from 0 at its corner; the last axis varies fastest.

    Parameters
    ----------
    sizes : int
        Cells along each axis: (H, W) of an image, (T, H, W) of a video, after patches are merged.
    merge : int
        If above 1, cells of the last two axes come in blocks of ``merge * merge``, block after block. Qwen2-VL's vision encoder
        and its successors order patches this way, since the patches of a block are merged into one later.

    Returns
    -------
    array of integers, shape ``(A, cells)``
        Coordinates in cells, in the order of `sizes`: the positions of `axial_rope`. Llama 4 adds 1 to them.

    Raises
    ------
    ValueError
        If `merge` is above 1 and there are fewer than two axes, or `merge` does not divide the last two.

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
    merge = check_integer("grid", "merge", merge, 1)
    if merge > 1:
        if len(sizes) < 2 or any(n % merge for n in sizes[-2:]):
            msg = f"grid: merge must divide the last two sizes, and there must be two or more; got {merge} and {sizes}."
            raise ValueError(msg)
        cells.sort(key=lambda cell: (cell[:-2], cell[-2] // merge, cell[-1] // merge))  # stable: rows first within a block
    return made([cell[axis] for axis in range(len(sizes)) for cell in cells], (len(sizes), len(cells)), xp, device)


def centred(sizes: Sequence[int], /, *, by: By = "axis", xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return the centres of a grid's cells, each axis from -1 to 1: :math:`2 (i + 1/2) / n - 1` for cell i, as in DINOv3.

    Parameters
    ----------
    sizes : sequence of ints
        Cells along each axis.
    by : {"axis", "min", "max"}
        What n is: the cells along the axis itself, as in transformers, or along the shortest or the longest axis, for all axes
        (DINOv3's code has all three).

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
    return _real((2 * cells + 1) / c.asarray([[float(n)] for n in over]) - 1, xp, device)


def scaled(sizes: Sequence[int], reference: Sequence[int], /, *, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return the coordinates of a grid's cells on the grid that a model was trained on: :math:`i \, r / n` for cell i.

    Parameters
    ----------
    sizes, reference : sequences of ints
        n, cells along each axis, and r, those of the reference. EVA-02 takes r from its pretraining; CogVideoX, apart from a
        crop's offset, from its base size. CogView4 rounds down: take `floor` of the result.

    Returns
    -------
    array of float64 (the library's default real dtype where `xp` is given), shape ``(A, cells)``

    Raises
    ------
    ValueError
        If `reference` does not have a size for every axis.

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
    return _real(grid(*sizes) * over / under, xp, device)


def with_origin(positions: ArrayOf[T], /, *, before: int = 0, after: int = 0) -> T:
    """
    Return coordinates with extra tokens at 0 on every axis, before and after the others. Rotary encodings do not rotate them.

    Parameters
    ----------
    positions : array, shape ``(A, *B, T)``
        Coordinates of the patches.
    before, after : int
        How many class and register tokens: 5 before the patches in DINOv3 (one class and four registers), 1 after in Llama 4.

    Returns
    -------
    array, shape ``(A, *B, before + T + after)``

    Examples
    --------
    >>> with_origin(grid(1, 2) + 1, after=1).tolist()
    [[1, 1, 0], [1, 2, 0]]
    """
    before = check_integer("with_origin", "before", before, 0)
    after = check_integer("with_origin", "after", after, 0)
    xp = namespace(positions)
    shape, kind = tuple(positions.shape[:-1]), {"dtype": positions.dtype, **placement(positions, xp)}
    return xp.concat(
        [xp.zeros((*shape, before), **kind), positions, xp.zeros((*shape, after), **kind)], axis=positions.ndim - 1
    )


def multimodal(
    segments: Sequence[tuple[Any, ...]], /, *, after: After, xp: NamespaceOf[N] | None = HOST, device: Any = None
) -> N:
    r"""
    Return M-RoPE's three positions (time, height, width) of every token in a prompt of text, images and videos.

    A text token has one number on all three axes, and the next text token has one more. If an image or video begins at p, its
    cell in frame t, row h and column w has :math:`(p + \lfloor t \cdot \text{interval} \rfloor, p + h, p + w)`. What follows
    begins at the largest position so far plus one, or at p plus the larger of height and width: see `after`.

    Parameters
    ----------
    segments : sequence of tuples
        ``("text", tokens)``, ``("image", height, width)`` or ``("video", frames, height, width, interval)``, sizes in cells
        after merging (transformers' grid_thw divided by spatial_merge_size). The interval is positions per frame, and may be a
        fraction: 1 in Qwen2-VL, ``tokens_per_second * second_per_grid_t`` in Qwen2.5-VL. For Qwen3-VL give every frame as an
        image, with text (timestamps) between.
    after : {"max", "spatial"}
        Max: one more than the largest position, as in Qwen2-VL's paper and first code, and in vLLM. Spatial: the start plus
        max(height, width), as in transformers 5.23. Both agree unless a video lasts longer than it is wide or high.

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
    return made([cell[axis] for axis in range(3) for cell in found], (3, len(found)), xp, device)


def _real(values: Array, xp: Namespace | None, device: Any) -> Array:
    """Return host reals in NumPy's float64, or in the default real dtype of `xp` (and there on `device`)."""
    where = {} if device is None else {"device": device}
    return values if xp is None else xp.asarray(values, dtype=default_real(xp, device), **where)


def _segment(segment: tuple[Any, ...]) -> tuple[int, int, int, float]:
    """Return frames, height, width and interval of a segment; the width of text is its number of tokens."""
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


def made(values: list[int], shape: tuple[int, ...], xp: Namespace | None, device: Any = None) -> Array:
    """Return host integers as an array of the given shape, in NumPy or in `xp` (and there on `device`)."""
    c = constants(None)
    host = c.reshape(c.asarray(values, dtype=c.int64), shape)
    return host if xp is None else xp.asarray(host, **({} if device is None else {"device": device}))
