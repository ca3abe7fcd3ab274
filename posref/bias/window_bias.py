"""Relative position bias of windows. Source: Liu et al., Swin Transformer, arXiv:2103.14030, section 3.2, equation (4)."""

from typing import Literal, get_args

from posref.core.arrays import Array, beside, index_dtype, library, namespace, rows, with_axis_moved
from posref.core.checks import check_flag, check_integer, check_real, check_word
from posref.spec import Axes, Flag, Integer, OneOf, encoding, part
from posref.types import ArrayOf, T

Order = Literal["query_minus_key", "key_minus_query"]
ORDERS: tuple[Order, ...] = get_args(Order)
TOKENS = "depth*height*width+class_token"


@encoding(
    title="Relative position bias of windows (Swin, BEiT)",
    idea=(
        "A window of an image has few cells, so there are few offsets from one cell to another. Every attention head has a "
        "learned number for each of them. The number for the offset between query and key is added to their logit."
    ),
    family="bias",
    source="arXiv:2103.14030, equation (4)",
    models=("Swin", "SwinIR", "MaxViT", "BEiT", "data2vec vision", "EVA", "Video Swin", "SwinUNETR"),
    domains={
        "height": Integer(1, usual=6),
        "width": Integer(1, usual=6),
        "depth": Integer(1, usual=3),
        "order": OneOf(ORDERS),
        "class_token": Flag(),
    },
    arrays={"table": Axes("(2*depth-1)*(2*height-1)*(2*width-1)+3*class_token H")},
    result=f"H {TOKENS} {TOKENS}",
    rows="H",
    read={
        "Swin": "microsoft/Swin-Transformer@f82860b, models/swin_transformer.py:104-114",
        "BEiT": "transformers 5.23.0, models/beit/modeling_beit.py:199-218",
        "data2vec": "transformers 5.23.0, models/data2vec/modeling_data2vec_vision.py:512-529",
        "EVA's segmentation with relative positions": (
            "baaivision/EVA@5623d08, EVA-01/seg/mmseg_custom/models/backbones/base/beit.py:82-104; "
            "EVA-01/seg/configs/ade20k/eva_mask2former_896_40k_coco164k2ade20k_ms_relpos_layerscale_9dec.py:30"
        ),
        "Video Swin": "SwinTransformer/Video-Swin-Transformer@db018fb, mmaction/models/backbones/swin_transformer.py:114-128",
        "MONAI": "monai 1.6.1, monai/networks/nets/swin_unetr.py:551-584, 596-598",
        "timm's RelPosBias": "timm 1.0.31, timm/layers/pos_embed_rel.py:22-75",
        "timm's RelPosBiasTf (MaxViT)": "timm 1.0.31, timm/layers/pos_embed_rel.py:551-579, 598-607, 690-698",
        "SwinIR": "JingyunLiang/SwinIR@6545850, models/network_swinir.py:92-103",
        "data2vec vision": "transformers 5.23.0, models/data2vec/modeling_data2vec_vision.py:512-529",
        "SwinUNETR": "monai 1.6.1, monai/networks/nets/swin_unetr.py:551-584",
    },
)
def window_bias(table: ArrayOf[T], /, *, height: int, width: int, depth: int, order: Order, class_token: bool) -> T:
    r"""
    Return the bias of a window: for each head, a learned number for the offset between every two of its cells.

    .. math:: B_{h,i,j} = E_{r(y_i - y_j,\, x_i - x_j),\, h}, \qquad
        r(\Delta_y, \Delta_x) = (\Delta_y + h_w - 1)(2 w_w - 1) + \Delta_x + w_w - 1

    where cell i is in row y_i and column x_i of a window of h_w = `height` rows and w_w = `width` columns, h is the head and E
    the table. Cells are counted row by row. With `depth` t_w above 1, cells have a frame too, the slowest axis, and r is
    :math:`((\Delta_t + t_w - 1)(2 h_w - 1) + \Delta_y + h_w - 1)(2 w_w - 1) + \Delta_x + w_w - 1`. With `order`
    "key_minus_query" all offsets have the other sign. With `class_token` token 0 is the class token. The table's last three
    rows are for the class token as query, as key, and as both.

    Parameters
    ----------
    table : array, real floating, shape ``((2t - 1)(2h - 1)(2w - 1), H)``, with `class_token` 3 rows more
        E, learned. MaxViT of timm has (H, 2h - 1, 2w - 1): move the heads to the end and reshape.
    height : int
        Rows of the window, at least 1.
    width : int
        Columns of the window, at least 1.
    depth : int
        Frames or slices of the window; 1 for images. Above 1 in Video Swin and MONAI's SwinUNETR.
    order : {"query_minus_key", "key_minus_query"}
        The sign of the offsets.

        - ``"query_minus_key"``: The query's coordinates minus the key's. Used by Swin, BEiT, data2vec, EVA's segmentation
          with relative positions, Video Swin, MONAI, timm's RelPosBias.
        - ``"key_minus_query"``: The key's coordinates minus the query's. Used by timm's RelPosBiasTf (MaxViT).
    class_token : bool
        Whether there is a class token before the cells. True in BEiT, data2vec vision and EVA's
        segmentation models with relative positions (EVA's other models have no such bias).

    Returns
    -------
    array, shape ``(H, N, N)``
        In logit units: entries of `table` in its dtype, bit for bit. N is ``depth * height * width``, and 1 more with a class
        token. Add it after the 1/sqrt(D) scale, before the mask.

    Raises
    ------
    ValueError
        If `table` is not 2-D, not real floating, or has another number of rows, a size is less than 1, or an option is unknown.

    Notes
    -----
    A part of a larger window has the offsets of the larger one: slice its bias (Video Swin and MONAI take the first N rows and
    columns, which are those of whole frames alone). For another window, resample the rows of offsets, not the last three:
    ``resample(table, [2 * h - 1, 2 * w - 1], old_size=[...], prefix=0, ...)``. transformers' BEiT and data2vec do that at every
    call, and exchange height and width on the way: windows that are not square get other numbers even at their own size. timm
    and BEiT's authors resample with steps that grow geometrically.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.arange(3.0)[:, None]
    >>> window_bias(table, depth=1, height=1, width=2, order="query_minus_key", class_token=False).tolist()
    [[[1.0, 0.0], [2.0, 1.0]]]
    """
    name = "window_bias"
    library(name, table=table)
    check_real(name, table=table)
    check_word(name, "order", order, ORDERS)
    class_token = check_flag(name, "class_token", class_token)
    window = [check_integer(name, of, n, 1) for of, n in (("depth", depth), ("height", height), ("width", width))]
    offsets = (2 * window[0] - 1) * (2 * window[1] - 1) * (2 * window[2] - 1)
    if table.ndim != 2 or table.shape[0] != offsets + 3 * class_token:
        need = f"must be 2-D with {offsets + 3 * class_token} rows, {offsets} of them for offsets"
        msg = f"{name}: table {need}; got shape {tuple(table.shape)}. Resample a table of another window first."
        raise ValueError(msg)
    index = window_rows(table, window)
    index = index if order == "query_minus_key" else offsets - 1 - index
    return window_entries(table, with_class_token(index, offsets) if class_token else index)


