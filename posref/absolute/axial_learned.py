"""Axial learned positions: a table for each axis. Source: Kitaev et al., Reformer, arXiv:2001.04451, section 5."""

from typing import Literal, get_args

from posref.absolute.learned import learned
from posref.core.arrays import cast, library, whole, wide
from posref.core.checks import check_numbers, check_word
from posref.spec import Axes, OneOf, encoding
from posref.types import ArrayOf, T

Combine = Literal["concat", "sum"]
COMBINE: tuple[Combine, ...] = get_args(Combine)


@encoding(
    title="Axial learned tables",
    idea=(
        "An image of 64 by 64 cells would need 4096 learned vectors. Two small tables, one for rows and one for columns, need "
        "128. A cell's vector is its row's and its column's, side by side or added."
    ),
    family="absolute",
    source="arXiv:2001.04451, section 5",
    models=("Reformer", "DETR", "VQ-Diffusion", "Gemma 4 vision"),
    domains={"combine": OneOf(COMBINE)},
    arrays={
        "positions": Axes("2 *P", "integer", low="0", high="min(M,N)-1", index=True),
        "first": Axes("M d"),
        "second": Axes("N e"),
    },
    result="*P [d,d+e][combine=='concat']",
    rows="*P",
    requires=("min(M, N) > 0", "combine == 'concat' or d == e"),
    read={
        "Reformer": "transformers 5.23.0, models/reformer/modeling_reformer.py:192-294",
        "DETR": "transformers 5.23.0, models/detr/modeling_detr.py:371-398",
        "Gemma 4 vision": "transformers 5.23.0, models/gemma4/modeling_gemma4.py:584-626",
        "VQ-Diffusion": (
            "microsoft/VQ-Diffusion@d1d3948, image_synthesis/modeling/embeddings/dalle_mask_image_embedding.py:48-55"
        ),
    },
)
def axial_learned(positions: ArrayOf[T], first: ArrayOf[T], second: ArrayOf[T], /, *, combine: Combine) -> T:
    r"""
    Return two learned rows for every 2-D position, one for each coordinate, concatenated or added.

    .. math:: \text{concat}: \; PE_{(p,q)} = [E_p \,\|\, F_q], \qquad \text{sum}: \; PE_{(p,q)} = E_p + F_q

    where (p, q) are the coordinates of a position, E_n and F_n row n of the first and second table, counted from 0, and
    :math:`\|` puts vectors end to end.

    Parameters
    ----------
    positions : array, integer, shape ``(2, *P)``
        p and q, as `posref.positions.grid` gives them. The result is unspecified for a coordinate outside its table.
    first : array, real floating, shape ``(M, d)``
        E, learned rows for ``positions[0]``.
    second : array, real floating, shape ``(N, e)``
        F, learned rows for ``positions[1]``. With "sum", e must equal d.
    combine : {"concat", "sum"}
        How the rows of the two tables make one.

        - ``"concat"``: The rows are put end to end, so that each table has its own channels. Used by Reformer, DETR.
        - ``"sum"``: The rows are added, so that each table is as wide as the result. Used by VQ-Diffusion, Gemma 4 vision.

    Returns
    -------
    array, shape ``(*P, d + e)``, or ``(*P, d)`` with "sum"
        In the dtype of `first`. With "concat" the rows are copied bit for bit.

    Raises
    ------
    ValueError
        If positions are not integers or their first axis is not 2, a table is not 2-D, widths differ with "sum", or `combine`
        is unknown.

    Notes
    -----
    Reformer lays a sequence row after row on a grid of M rows and N columns. Position t is in row p = floor(t / N) and column
    q = t mod N (``grid(M, N)[:, t]``). The code of transformers does the same; its documentation says t mod M and floor(t / M).
    DETR puts the column's table first: pass columns, then rows. For more axes, combine the results of `learned`.

    Examples
    --------
    Position 4 of Reformer's grid of 2 rows and 3 columns:

    >>> import numpy as np
    >>> rows, columns = np.asarray([[10.0], [20.0]]), np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> axial_learned(np.asarray([4 // 3, 4 % 3]), rows, columns, combine="concat").tolist()
    [20.0, 3.0, 4.0]
    """
    name = "axial_learned"
    check_word(name, "combine", combine, COMBINE)
    xp = library(name, positions=positions, first=first, second=second)
    check_numbers(name, first=first, second=second)
    if positions.ndim < 1 or positions.shape[0] != 2 or not xp.isdtype(positions.dtype, "integral"):
        got = f"{positions.dtype} of shape {tuple(positions.shape)}"
        msg = f"{name}: positions must be integers of shape (2, ...), two coordinates; got {got}."
        raise ValueError(msg)
    if first.ndim != 2 or second.ndim != 2 or (combine == "sum" and first.shape[1] != second.shape[1]):
        equal = ", equally wide for 'sum'" if combine == "sum" else ""
        msg = f"{name}: first and second must be 2-D, (rows, width){equal}; got {tuple(first.shape)} and {tuple(second.shape)}."
        raise ValueError(msg)
    rows, columns = (whole(name, "positions", positions[axis, ...]) for axis in (0, 1))
    e, f = learned(rows, first), learned(columns, second)
    if combine == "concat":
        return xp.concat([e, f], axis=positions.ndim - 1)
    work = wide(first.dtype, xp)
    return cast(cast(e, work) + cast(f, work), first.dtype)
