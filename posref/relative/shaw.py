"""Relative position representations. Source: Shaw et al., arXiv:1803.02155, equations (3) and (4)."""

from typing import Literal, get_args

from posref.arrays import Array, cast, distances, namespace, rows, wide
from posref.checks import check_integer, check_real, check_rows, check_tokens, check_word
from posref.spec import Axes, Domain, Integer, OneOf, encoding
from posref.types import ArrayOf, T

Order = Literal["key_minus_query", "query_minus_key"]
ORDERS: tuple[Order, ...] = get_args(Order)
DOMAINS: dict[str, Domain] = {"left": Integer(0, usual=8), "right": Integer(0, usual=8), "order": OneOf(ORDERS)}
PLACES = {"q_positions": Axes("~*R Q", "integer"), "k_positions": Axes("~*R K", "integer")}


@encoding(
    family="relative",
    source="arXiv:1803.02155, equation (4)",
    models=("Music Transformer", "SpeechT5", "Wav2Vec2-BERT"),
    domains=DOMAINS,
    invariants=("shift invariant", "decode"),
    arrays={"q": Axes("*R Q D", usual=(-1.0, 1.0)), "k": Axes("*R K D"), "key_table": Axes("left+right+1 D"), **PLACES},
    result="*R Q K",
    rows="*R Q K",
    sums=True,
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
        Which difference of positions is clipped. The paper uses the first, SpeechT5 the second.

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
    xp = namespace(q, k, key_table)
    check_real("shaw_scores", q=q, k=k, key_table=key_table)
    index = _rows_of("shaw_scores", "q", q, key_table, q_positions, k_positions, left, right, order)
    queries, keys, table = _widened(q, k, key_table)
    content = xp.matmul(queries, xp.matrix_transpose(keys))
    offsets = xp.matrix_transpose(rows(table, index))  # (*P, Q, D, K)
    relative = xp.matmul(queries[..., :, None, :], offsets)[..., 0, :]
    return cast(content + relative, q.dtype)


@encoding(
    family="relative",
    source="arXiv:1803.02155, equation (3)",
    models=("Music Transformer",),
    domains=DOMAINS,
    invariants=("shift invariant", "decode"),
    arrays={"weights": Axes("*R Q K", usual=(-1.0, 1.0)), "v": Axes("*R K D"), "value_table": Axes("left+right+1 D"), **PLACES},
    result="*R Q D",
    rows="*R Q",
    sums=True,
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
) -> T:
    r"""
    Return the weighted sum of values, after adding to each value a learned vector for its clipped distance from the query.

    .. math:: z_i = \sum_j \alpha_{ij} (v_j + a_{ij}), \qquad a_{ij} = A_{c(p_j - p_i) + l}, \qquad c(n) = \min(\max(n, -l), r)

    where alpha_ij is the weight of value v_j for query i, p_i and p_j are the positions of query i and key j, A_n is row n of
    the table, counted from 0, l = `left` and r = `right`. With `order` "query_minus_key", c(p_i - p_j) replaces c(p_j - p_i).

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
        Which difference of positions is clipped. The paper uses the first.

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
    Many implementations have no table for values: they return the sum without a_ij.

    Examples
    --------
    >>> import numpy as np
    >>> v, table = np.asarray([[2.0], [3.0]]), np.asarray([[10.0], [20.0], [30.0]])
    >>> places = np.asarray([0]), np.asarray([0, 1])
    >>> shaw_values(np.asarray([[0.5, 0.5]]), v, table, *places, left=1, right=1, order="key_minus_query").tolist()
    [[27.5]]
    """
    xp = namespace(weights, v, value_table)
    check_real("shaw_values", weights=weights, v=v, value_table=value_table)
    index = _rows_of("shaw_values", "weights", weights, value_table, q_positions, k_positions, left, right, order)
    given, values, table = _widened(weights, v, value_table)
    relative = xp.matmul(given[..., :, None, :], rows(table, index))[..., 0, :]  # rows: (*P, Q, K, D)
    return cast(xp.matmul(given, values) + relative, weights.dtype)


def _widened(first: Array, *others: Array) -> list[Array]:
    """Return the arrays in the working dtype of the first: float32 or wider."""
    work = wide(first.dtype, namespace(first))
    return [cast(x, work) for x in (first, *others)]


def _rows_of(
    function: str, of: str, x: Array, table: Array, q_positions: Array, k_positions: Array, left: int, right: int, order: Order
) -> Array:
    """Return the index of the table's row for every query and key, shape ``(*P, Q, K)``."""
    check_word(function, "order", order, ORDERS)
    left = check_integer(function, "left", left, 0)
    right = check_integer(function, "right", right, 0)
    xp = namespace(q_positions, k_positions)
    check_tokens(function, q_positions=q_positions, k_positions=k_positions)
    if not all(xp.isdtype(p.dtype, "integral") for p in (q_positions, k_positions)):
        msg = f"{function}: positions must be integers; got {q_positions.dtype} and {k_positions.dtype}."
        raise ValueError(msg)
    count = left + right + 1
    if table.ndim != 2 or table.shape[0] != count:
        msg = f"{function}: the table must be 2-D with left + right + 1 = {count} rows; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    check_rows(function, "q_positions", tuple(q_positions.shape), tuple(x.shape[:-1]), of=of)
    apart = distances(q_positions, k_positions)
    apart = -apart if order == "key_minus_query" else apart
    return xp.clip(apart, -left, right) + left
