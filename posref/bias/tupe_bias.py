"""TUPE: untied positional encoding. Source: Ke et al., arXiv:2006.15595, section 3."""

from posref.core.arrays import Array, beside, cast, library, namespace, wide
from posref.core.checks import check_flag, check_real
from posref.core.products import matmul
from posref.spec import Axes, Flag, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="Untied positional encoding (TUPE)",
    idea=(
        "Positions have queries and keys of their own: projections of a learned vector for each position. Their products are "
        "added to the products of the contents, in all layers alike. The class token stands for the whole text and has no "
        "place in it, so it gets two numbers of its own instead."
    ),
    family="bias",
    source="arXiv:2006.15595, equations (7) to (10)",
    models=("TUPE",),
    domains={"cls": Flag()},
    arrays={"p_q": Axes("*R N D", usual=(-1.0, 1.0)), "p_k": Axes("*R N D")},
    result="*R N-1 N-1",
    rows="*R",
    requires=("N > 1", "D > 0"),
    sums=True,
    read={"TUPE": "guolinke/TUPE@000ded0, fairseq/modules/transformer_sentence_encoder.py:126-133, 240-254"},
)
def tupe_bias(p_q: ArrayOf[T], p_k: ArrayOf[T], /, *, cls: bool) -> T:
    r"""
    Return the products of projected positions, with separate learned numbers for the class token.

    .. math:: b_{mn} = \frac{p^q_{m+1} \cdot p^k_{n+1}}{\sqrt{2D}}, \qquad b_{0n} = \frac{p^q_0 \cdot p^k_0}{\sqrt{2D}}, \qquad
        b_{m0} = \frac{p^q_1 \cdot p^k_1}{\sqrt{2D}} \quad (m > 0)

    where row n + 1 of the tables belongs to token n, and row 0 to none. The second and third formula hold with `cls`, where
    token 0 is the class token. Else the first holds for all tokens.

    Parameters
    ----------
    p_q : array, real floating, shape ``(*R, H, T+1, D)``
        The projected positions of queries, one row more than tokens. The authors project a learned table after a LayerNorm, by
        one matrix with a bias, for all layers.
    p_k : array, real floating, shape ``(*R, H, T+1, D)``
        The projected positions of keys, from the same learned table.
    cls : bool
        Whether token 0 is a class token with numbers of its own. True in the authors' models.

    Returns
    -------
    array, shape ``(*R, H, T, T)``
        In the dtype of `p_q`, in logit units. Add it to the products of contents, which are also over the root of 2 D and not
        of D. A T5 bias is added after it.

    Raises
    ------
    ValueError
        If an array is not real floating, the shapes differ, there are fewer than two rows or no channels, or `cls` is no bool.

    Notes
    -----
    Its column is set before its row, so that the class token itself has the number of the row. The T5 bias of the authors' code
    has a bucket of its own for this column, and one for this row.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.asarray([[3.0, 1.0], [1.0, 1.0], [2.0, 0.0], [0.0, 4.0]])
    >>> tupe_bias(p, p, cls=True).tolist()
    [[5.0, 5.0, 5.0], [1.0, 2.0, 0.0], [1.0, 0.0, 8.0]]
    """
    name = "tupe_bias"
    xp = library(name, p_q=p_q, p_k=p_k)
    check_real(name, p_q=p_q, p_k=p_k)
    check_flag(name, "cls", cls)
    if p_q.ndim < 2 or p_q.shape != p_k.shape or p_q.shape[-2] < 2 or not p_q.shape[-1]:
        msg = (
            f"{name}: p_q and p_k must both be (..., tokens + 1, D), with a token or more and D at least 1; got shapes "
            f"{tuple(p_q.shape)} and {tuple(p_k.shape)}."
        )
        raise ValueError(msg)
    work = wide(p_q.dtype, xp)
    products = matmul(cast(p_q, work), xp.matrix_transpose(cast(p_k, work)))
    products = products / xp.sqrt(beside(2.0 * p_q.shape[-1], p_q, work))
    return cast(reset(products) if cls else products[..., 1:, 1:], p_q.dtype)


@part()
def reset(products: Array, /) -> Array:
    """Return the products of tokens, with those of row 0 for the class token's row and those of row 1 for its column."""
    xp = namespace(products)
    lead, tokens = tuple(products.shape[:-2]), products.shape[-1] - 1
    row = xp.broadcast_to(products[..., :1, :1], (*lead, 1, tokens))
    column = xp.broadcast_to(products[..., 1:2, 1:2], (*lead, tokens - 1, 1))
    return xp.concat([row, xp.concat([column, products[..., 2:, 2:]], axis=-1)], axis=-2)
