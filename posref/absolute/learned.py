"""Learned absolute positions: a table. Source: Gehring et al., arXiv:1705.03122, section 3.1; BERT, arXiv:1810.04805."""

from posref.core.arrays import clipped, library, rows, whole
from posref.core.checks import check_flag, check_integer, check_numbers
from posref.spec import Axes, Flag, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Learned position embeddings",
    idea=(
        "A table has one learned vector for each position: row 0 for the first token, row 1 for the second. The model adds a "
        "token's row to its embedding, and so knows where the token is. Positions beyond the last row have no vector."
    ),
    family="absolute",
    source="arXiv:1705.03122, section 3.1",
    models=("BERT", "GPT-2", "RoBERTa", "OPT", "ViT", "ProphetNet"),
    domains={"offset": Integer(0, usual=8), "clip": Flag()},
    arrays={"positions": Axes("*P", "integer", low="0", high="N-offset-1", index=True), "table": Axes("N d")},
    result="*P d",
    rows="*P",
    requires=("offset < N",),
    invariants=("batch equivariant",),
    read={
        "bert4keras": "bojone/bert4keras@c1ae0dc, bert4keras/layers.py:811-816",
        "x-transformers": "x-transformers 2.31.10, x_transformers/x_transformers.py:416-442",
        "GPT-2": "transformers 5.23.0, models/gpt2/modeling_gpt2.py:491, 574",
        "OPT": "transformers 5.23.0, models/opt/modeling_opt.py:45-70",
        "ProphetNet": "transformers 5.23.0, models/prophetnet/modeling_prophetnet.py:342-382",
    },
)
def learned(positions: ArrayOf[T], table: ArrayOf[T], /, *, offset: int = 0, clip: bool = False) -> T:
    r"""
    Return the row of a learned table for every position.

    .. math:: PE_p = E_{p + o}

    where p is the position, E_n row n of the table, counted from 0, and o the offset. With `clip` the row is
    :math:`\min(\max(p + o, 0), N - 1)`.

    Parameters
    ----------
    positions : array, integer, shape ``(*P,)``
        p, in tokens. Without `clip` the result is unspecified for a position outside the table: libraries raise, wrap or fill
        with NaN. `posref.positions.require_in_range` raises.
    table : array, real floating, shape ``(N, d)``
        E, the learned rows.
    offset : int
        o, the number of table rows before the row of position 0. BERT and GPT-2 have 0, OPT and BART 2, RoBERTa
        ``padding_idx + 1``, which is also 2.
    clip : bool
        True reads the first row for positions before the table, and the last row for positions beyond it (ProphetNet's decoder;
        TAPAS at the upper end).

    Returns
    -------
    array, shape ``(*P, d)``
        Rows of `table` in its dtype, copied bit for bit.

    Raises
    ------
    ValueError
        If positions are not integers, `table` is not 2-D or, with `clip`, has no rows, or `offset` is negative.

    Notes
    -----
    Nearly all models add the rows to the token embeddings. bert4keras with "mul" multiplies the embeddings by 1 + PE.
    x-transformers scales the table by :math:`d^{-1/2}`.

    Examples
    --------
    >>> import numpy as np
    >>> learned(np.asarray([2, 0]), np.asarray([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]])).tolist()
    [[2.5, 3.0], [0.5, 1.0]]
    >>> learned(np.asarray([-1, 7]), np.asarray([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]), clip=True).tolist()
    [[0.5, 1.0], [2.5, 3.0]]
    """
    xp = library("learned", positions=positions, table=table)
    if not xp.isdtype(positions.dtype, "integral"):
        msg = f"learned: positions must be integers (each selects a row of the table); got {positions.dtype}."
        raise ValueError(msg)
    check_numbers("learned", table=table)
    if table.ndim != 2:
        msg = f"learned: table must be 2-D, (rows, width); got shape {tuple(table.shape)}."
        raise ValueError(msg)
    offset = check_integer("learned", "offset", offset, 0)
    clip = check_flag("learned", "clip", clip)
    index = whole("learned", "positions", positions) + offset
    if not clip:
        return rows(table, index)
    if table.shape[0] == 0:
        msg = f"learned: table must have at least one row with clip=True; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    return rows(table, clipped(index, 0, table.shape[0] - 1))
