"""Decomposed relative tables for height and width. Source: Li et al., MViTv2, arXiv:2112.01526, section 4.1."""

from posref.core.arrays import Array, beside, cast, index_dtype, library, namespace, rows, with_axis_moved
from posref.core.checks import check_integer, check_real
from posref.core.products import matmul
from posref.relative.decomposed_rows import decomposed_rows
from posref.relative.shaw_table import widened
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Decomposed relative positions (MViTv2, SAM)",
    idea=(
        "For the distance along the height there is one learned vector, for that along the width another. The query's product "
        "with both is added to the logit. So two small tables serve, where one for all distances in the plane would be large."
    ),
    family="relative",
    source="arXiv:2112.01526, equations (4) and (5)",
    models=("MViTv2", "ViTDet", "SAM", "SAM-HQ", "SegGPT", "GOT-OCR 2.0"),
    domains={"k_rows": Integer(1), "k_columns": Integer(1)},
    arrays={
        "q": Axes("*R I J D", usual=(-1.0, 1.0)),
        "table_h": Axes("2*max(I,k_rows)-1 D", usual=(-1.0, 1.0)),
        "table_w": Axes("2*max(J,k_columns)-1 D", usual=(-1.0, 1.0)),
    },
    result="*R I J k_rows k_columns",
    rows="*R",
    sums=True,
    read={
        "timm's MViTv2": "timm 1.0.31, timm/models/mvitv2.py:990-1004",
        "ViTDet": "transformers 5.23.0, models/vitdet/modeling_vitdet.py:125-199",
        "SAM-HQ": "transformers 5.23.0, models/sam_hq/modeling_sam_hq.py:153-225",
        "SegGPT": "transformers 5.23.0, models/seggpt/modeling_seggpt.py:236-311",
        "GOT-OCR 2.0": "transformers 5.23.0, models/got_ocr2/modeling_got_ocr2.py:102-174",
    },
)
def decomposed_bias(q: ArrayOf[T], table_h: ArrayOf[T], table_w: ArrayOf[T], /, *, k_rows: int, k_columns: int) -> T:
    r"""
    Return products of each query with a learned vector for its vertical distance from each key and one for the horizontal one.

    .. math:: B_{(y,x),(v,u)} = q_{y,x} \cdot H_{a(y, v)} + q_{y,x} \cdot W_{a(x, u)}

    where the query is in row y and column x of its grid, the key in row v and column u of its own, H and W are the tables, and
    a(i, j) is the row of a table (`decomposed_rows`): i - j + k - 1 if both grids have k cells along that axis. If queries have
    I cells and keys k, and both differ, it is :math:`\lfloor i \max(k/I, 1) + (k - 1 - j) \max(I/k, 1) \rfloor`.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, I, J, D)``
        Queries of a grid of I rows and J columns, without class tokens, and without the logits' scale 1/sqrt(D).
    table_h : array, real floating, shape ``(2 max(I, k_rows) - 1, D)``
        H, learned, in the dtype of `q`. All heads share it.
    table_w : array, real floating, shape ``(2 max(J, k_columns) - 1, D)``
        W, learned.
    k_rows : int
        The rows of the grid of keys, at least 1: I in SAM, ViTDet and SegGPT. MViTv2 pools keys.
    k_columns : int
        The columns of the grid of keys.

    Returns
    -------
    array, shape ``(*R, I, J, k_rows, k_columns)``
        In the dtype of `q`. Reshape to ``(*R, Q, K)``. Logit units: add it after the 1/sqrt(D) scale, before the mask.

    Raises
    ------
    ValueError
        If an array is not real floating, `q` has fewer than three axes, a number of keys is below 1, or a table does not have
        these rows and channels.

    Notes
    -----
    For another image size, resample each table first: ``resample(table, [2 * n - 1], old_size=[len(table)], prefix=0,
    method="linear", align_corners=False, antialias=False)``. SAM and ViTDet in transformers do it at every call, timm's MViTv2
    when it loads. The class token of MViTv2 has no bias: its row and column are 0. Its models of videos add a third table, for
    time. SAM 2 has none of this. Both terms can be added apart, one broadcast over columns, the other over rows.

    Examples
    --------
    >>> import numpy as np
    >>> q, table_h, table_w = np.asarray([[[2.0], [1.0]]]), np.asarray([[1.0]]), np.asarray([[10.0], [20.0], [30.0]])
    >>> decomposed_bias(q, table_h, table_w, k_rows=1, k_columns=2).tolist()
    [[[[42.0, 22.0]], [[31.0, 21.0]]]]
    """
    name = "decomposed_bias"
    library(name, q=q, table_h=table_h, table_w=table_w)
    check_real(name, q=q, table_h=table_h, table_w=table_w)
    sizes = [check_integer(name, of, n, 1) for of, n in (("k_rows", k_rows), ("k_columns", k_columns))]
    if q.ndim < 3:
        msg = f"{name}: q must be (..., rows, columns, channels); got shape {tuple(q.shape)}."
        raise ValueError(msg)
    for of, table, queries, keys in (("table_h", table_h, q.shape[-3], sizes[0]), ("table_w", table_w, q.shape[-2], sizes[1])):
        shape = (2 * max(queries, keys) - 1, q.shape[-1])
        if tuple(table.shape) != shape:
            msg = f"{name}: {of} must have shape {shape} for {queries} and {keys} cells (resample another table first); got "
            msg += f"{tuple(table.shape)}."
            raise ValueError(msg)
    queries, height, width = widened(q, table_h, table_w)
    by_column = _term(queries, width, sizes[1])  # (*R, I, J, U)
    by_row = with_axis_moved(_term(with_axis_moved(queries, -3, -2), height, sizes[0]), -3, -2)  # (*R, I, J, V)
    return cast(by_row[..., :, None] + by_column[..., None, :], q.dtype)


def _term(q: Array, table: Array, keys: int, /) -> Array:
    """Return the products of queries, shape (..., cells, D), with the rows of a table for all keys along their axis."""
    xp = namespace(q)
    places = (beside(list(range(n)), q, index_dtype(q)) for n in (q.shape[-2], keys))
    index = decomposed_rows(*places, q_size=max(q.shape[-2], 1), k_size=keys)
    vectors = xp.matrix_transpose(rows(table, index))  # (cells, D, keys)
    return matmul(q[..., :, None, :], vectors)[..., 0, :]
