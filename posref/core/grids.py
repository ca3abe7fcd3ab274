"""
Positions on grids: cells of images and videos, class and register tokens, and prompts that mix images, videos and text.

The public functions are in `posref.positions`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, get_args

from posref.core.arrays import Array, Namespace, constants, default_real, library, placement
from posref.core.checks import check_finite, check_integer, check_word
from posref.types import HOST, ArrayOf, N, NamespaceOf, T

After = Literal["max", "spatial"]
AFTER: tuple[After, ...] = get_args(After)
By = Literal["axis", "min", "max"]
BY: tuple[By, ...] = get_args(By)


def grid(*sizes: int, merge: int = 1, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    """
    Return the coordinates of the cells of a grid, counted from 0 at its corner. The last axis varies fastest.

    Parameters
    ----------
    sizes : int
        The number of cells along each axis: H, W for an image and T, H, W for a video.
    merge : int
        If above 1, cells of the last two axes come in blocks of ``merge * merge``, block after block. Qwen2-VL's vision encoder
        and its successors order patches this way, because each block of patches is later merged into one.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array of integers, shape ``(A, cells)``
        Coordinates in cells, in the order of `sizes`, for `axial_rope`. Llama 4 adds 1 to them.

    Raises
    ------
    ValueError
        If a size is not an int of at least 0, or `merge` is not an int of at least 1. If `merge` is above 1, also if there are
        fewer than two sizes or it does not divide the last two.

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
            msg = f"grid: merge must divide the last two sizes, and at least two are needed; got merge {merge}, sizes {sizes}."
            raise ValueError(msg)
        cells.sort(key=lambda cell: (cell[:-2], cell[-2] // merge, cell[-1] // merge))  # stable: rows first within a block
    return made([cell[axis] for axis in range(len(sizes)) for cell in cells], (len(sizes), len(cells)), xp, device)


def centred(sizes: Sequence[int], /, *, by: By = "axis", xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return the centres of a grid's cells: :math:`2 (i + 1/2) / n - 1` for cell i along an axis, as in DINOv3.

    The edges of the grid are at -1 and 1 on the axis that has n cells.

    Parameters
    ----------
    sizes : sequence of ints
        The number of cells along each axis.
    by : {"axis", "min", "max"}
        What n is: "axis" is the number of cells along the axis itself, as in transformers. "min" and "max" use the smallest or
        the largest size for all axes. DINOv3's code has all three.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array, shape ``(A, cells)``
        For `axial_rope` with ``unit="turns"``. The dtype is float64, or the default real dtype of `xp` if given.

    Raises
    ------
    ValueError
        If a size is not an int of at least 0, or `by` is unknown.

    Examples
    --------
    >>> centred((1, 2)).tolist()
    [[0.0, 0.0], [-0.5, 0.5]]
    """
    check_word("centred", "by", by, BY)
    for n in sizes:
        check_integer("centred", "sizes", n, 0)
    cells, c = grid(*sizes), constants(None)
    over = [{"axis": n, "min": min(sizes), "max": max(sizes)}[by] for n in sizes]
    return made_real((2 * cells + 1) / c.asarray([[float(n)] for n in over]) - 1, xp, device)


def scaled(sizes: Sequence[int], reference: Sequence[int], /, *, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    r"""
    Return the coordinates of a grid's cells, scaled to the grid that a model was trained on: :math:`i \, r / n` for cell i.

    Parameters
    ----------
    sizes : sequence of ints
        n, the number of cells along each axis.
    reference : sequence of ints
        r, the number of cells along each axis of the training grid, at least 1. EVA-02 takes r from its pretraining. CogVideoX
        takes it from its base size, and also has an offset for crops.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array, shape ``(A, cells)``
        The dtype is float64, or the default real dtype of `xp` if given. For CogView4, which rounds down, take `floor`.

    Raises
    ------
    ValueError
        If a size is not an int of at least 0, or `reference` does not have a size of at least 1 for every axis.

    Examples
    --------
    >>> scaled((1, 4), (1, 6)).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 1.5, 3.0, 4.5]]
    """
    if len(sizes) != len(reference):
        msg = f"scaled: reference must have a size for every axis; got {tuple(reference)} for sizes {tuple(sizes)}."
        raise ValueError(msg)
    for n in reference:
        check_integer("scaled", "reference", n, 1)
    c = constants(None)
    over, under = (c.asarray([[float(n)] for n in lengths]) for lengths in (reference, sizes))
    return made_real(grid(*sizes) * over / under, xp, device)


def with_origin(positions: ArrayOf[T], /, *, tokens_before: int = 0, tokens_after: int = 0) -> T:
    """
    Return coordinates with tokens at 0 on every axis added before and after. Rotary encodings do not rotate these tokens.

    Parameters
    ----------
    positions : array, shape ``(A, *B, T)``
        Coordinates of the patches.
    tokens_before : int
        The number of class and register tokens before the patches: 5 in DINOv3 (one class and four registers).
    tokens_after : int
        The number of such tokens after the patches: 1 in Llama 4.

    Returns
    -------
    array, shape ``(A, *B, tokens_before + T + tokens_after)``
        In the dtype of `positions`.

    Raises
    ------
    ValueError
        If `tokens_before` or `tokens_after` is not an int of at least 0.

    Examples
    --------
    >>> with_origin(grid(1, 2) + 1, tokens_after=1).tolist()
    [[1, 1, 0], [1, 2, 0]]
    """
    tokens_before = check_integer("with_origin", "tokens_before", tokens_before, 0)
    tokens_after = check_integer("with_origin", "tokens_after", tokens_after, 0)
    xp = library("with_origin", positions=positions)
    shape, kind = tuple(positions.shape[:-1]), {"dtype": positions.dtype, **placement(positions, xp)}
    return xp.concat(
        [xp.zeros((*shape, tokens_before), **kind), positions, xp.zeros((*shape, tokens_after), **kind)],
        axis=positions.ndim - 1,
    )


def multimodal(
    segments: Sequence[tuple[Any, ...]], /, *, after: After, xp: NamespaceOf[N] | None = HOST, device: Any = None
) -> N:
    r"""
    Return M-RoPE's three positions (time, height, width) of every token in a prompt of text, images and videos.

    A text token has the same number on all three axes, and the next text token has one more. If an image or video begins at p,
    its cell in frame t, row h and column w has :math:`(p + \lfloor t \cdot \text{interval} \rfloor, p + h, p + w)`. The option
    `after` says where the next segment begins.

    Parameters
    ----------
    segments : sequence of tuples
        ``("text", tokens)``, ``("image", height, width)`` or ``("video", frames, height, width, interval)``. Height and width
        are in cells after merging (transformers' grid_thw divided by spatial_merge_size). The interval is the number of
        positions per frame, also a fraction: 1 in Qwen2-VL, ``tokens_per_second * second_per_grid_t`` in Qwen2.5-VL. For
        Qwen3-VL pass every frame as an image, with text (timestamps) between.
    after : {"max", "spatial"}
        Where the segment after an image or video begins. "max": one after its largest position on any axis, as in Qwen2-VL's
        paper and first code, and in vLLM. "spatial": at p + max(height, width), as in transformers 5.23. They differ only if
        the last frame of a video is max(height, width) or more positions after p, or if there are no cells.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array of integers, shape ``(3, T)``
        Positions for `mrope`.

    Raises
    ------
    ValueError
        If a segment or `after` is unknown, a size is not an int of at least 0, or an interval is negative or not finite.

    Source
    ------
    Qwen2-VL, arXiv:2409.12191, section 2.1; Qwen2.5-VL, arXiv:2502.13923.

    Examples
    --------
    >>> multimodal([("text", 2), ("image", 1, 2), ("text", 1)], after="max").tolist()
    [[0, 1, 2, 2, 4], [0, 1, 2, 2, 4], [0, 1, 2, 3, 4]]
    """
    check_word("multimodal", "after", after, AFTER)
    triples: list[tuple[int, int, int]] = []
    start = 0
    for segment in segments:
        frames, height, width, interval = _segment(segment)
        if segment[0] == "text":
            triples += [(start + i,) * 3 for i in range(width)]
            start += width
            continue
        times = [int(t * Fraction(interval)) for t in range(frames)]
        cells = [(start + t, start + h, start + w) for t in times for h in range(height) for w in range(width)]
        triples += cells
        if after == "spatial":
            start += max(height, width)
        else:
            start = max((max(cell) + 1 for cell in cells), default=start)
    return made([cell[axis] for axis in range(3) for cell in triples], (3, len(triples)), xp, device)


def made_real(values: Array, xp: Namespace | None, device: Any) -> Array:
    """Return host reals as a NumPy array in float64, or as an array of `xp` on `device`, in its default real dtype."""
    where = {} if device is None else {"device": device}
    return values if xp is None else xp.asarray(values, dtype=default_real(xp, device), **where)


def _segment(segment: tuple[Any, ...]) -> tuple[int, int, int, float]:
    """Return frames, height, width and interval of a segment. Text has one frame and one row, of a cell for each token."""
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
    interval = check_finite("multimodal", f"the interval of {segment!r}", interval)
    if interval < 0:
        msg = f"multimodal: an interval must be at least 0; got {interval!r} in {segment!r}."
        raise ValueError(msg)
    return (*sizes, interval)


def made(values: list[int], shape: tuple[int, ...], xp: Namespace | None, device: Any = None) -> Array:
    """Return host integers as a NumPy array of the given shape, or as an array of `xp` on `device`."""
    c = constants(None)
    host = c.reshape(c.asarray(values, dtype=c.int64), shape)
    return host if xp is None else xp.asarray(host, **({} if device is None else {"device": device}))
