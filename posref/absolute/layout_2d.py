"""2-D layout: learned positions of a word's box on a page. Source: Xu et al., LayoutLM, arXiv:1912.13318, section 2.2."""

from typing import Literal, get_args

from posref.absolute.learned import learned
from posref.core.arrays import cast, library, whole, wide
from posref.core.checks import check_flag, check_numbers, check_word
from posref.spec import Axes, Flag, OneOf, encoding
from posref.types import ArrayOf, T

Combine = Literal["concat", "sum"]
COMBINE: tuple[Combine, ...] = get_args(Combine)


@encoding(
    title="2-D layout embeddings",
    idea=(
        "On a scanned form it matters where a word is printed. Each of the four edges of the word's box, its height and its "
        "width pick a row of a learned table. Together the six rows tell the model the word's place and size."
    ),
    family="absolute",
    source="arXiv:1912.13318, section 2.2",
    models=("LayoutLM", "LayoutLMv2", "LayoutLMv3", "LayoutXLM", "LiLT"),
    domains={"combine": OneOf(COMBINE), "clip_sizes": Flag()},
    arrays={
        "boxes": Axes("*P 4", "integer", low="0", high="min(L,M,U,V)-1", index=True, ordered=True),
        "x_table": Axes("L d"),
        "y_table": Axes("M d"),
        "h_table": Axes("U e"),
        "w_table": Axes("V e"),
    },
    result="*P [d,4*d+2*e][combine=='concat']",
    rows="*P",
    requires=("min(L, M, U, V) > 0", "combine == 'concat' or d == e"),
    read={
        "LayoutLM": "transformers 5.23.0, models/layoutlm/modeling_layoutlm.py:48-119",
        "LayoutLMv2": "transformers 5.23.0, models/layoutlmv2/modeling_layoutlmv2.py:72-95",
        "LayoutLMv3": "transformers 5.23.0, models/layoutlmv3/modeling_layoutlmv3.py:112-136",
        "LiLT": "transformers 5.23.0, models/lilt/modeling_lilt.py:126-179",
        "LayoutXLM": "microsoft/unilm@40fbc43, layoutlmft/layoutlmft/models/layoutxlm/modeling_layoutxlm.py:4, 16-17",
    },
)
def layout_2d(
    boxes: ArrayOf[T],
    x_table: ArrayOf[T],
    y_table: ArrayOf[T],
    h_table: ArrayOf[T],
    w_table: ArrayOf[T],
    /,
    *,
    combine: Combine,
    clip_sizes: bool,
) -> T:
    r"""
    Return the learned rows for a box's four edges, its height and its width, concatenated or added.

    .. math:: PE = [X_{x_0} \,\|\, Y_{y_0} \,\|\, X_{x_1} \,\|\, Y_{y_1} \,\|\, H_{y_1 - y_0} \,\|\, W_{x_1 - x_0}]

    where :math:`(x_0, y_0)` and :math:`(x_1, y_1)` are the upper left and lower right corner of the box, a subscript picks the
    row of a table, counted from 0, and :math:`\|` puts vectors end to end. With `combine` "sum" the six rows are added.

    Parameters
    ----------
    boxes : array, integer, shape ``(*P, 4)``
        :math:`(x_0, y_0, x_1, y_1)`, in thousandths of the page's width and height. The result is unspecified for an edge
        outside its table.
    x_table : array, real floating, shape ``(L, d)``
        X, learned: a row for each horizontal coordinate. Released models have 1024.
    y_table : array, real floating, shape ``(M, d)``
        Y, learned: a row for each vertical coordinate.
    h_table : array, real floating, shape ``(U, e)``
        H, learned: a row for each height; e = d with "sum".
    w_table : array, real floating, shape ``(V, e)``
        W, learned: a row for each width.
    combine : {"concat", "sum"}
        How the six rows make one.

        - ``"concat"``: The rows are put end to end, so that each table has its own channels. Used by LayoutLMv2, LayoutLMv3,
          LayoutXLM, LiLT.
        - ``"sum"``: The rows are added, so that each table is as wide as the result. Used by LayoutLM.
    clip_sizes : bool
        True reads row 0 for a negative height or width, and the last row for one beyond the table (LayoutLMv3, with 1024
        rows). With False (the other models) the result is unspecified there: PyTorch raises, NumPy counts a negative row from
        the table's end.

    Returns
    -------
    array, shape ``(*P, 4 d + 2 e)``, or ``(*P, d)`` with "sum"
        In the dtype of `x_table`. With "concat" the rows are copied bit for bit.

    Raises
    ------
    ValueError
        If boxes are not integers or their last axis is not 4, a table is not 2-D, table widths do not fit, or
        `combine` is unknown.

    Notes
    -----
    Height comes before width. LayoutLM adds the result to the rows of the 1-D positions and to the token embeddings. LiLT
    multiplies it by a matrix first. Padding and special tokens have fixed boxes, such as (0, 0, 0, 0).

    Examples
    --------
    >>> import numpy as np
    >>> n = np.arange(8.0)[:, None]
    >>> layout_2d(np.asarray([1, 2, 5, 7]), n, n, n, n, combine="concat", clip_sizes=False).tolist()
    [1.0, 2.0, 5.0, 7.0, 5.0, 4.0]
    """
    name = "layout_2d"
    check_word(name, "combine", combine, COMBINE)
    clip_sizes = check_flag(name, "clip_sizes", clip_sizes)
    xp = library(name, boxes=boxes, x_table=x_table, y_table=y_table, h_table=h_table, w_table=w_table)
    check_numbers(name, x_table=x_table, y_table=y_table, h_table=h_table, w_table=w_table)
    places = whole(name, "boxes", boxes)
    if boxes.ndim < 1 or boxes.shape[-1] != 4:
        msg = f"{name}: boxes must have a last axis of 4, (x0, y0, x1, y1); got shape {tuple(boxes.shape)}."
        raise ValueError(msg)
    _check_tables((x_table, y_table, h_table, w_table), combine)
    x0, y0, x1, y1 = (places[..., edge] for edge in range(4))
    edges = [learned(x0, x_table), learned(y0, y_table), learned(x1, x_table), learned(y1, y_table)]
    sizes = [learned(y1 - y0, h_table, clip=clip_sizes), learned(x1 - x0, w_table, clip=clip_sizes)]
    if combine == "concat":
        return xp.concat([*edges, *sizes], axis=boxes.ndim - 1)
    work = wide(x_table.dtype, xp)
    return cast(xp.sum(xp.stack([cast(part, work) for part in (*edges, *sizes)], axis=0), axis=0), x_table.dtype)


def _check_tables(tables: tuple[ArrayOf[T], ...], combine: Combine) -> None:
    """Raise if a table is not 2-D, or widths do not fit."""
    shapes = [tuple(table.shape) for table in tables]
    widths = [shape[-1] for shape in shapes if len(shape) == 2]
    pairs = len(widths) == 4 and widths[0] == widths[1] and widths[2] == widths[3]
    if not pairs or (combine == "sum" and len(set(widths)) > 1):
        equal = "all equally wide for 'sum'" if combine == "sum" else "x_table as wide as y_table and h_table as w_table"
        msg = f"layout_2d: tables must be 2-D, (rows, width), {equal}; got {', '.join(map(str, shapes))}."
        raise ValueError(msg)
