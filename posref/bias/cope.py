"""CoPE: contextual position encoding. Source: Golovneva et al., arXiv:2405.18719, section 4."""

from posref.core.arrays import Array, beside, cast, library, namespace, number_system, suffix_sums, wide
from posref.core.checks import check_mask, check_real
from posref.core.products import matmul
from posref.spec import Axes, encoding, part
from posref.types import AnyArray, ArrayOf, T


@encoding(
    title="Contextual position encoding (CoPE)",
    idea=(
        "Instead of tokens, a query counts those keys that its logits open a gate for, such as ends of sentences. The position "
        "of a key is the number of gates open from it to the query, with fractions. The bias of a position is the product of "
        "the query with a learned vector, interpolated between whole positions."
    ),
    family="bias",
    source="arXiv:2405.18719, section 4",
    arrays={
        "q": Axes("*R Q D", usual=(-1.0, 1.0)),
        "logits": Axes("*R Q K"),
        "table": Axes("N D"),
        "mask": Axes("~*R ~Q ~K", "mask"),
    },
    result="*R Q K",
    rows="*R Q",
    requires=("N >= 1",),
    sums=True,
    read={
        "x-transformers": (
            "x-transformers 2.31.10, x_transformers/attend.py:556, 603-604; x_transformers/x_transformers.py:545-578"
        )
    },
)
def cope(q: ArrayOf[T], logits: ArrayOf[T], table: ArrayOf[T], mask: AnyArray, /) -> T:
    r"""
    Return CoPE's bias: the query's product with the vector of each key's contextual position.

    .. math::

        B_{ij} = (1 - w_{ij}) \, q_i \cdot e_{\lfloor p_{ij} \rfloor} + w_{ij} \, q_i \cdot e_{\lceil p_{ij} \rceil}, \qquad
        p_{ij} = \min\left(\sum_{l=j}^{K-1} g_{il}, \, N - 1\right)

    where the gate g_il is the sigmoid of the logit of query i and key l, or 0 if the query may not attend to that key,
    w is p less its integer part, and e_n is row n of the table.

    Parameters
    ----------
    q : array, real floating, shape ``(..., Q, D)``
        Queries. They are not multiplied by 1/sqrt(D) here.
    logits : array, real floating, shape ``(..., Q, K)``
        The logits of queries and keys, in the order of the text. In the paper and in x-transformers they are already multiplied
        by 1/sqrt(D).
    table : array, real floating, shape ``(N, D)``
        e, learned, one vector for each whole position, shared by the heads.
    mask : array, boolean, broadcasts with `logits`
        True where a query may attend to a key. For a causal model that is every key up to the query, its own included.

    Returns
    -------
    array, shape ``(..., Q, K)``
        In the dtype of `q`, in logit units. Add it to `logits` before the softmax, with the same mask. Keys that are masked get
        a finite bias.

    Raises
    ------
    ValueError
        If `q`, `logits` or `table` is not real floating, `mask` is not boolean, the table has no row, or a shape does not fit.

    Notes
    -----
    A key that is the last visible one has at most position 1: its own gate counts. The bias is a continuous function of the
    gates, also where p is a whole number. All p beyond N - 1 share the last row. Here the interpolation is a sum over all rows,
    each weighted by max(0, 1 - abs(p - n)), which is the same; most code looks two rows up.

    Examples
    --------
    >>> import numpy as np
    >>> q, table = np.asarray([[1.0]]), np.asarray([[0.0], [10.0], [30.0]])
    >>> cope(q, np.zeros((1, 3)), table, np.ones((1, 3), dtype=bool)).tolist()
    [[20.0, 10.0, 5.0]]
    """
    name = "cope"
    xp = library(name, q=q, logits=logits, table=table, mask=mask)
    check_real(name, q=q, logits=logits, table=table)
    if table.ndim != 2 or not table.shape[0] or q.ndim < 2 or q.shape[-1] != table.shape[1]:
        msg = f"{name}: q must be (..., queries, D), and table (rows, D) with a row or more; got {q.shape} and {table.shape}."
        raise ValueError(msg)
    if logits.ndim < 2 or tuple(logits.shape[:-1]) != tuple(q.shape[:-1]):
        msg = f"{name}: logits must be (..., queries, keys), with the leading axes of q; got {logits.shape} and {q.shape}."
        raise ValueError(msg)
    check_mask(name, "mask", mask, "a query may attend", "logits", logits.shape)
    work = wide(q.dtype, xp)
    places = gated_positions(cast(logits, work), mask, last=table.shape[0] - 1)
    products = matmul(cast(q, work), xp.matrix_transpose(cast(table, work)))
    return cast(interpolated(products, places), q.dtype)


@part(noun="contextual_positions")
def gated_positions(logits: Array, mask: Array, /, *, last: int) -> Array:
    """Return for every query and key the sum of the gates from the key on, at most `last`."""
    xp = namespace(logits)
    zero = beside(0.0, logits, logits.dtype)
    open_ = _gate(xp.where(mask, logits, zero))
    return xp.minimum(suffix_sums(xp.where(mask, open_, zero)), beside(float(last), logits, logits.dtype))


def _gate(x: Array, /) -> Array:
    """Return the sigmoid, by exponentials of numbers below zero: these do not overflow, and nor does the gradient."""
    xp = namespace(x)
    positive = x >= beside(0.0, x, x.dtype)
    power = xp.exp(xp.where(positive, -x, x))
    gate = xp.where(positive, beside(1.0, x, x.dtype), power) / (power + 1.0)
    if number_system(xp) is not None:  # error bounds also cover the formula as written
        return xp.either(gate, lambda: 1.0 / (xp.exp(-x) + 1.0))
    return gate


@part()
def interpolated(products: Array, places: Array, /) -> Array:
    """Return products at fractional rows: each counts as far as the place is less than one row away."""
    xp = namespace(products)
    zero = beside(0.0, places, places.dtype)
    total = zero * places
    for n in range(products.shape[-1]):
        total = total + xp.maximum(1.0 - xp.abs(places - float(n)), zero) * products[..., n : n + 1]
    return total
