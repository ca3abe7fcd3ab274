"""Values of attention with learned vectors for relative positions. Source: Shaw et al., arXiv:1803.02155, equation (3)."""

from posref.core.arrays import cast, library
from posref.core.checks import check_real
from posref.core.products import matmul
from posref.relative.shaw_table import DOMAINS, PLACES, Order, Outside, vectors_of, widened
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Relative position values (Shaw et al.)",
    idea=(
        "Attention adds up values by their weights. Here each value first gets a learned vector for its distance from the "
        "query, so that the result also tells where it was found. Many implementations leave this out."
    ),
    family="relative",
    source="arXiv:1803.02155, equation (3)",
    models=("Music Transformer", "VITS", "NEZHA"),
    domains=DOMAINS,
    invariants=("shift invariant", "decode"),
    arrays={"weights": Axes("*R Q K", usual=(-1.0, 1.0)), "v": Axes("*R K D"), "value_table": Axes("left+right+1 D"), **PLACES},
    result="*R Q D",
    rows="*R Q",
    sums=True,
    read={
        "Shaw et al.'s paper": "arXiv:1803.02155, section 3.2",
        "VITS": "transformers 5.23.0, models/vits/modeling_vits.py:937-967",
    },
)
def shaw_values(
    weights: ArrayOf[T],
    v: ArrayOf[T],
    value_table: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    left: int,
    right: int,
    order: Order,
    outside: Outside = "clip",
) -> T:
    r"""
    Return the weighted sum of values, after adding to each value a learned vector for its clipped distance from the query.

    .. math:: z_i = \sum_j \alpha_{ij} (v_j + a_{ij}), \qquad a_{ij} = A_{c(p_j - p_i) + l}, \qquad c(n) = \min(\max(n, -l), r)

    where alpha_ij is the weight of value v_j for query i, p_i and p_j are the positions of query i and key j, A_n is row n of
    the table, counted from 0, l = `left` and r = `right`. With `order` "query_minus_key", c(p_i - p_j) replaces c(p_j - p_i).
    With `outside` "zero", a_ij is 0 where the difference is below -l or above r.

    Parameters
    ----------
    weights : array, real floating, shape ``(*R, Q, K)``
        alpha, the attention weights, after the softmax.
    v : array, real floating, shape ``(*R, K, D)``
        Values.
    value_table : array, real floating, shape ``(left + right + 1, D)``
        A, learned, in the dtype of `weights`.
    q_positions : array, integer, shape ``(*P, Q)``
        In tokens. For `weights` of shape ``(B, H, Q, K)`` pass ``(Q,)`` or ``(B, 1, Q)``.
    k_positions : array, integer, shape ``(*P, K)``
        In tokens. For `v` of shape ``(B, H, K, D)`` pass ``(K,)`` or ``(B, 1, K)``.
    left : int
        l, at least 0: the difference of positions is clipped to -l and r.
    right : int
        r, at least 0.
    order : {"key_minus_query", "query_minus_key"}
        Which difference of positions is clipped.

        - ``"key_minus_query"``: The key's position minus the query's: keys that come before the query are negative. Used by
          Shaw et al.'s paper.
        - ``"query_minus_key"``: The query's position minus the key's: keys that come before the query are positive.
    outside : {"clip", "zero"}
        What is added to a value that is farther from the query than the window.

        - ``"clip"``: The last vector of that side. Used by Shaw et al.'s paper.
        - ``"zero"``: Nothing: the value alone. Used by VITS.

    Returns
    -------
    array, shape ``(*R, Q, D)``
        In the dtype of `weights`.

    Raises
    ------
    ValueError
        As for `shaw_scores`.

    Notes
    -----
    Many implementations have no table for values: they return the sum without a_ij. The window of the values may differ from
    that of the keys in `shaw_scores`. NEZHA has one table for both.

    Examples
    --------
    >>> import numpy as np
    >>> v, table = np.asarray([[2.0], [3.0]]), np.asarray([[10.0], [20.0], [30.0]])
    >>> places = np.asarray([0]), np.asarray([0, 1])
    >>> shaw_values(np.asarray([[0.5, 0.5]]), v, table, *places, left=1, right=1, order="key_minus_query").tolist()
    [[27.5]]
    """
    library("shaw_values", weights=weights, v=v, value_table=value_table)
    check_real("shaw_values", weights=weights, v=v, value_table=value_table)
    attention, values, table = widened(weights, v, value_table)
    vectors = vectors_of("shaw_values", "weights", weights, table, q_positions, k_positions, left, right, order, outside)
    relative = matmul(attention[..., :, None, :], vectors)[..., 0, :]
    return cast(matmul(attention, values) + relative, weights.dtype)
