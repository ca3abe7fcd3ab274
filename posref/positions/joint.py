"""Positions of images and text that attend to each other in an image generator."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from posref.core.arrays import constants
from posref.core.checks import check_flag, check_integer, check_word
from posref.core.grids import grid, made
from posref.types import HOST, N, NamespaceOf

Origin = Literal["centre", "corner"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)


def qwen_image(
    images: Sequence[Sequence[int]],
    text_tokens: int,
    /,
    *,
    origin: Origin,
    layered: bool,
    xp: NamespaceOf[N] | None = HOST,
    device: Any = None,
) -> tuple[N, N]:
    r"""
    Return Qwen-Image's positions (frame, row, column) of the cells of all images, and of the text.

    Image i has F frames, H rows and W columns. Its cell (f, y, x) has frame :math:`i + f`, row
    :math:`y - (H - \lfloor H/2 \rfloor)` and column :math:`x - (W - \lfloor W/2 \rfloor)`. Token j of the text has p + j on all
    axes, where p is the largest :math:`\lfloor H/2 \rfloor` or :math:`\lfloor W/2 \rfloor` of all images.

    Parameters
    ----------
    images : sequence of (F, H, W)
        Frames, rows and columns of each image, in cells after patches are merged. An image has one frame.
    text_tokens : int
        The number of text tokens in each row of the batch, padding included.
    origin : {"centre", "corner"}
        "centre" is as above (``scale_rope=True``). "corner" counts rows and columns from 0, and p is the largest H or W.
    layered : bool
        True if the last image is the whole picture and the others are its layers, as in Qwen-Image-Layered. The last image then
        has frame -1, and p is at least the number of layers.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    two arrays of integers, shapes ``(3, cells)`` and ``(3, text_tokens)``
        For `axial_rope` with ``layout="interleaved"`` and base 10000.

    Raises
    ------
    ValueError
        If an image does not have three sizes, a size or `text_tokens` is not an int of at least 0, an option is unknown or,
        with `layered`, the last image does not have one frame.

    Source
    ------
    diffusers 0.42.1, models/transformers/transformer_qwenimage.py, QwenEmbedRope and QwenEmbedLayer3DRope.

    Examples
    --------
    >>> cells, text = qwen_image([(1, 3, 1)], 2, origin="centre", layered=False)
    >>> cells.tolist(), text.tolist()
    ([[0, 0, 0], [-2, -1, 0], [-1, -1, -1]], [[1, 2], [1, 2], [1, 2]])
    """
    text_tokens = check_integer("qwen_image", "text_tokens", text_tokens, 0)
    check_word("qwen_image", "origin", origin, ORIGINS)
    check_flag("qwen_image", "layered", layered)
    centre = origin == "centre"
    c, cells_of_images, start = constants(None), [], 0
    for i, sizes in enumerate(images):
        if len(sizes) != 3:
            msg = f"qwen_image: an image must have three sizes (frames, height, width); got {tuple(sizes)}."
            raise ValueError(msg)
        for n in sizes:
            check_integer("qwen_image", f"a size of image {i}", n, 0)
        last = layered and i == len(images) - 1
        if last and sizes[0] != 1:
            msg = f"qwen_image: the last image must have one frame if layered is True; got {tuple(sizes)}."
            raise ValueError(msg)
        _, height, width = sizes
        origins = [-1 if last else i, height // 2 - height if centre else 0, width // 2 - width if centre else 0]
        cells_of_images.append(grid(*sizes) + c.asarray([[at] for at in origins]))
        start = max(start, height // 2 if centre else height, width // 2 if centre else width)
    if layered:
        start = max(start, len(images) - 1)
    cells = c.concatenate([c.zeros((3, 0), dtype=c.int64), *cells_of_images], axis=1)
    words = [start + j for j in range(text_tokens)] * 3
    return made(cells.tolist(), tuple(cells.shape), xp, device), made(words, (3, text_tokens), xp, device)
