"""Hierarchical learned positions: n rows for n squared positions. Source: Su Jianlin, kexue.fm/archives/7947 (2020)."""

from posref.absolute.learned import learned
from posref.core.arrays import beside, cast, constants, library, number_system, whole, wide
from posref.core.checks import check_positive, check_real
from posref.spec import Axes, Real, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Hierarchical learned positions",
    idea=(
        "BERT's table stops at 512 positions. Here position 1000 is made of two of its rows: one for the block of 512 that it "
        "is in, one for its place in the block. So n rows reach n times n positions, and the first n stay as trained."
    ),
    family="absolute",
    source="kexue.fm/archives/7947",
    models=("BERT, GPT and GPT2_ML of bert4keras",),
    domains={"alpha": Real(0, usual=(0.1, 0.9))},
    arrays={"positions": Axes("*P", "integer", low="0", high="N*N-1", index=True), "table": Axes("N d")},
    result="*P d",
    rows="*P",
    requires=("N > 0", "alpha < 1", "alpha != 0.5"),
    read={
        "BERT, GPT and GPT2_ML of bert4keras": (
            "bojone/bert4keras@c1ae0dc, bert4keras/models.py:506, 1550, 1648, 1816; bert4keras/layers.py:798-799"
        )
    },
)
def hierarchical_learned(positions: ArrayOf[T], table: ArrayOf[T], /, *, alpha: float = 0.4) -> T:
    r"""
    Return a vector for every position below n squared, each combined from two rows of a learned table of n rows.

    .. math:: q_{in+j} = \alpha u_i + (1 - \alpha) u_j, \qquad u_k = \frac{p_k - \alpha p_0}{1 - \alpha}, \qquad
        0 \le i, j < n

    where p_k is row k of the table, counted from 0, n the number of rows, and :math:`m = i n + j` a position below :math:`n^2`.

    Parameters
    ----------
    positions : array, integer, shape ``(*P,)``
        m, in tokens. The result is unspecified below 0 and from :math:`n^2` on.
    table : array, real floating, shape ``(n, d)``
        p, the learned rows, at least one.
    alpha : float
        :math:`\alpha`, between 0 and 1 but not 1/2, because then :math:`q_{in+j}` would equal :math:`q_{jn+i}`.

    Returns
    -------
    array, shape ``(*P, d)``
        In the dtype of `table`. For m < n the result is row m, up to rounding.

    Raises
    ------
    ValueError
        If positions are not integers, `table` is not 2-D or has no rows, or `alpha` is not in its range.

    Notes
    -----
    A model trained with n positions keeps their vectors, and is then fine-tuned on longer texts. `learned` returns the trained
    rows bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.asarray([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> hierarchical_learned(np.asarray([2, 3, 4, 6]), p).round(4).tolist()
    [[3.0, 1.0], [0.3333, 1.3333], [-0.6667, 3.3333], [2.3333, 0.6667]]
    """
    name = "hierarchical_learned"
    alpha = check_positive(name, "alpha", alpha)
    if alpha >= 1 or alpha == 0.5:
        msg = f"{name}: alpha must be between 0 and 1, and not 1/2 (positions in + j and jn + i would be equal); got {alpha!r}."
        raise ValueError(msg)
    xp = library(name, positions=positions, table=table)
    check_real(name, table=table)
    index = whole(name, "positions", positions)
    if table.ndim != 2 or table.shape[0] == 0:
        msg = f"{name}: table must be 2-D, (rows, width), with at least one row; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    c, work, count = constants(xp), wide(table.dtype, xp), table.shape[0]
    share = c.asarray(float(alpha), dtype=c.float64)
    a, b = (beside(number, table, work) for number in (share, 1 - share))
    p = cast(table, work)
    shifted, of_block, of_place = p - a * p[:1, ...], index // count, index - index // count * count
    u = shifted / b
    block, place = learned(of_block, u), learned(of_place, u)
    rows, system = a * block + b * place, number_system(xp)
    if system is not None:  # error bounds also cover interpolation from either row to the other, and the ratio of both weights
        rows = system.either(rows, lambda: place + a * (block - place))
        rows = system.either(rows, lambda: block + b * (place - block))
        rows = system.either(rows, lambda: a / b * learned(of_block, shifted) + learned(of_place, shifted))
    return cast(rows, table.dtype)
