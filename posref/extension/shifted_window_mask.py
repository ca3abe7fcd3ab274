"""The mask of shifted windows. Source: Liu et al., Swin Transformer, arXiv:2103.14030, section 3.2 and figure 4."""

from posref.core.arrays import Array, cast, library, whole
from posref.core.checks import check_integer, check_tokens
from posref.spec import Axes, Integer, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Mask of shifted windows (Swin)",
    idea=(
        "Swin shifts the image between layers, so that other cells share a window. What is pushed out at one side comes back "
        "in at the other. Cells that only this brought together must not see each other."
    ),
    family="extension",
    source="arXiv:2103.14030, figure 4",
    models=("Swin", "Swin v2", "SwinIR", "Swin2SR", "Donut", "Video Swin", "SwinUNETR"),
    domains={"size": Integer(1, usual=64), "window": Integer(1, usual=16), "shift": Integer(0, usual=8)},
    arrays={"q_positions": Axes("~*B Q", "integer", "0", "size-1"), "k_positions": Axes("~*B K", "integer", "0", "size-1")},
    result="*B Q K",
    rows="*B Q K",
    requires=("shift < window", "size % window == 0"),
    invariants=("decode",),
    returns="mask",
    read={
        "transformers": "transformers 5.23.0, models/swin/modeling_swin.py:576-582",
        "timm": "timm 1.0.31, timm/models/swin_transformer.py:530-532",
        "Donut": "transformers 5.23.0, models/donut/modeling_donut_swin.py:520-543",
        "Swin2SR": "transformers 5.23.0, models/swin2sr/modeling_swin2sr.py:461-484",
        "SwinIR": "JingyunLiang/SwinIR@6545850, models/network_swinir.py:216-237",
        "SwinUNETR": "monai 1.6.1, monai/networks/nets/swin_unetr.py:879-916",
    },
)
def shifted_window_mask(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, size: int, window: int, shift: int) -> T:
    r"""
    Return a mask, along one axis of an image, that lets cells see each other in their window unless the shift joined them.

    .. math:: M_{ij} = [\, \lfloor i / w \rfloor = \lfloor j / w \rfloor \,] \cdot [\, g(i) = g(j) \,], \qquad
        g(i) = [\, i \ge n - w \,] + [\, i \ge n - s \,]

    where i and j are the coordinates of query and key after the shift, n = `size`, w = `window` and s = `shift`. Brackets are 1
    where the statement holds, and True in the result. For images combine the masks of both axes with ``&``; for videos all
    three.

    Parameters
    ----------
    q_positions : array, integer, shape ``(*B, Q)``
        i, the coordinate of each query along the axis, after the shift: cell c of the image is at ``(c - shift) % size``.
    k_positions : array, integer, shape ``(*B, K)``
        j, the coordinate of each key, after the shift.
    size : int
        n, cells along the axis after padding to a multiple of `window`. Pad first, then shift.
    window : int
        w, cells of a window along the axis, at least 1; 7 in Swin.
    shift : int
        s, from 0 to ``window - 1``; half of the window, rounded down, in every second layer of Swin. With 0 g is 0: only the
        window counts.

    Returns
    -------
    array of booleans, shape ``(*B, Q, K)``
        True where a query may attend to a key: the `mask` of `attention`, after ``&`` of all axes.

    Raises
    ------
    ValueError
        If positions are not integers or have no axis, `size` or `window` is less than 1, or `shift` is not from 0 to
        ``window - 1``.

    Notes
    -----
    Where the image has no more than one window along an axis, Swin does not shift: pass ``shift=0``. transformers looks at the
    smaller side for both axes, timm at each. Swin's code adds -100 to the logits for what is False here. With the cosine logits
    of Swin v2, up to 100, that hides nothing: a cell whose cosine is 1 beats one of -1. Padded cells are not hidden.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([2, 3])
    >>> shifted_window_mask(places, places, size=4, window=2, shift=1).tolist()
    [[True, False], [False, True]]
    """
    name = "shifted_window_mask"
    library(name, q_positions=q_positions, k_positions=k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    queries, keys = whole(name, "q_positions", q_positions), whole(name, "k_positions", k_positions)
    size, window = (check_integer(name, of, n, 1) for of, n in (("size", size), ("window", window)))
    shift = check_integer(name, "shift", shift, 0)
    if shift >= window:
        msg = f"{name}: shift must be less than window, {window}; got {shift}."
        raise ValueError(msg)
    together = (queries // window)[..., :, None] == (keys // window)[..., None, :]
    if shift == 0:
        return together
    q_region, k_region = (swin_region(cells, size, window, shift) for cells in (queries, keys))
    return together & (q_region[..., :, None] == k_region[..., None, :])


@part()
def swin_region(cells: Array, size: int, window: int, shift: int, /) -> Array:
    """Return 0 for cells before the last window, and in it 1 for those that were there before the shift, 2 for the others."""
    last, wrapped = (cast(condition, cells.dtype) for condition in (cells >= size - window, cells >= size - shift))
    return last + wrapped
