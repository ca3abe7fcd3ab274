"""What both operations of Shaw et al. share: the row of a table for every query and key. Source: arXiv:1803.02155."""

from typing import Literal, get_args

from posref.core.arrays import Array, beside, cast, clipped, distances, library, namespace, rows, whole, wide
from posref.core.checks import check_integer, check_rows, check_tokens, check_word
from posref.spec import Axes, Domain, Integer, OneOf

Order = Literal["key_minus_query", "query_minus_key"]
ORDERS: tuple[Order, ...] = get_args(Order)
Outside = Literal["clip", "zero"]
OUTSIDE: tuple[Outside, ...] = get_args(Outside)
DOMAINS: dict[str, Domain] = {
    "left": Integer(0, usual=8),
    "right": Integer(0, usual=8),
    "order": OneOf(ORDERS),
    "outside": OneOf(OUTSIDE),
}
PLACES = {"q_positions": Axes("~*R Q", "integer"), "k_positions": Axes("~*R K", "integer")}


def widened(first: Array, *others: Array) -> list[Array]:
    """Return the arrays in the working dtype of the first: float32 or wider."""
    work = wide(first.dtype, namespace(first))
    return [cast(x, work) for x in (first, *others)]


def vectors_of(
    function: str, of: str, x: Array, table: Array, q_positions: Array, k_positions: Array, left: int, right: int,
    order: Order, outside: Outside,
) -> Array:  # fmt: skip
    """Return the vector of every query and key, in the working dtype, shape ``(*P, Q, K, D)``."""
    check_word(function, "order", order, ORDERS)
    check_word(function, "outside", outside, OUTSIDE)
    left = check_integer(function, "left", left, 0)
    right = check_integer(function, "right", right, 0)
    xp = library(function, q_positions=q_positions, k_positions=k_positions)
    check_tokens(function, q_positions=q_positions, k_positions=k_positions)
    if not all(xp.isdtype(p.dtype, "integral") for p in (q_positions, k_positions)):
        msg = f"{function}: positions must be integers; got {q_positions.dtype} and {k_positions.dtype}."
        raise ValueError(msg)
    q_positions, k_positions = whole(function, "q_positions", q_positions), whole(function, "k_positions", k_positions)
    count = left + right + 1
    if table.ndim != 2 or table.shape[0] != count:
        msg = f"{function}: the table must be 2-D with left + right + 1 = {count} rows; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    check_rows(function, "q_positions", tuple(q_positions.shape), tuple(x.shape[:-1]), of=of)
    apart = distances(q_positions, k_positions)
    apart = -apart if order == "key_minus_query" else apart
    if outside == "clip":
        return rows(table, clipped(apart, -left, right) + left)
    zeros = beside([[0.0] * table.shape[1]], table, table.dtype)
    padded = namespace(table).concat([zeros, table, zeros], axis=0)  # one row on each side, for all that is farther
    return rows(padded, clipped(apart, -left - 1, right + 1) + left + 1)
