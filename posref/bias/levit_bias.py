"""Attention bias of LeViT. Source: Graham et al., LeViT, arXiv:2104.01136, section 4.2, equation (2), and the authors' code."""

from posref.core.arrays import Array, beside, index_dtype, library, namespace
from posref.core.checks import check_integer, check_real
from posref.spec import Axes, Integer, encoding, part
from posref.types import ArrayOf, T

QUERIES = "((height-1)//stride+1)*((width-1)//stride+1)"


@encoding(
    title="Attention bias (LeViT)",
    idea=(
        "Every attention head has a learned number for each distance in rows and columns of an image. It is added to the "
        "logits of all pairs of cells that far apart, on whichever side: left and right, above and below are alike."
    ),
    family="bias",
    source="arXiv:2104.01136, equation (2)",
    models=("LeViT", "EfficientFormer", "TinyViT"),
    domains={"height": Integer(1, usual=6), "width": Integer(1, usual=6), "stride": Integer(1, usual=3)},
    arrays={"table": Axes("H height*width")},
    result=f"H {QUERIES} height*width",
    rows="H",
    read={
        "vit-pytorch": "vit-pytorch 1.26.11, vit_pytorch/levit.py:69-88",
        "LeViT": "transformers 5.23.0, models/levit/modeling_levit.py:165-176, 243-257",
        "EfficientFormer": "timm 1.0.31, timm/models/efficientformer.py:82-119",
        "TinyViT": "timm 1.0.31, timm/models/tiny_vit.py:244-252, 306-319",
    },
)
def levit_bias(table: ArrayOf[T], /, *, height: int, width: int, stride: int) -> T:
    r"""
    Return the bias of a grid: for each head, a learned number for the absolute offset between a query and a key.

    .. math:: B_{h,i,j} = E_{h,\, r(|s y_i - y_j|,\, |s x_i - x_j|)}, \qquad r(\Delta_y, \Delta_x) = \Delta_y W + \Delta_x

    where key j is in row y_j and column x_j of a grid of `height` rows and W = `width` columns, h is the head, E the table and
    s the `stride`. Queries are the cells at every s-th row and every s-th column, so that query i, in row y_i and column x_i
    among them, is at the cell (s y_i, s x_i). Queries and keys are counted row by row.

    Parameters
    ----------
    table : array, real floating, shape ``(H, height * width)``
        E, learned: for each head the numbers of the offsets (0, 0), (0, 1), ..., row by row.
    height : int
        Rows of the grid of keys, at least 1.
    width : int
        Columns of the grid of keys, at least 1.
    stride : int
        Rows and columns from one query to the next, at least 1: 1 where every cell is a query, 2 where LeViT halves the grid.

    Returns
    -------
    array, shape ``(H, Q, K)``, with K = height * width
        In logit units: entries of `table` in its dtype, bit for bit. Q is ``ceil(height / stride) * ceil(width / stride)``. Add
        it after the 1/sqrt(D) scale.

    Raises
    ------
    ValueError
        If `table` is not 2-D, not real floating, or has another number of columns, or a size is less than 1.

    Notes
    -----
    The authors' code and transformers number the offsets in the order in which the first query meets them. That query is at
    cell (0, 0), so this is the order above. They keep the gathered bias for inference: a table that changes must clear it.
    vit-pytorch has a table of (N, H), transposed, and divides its bias by the scale, which multiplies it by sqrt(D).

    Examples
    --------
    >>> import numpy as np
    >>> levit_bias(np.arange(6.0)[None, :], height=2, width=3, stride=2).tolist()
    [[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]]]
    """
    name = "levit_bias"
    xp = library(name, table=table)
    check_real(name, table=table)
    height, width = check_integer(name, "height", height, 1), check_integer(name, "width", width, 1)
    stride = check_integer(name, "stride", stride, 1)
    if table.ndim != 2 or table.shape[1] != height * width:
        msg = f"{name}: table must be (heads, {height * width}), with height * width columns; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    y, x = (absolute_offsets(table, size, stride) for size in (height, width))
    index = y[:, None, :, None] * width + x[None, :, None, :]
    bias = xp.take(table, xp.reshape(index, (-1,)), axis=1)
    return xp.reshape(bias, (table.shape[0], y.shape[0] * x.shape[0], height * width))


@part()
def absolute_offsets(table: Array, size: int, stride: int, /) -> Array:
    """Return the distance of every query and every key along one axis, shape (queries, size)."""
    of_queries = beside(list(range(0, size, stride)), table, index_dtype(table))
    of_keys = beside(list(range(size)), table, index_dtype(table))
    return namespace(table).abs(of_queries[:, None] - of_keys[None, :])
