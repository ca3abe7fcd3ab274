"""Relative position representations. Source: Shaw et al., arXiv:1803.02155, equations (3) and (4)."""

from posref.core.arrays import cast, library, rows
from posref.core.checks import check_real
from posref.relative.shaw_table import DOMAINS, PLACES, Order, rows_of, widened
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Relative position keys (Shaw et al.)",
    idea=(
        "For every distance, such as 3 tokens back, there is a learned vector. It is added to the key before the product with "
        "the query. So a query can look for content and distance at once. All distances beyond a limit share one vector."
    ),
    family="relative",
    source="arXiv:1803.02155, equation (4)",
    models=("Music Transformer", "SpeechT5", "Wav2Vec2-BERT"),
    domains=DOMAINS,
    invariants=("shift invariant", "decode"),
    arrays={"q": Axes("*R Q D", usual=(-1.0, 1.0)), "k": Axes("*R K D"), "key_table": Axes("left+right+1 D"), **PLACES},
    result="*R Q K",
    rows="*R Q K",
    sums=True,
    read={
        "SpeechT5": "transformers 5.23.0, models/speecht5/modeling_speecht5.py:425-441",
        "Shaw et al.'s paper": "arXiv:1803.02155, section 3.2",
    },
)
def shaw_scores(
    q: ArrayOf[T],
    k: ArrayOf[T],
    key_table: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    left: int,
    right: int,
    order: Order,
) -> T:
    r"""
    Return query-key products, after adding to each key a learned vector for its clipped distance from the query.

    .. math:: e_{ij} = q_i \cdot (k_j + a_{ij}), \qquad a_{ij} = A_{c(p_j - p_i) + l}, \qquad c(n) = \min(\max(n, -l), r)

    where q_i and k_j are query i and key j, p_i and p_j their positions, A_n row n of the table, counted from 0, l = `left` and
    r = `right`. With `order` "query_minus_key", c(p_i - p_j) replaces c(p_j - p_i).

    Parameters
    ----------
    q : array, real floating, shape ``(*R, Q, D)``
        Queries.
    k : array, real floating, shape ``(*R, K, D)``
        Keys.
    key_table : array, real floating, shape ``(left + right + 1, D)``
        A, learned, in the dtype of `q`. All heads share it, as in the paper.
    q_positions : array, integer, shape ``(*P, Q)``
        In tokens. For `q` of shape ``(B, H, Q, D)`` pass ``(Q,)`` or ``(B, 1, Q)``.
    k_positions : array, integer, shape ``(*P, K)``
        In tokens. For `k` of shape ``(B, H, K, D)`` pass ``(K,)`` or ``(B, 1, K)``.
    left : int
        l, at least 0: the difference of positions is clipped to -l and r. The paper has l = r; Wav2Vec2-BERT has l = 64.
    right : int
        r, at least 0; 8 in Wav2Vec2-BERT.
    order : {"key_minus_query", "query_minus_key"}
        Which difference of positions is clipped.

        - ``"key_minus_query"``: The key's position minus the query's: keys that come before the query are negative. Used by
          Shaw et al.'s paper.
        - ``"query_minus_key"``: The query's position minus the key's: keys that come before the query are positive. Used by
          SpeechT5.

    Returns
    -------
    array, shape ``(*R, Q, K)``
        Unscaled, in the dtype of `q`. The paper then divides by sqrt(D).

    Raises
    ------
    ValueError
        If the table is not 2-D with ``left + right + 1`` rows, an array is not real floating, positions are not integers, have
        no axis or do not fit the shape of `q`, or `order` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, table = np.asarray([[1.0]]), np.asarray([[2.0], [3.0]]), np.asarray([[10.0], [20.0], [30.0]])
    >>> places = np.asarray([0]), np.asarray([0, 1])
    >>> shaw_scores(q, k, table, *places, left=1, right=1, order="key_minus_query").tolist()
    [[22.0, 33.0]]
    """
    xp = library("shaw_scores", q=q, k=k, key_table=key_table)
    check_real("shaw_scores", q=q, k=k, key_table=key_table)
    index = rows_of("shaw_scores", "q", q, key_table, q_positions, k_positions, left, right, order)
    queries, keys, table = widened(q, k, key_table)
    content = xp.matmul(queries, xp.matrix_transpose(keys))
    offsets = xp.matrix_transpose(rows(table, index))  # (*P, Q, D, K)
    relative = xp.matmul(queries[..., :, None, :], offsets)[..., 0, :]
    return cast(content + relative, q.dtype)