@part()
def window_rows(table: Array, window: list[int], /) -> Array:
    """Return the row of every two cells of a window, shape (N, N), for offsets of the query from the key."""
    xp = namespace(table)
    index = beside([[0]], table, index_dtype(table))
    for n in window:  # the slowest axis first
        cells = beside(list(range(n)), table, index_dtype(table))
        apart = cells[:, None] - cells[None, :] + (n - 1)
        wider = index[:, None, :, None] * (2 * n - 1) + apart[None, :, None, :]
        index = xp.reshape(wider, (index.shape[0] * n, index.shape[1] * n))
    return index


@part()
def with_class_token(index: Array, offsets: int, /) -> Array:
    """Return rows with those of the class token, as query, as key and as both, before those of the cells."""
    xp = namespace(index)
    as_query, as_key, both = (beside([[offsets + n]], index, index.dtype) for n in range(3))
    cells = index.shape[0]
    first = xp.concat([both, xp.broadcast_to(as_query, (1, cells))], axis=1)
    return xp.concat([first, xp.concat([xp.broadcast_to(as_key, (cells, 1)), index], axis=1)], axis=0)


@part()
def window_entries(table: Array, index: Array, /) -> Array:
    """Return the table's entries, heads first."""
    return with_axis_moved(rows(table, index), -1, 0)
