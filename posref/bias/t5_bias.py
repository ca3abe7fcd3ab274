"""T5's relative position bias. Source: Raffel et al., arXiv:1910.10683, section 2.1."""

from posref.bias.t5_buckets import check_buckets, t5_buckets
from posref.core.arrays import Array, distances, library, rows, whole, with_axis_moved
from posref.core.checks import check_real, check_tokens
from posref.core.strips import in_strips
from posref.spec import Axes, Flag, Integer, encoding, part
from posref.types import ArrayOf, T


@encoding(
    title="T5 relative position bias",
    idea=(
        "Every attention head has a learned number for each short distance, and one for each range of longer distances. The "
        "number for the distance between query and key is added to their logit. So a head learns which distances it prefers."
    ),
    longer=(
        "All far distances share the last bucket, so a longer text needs no new weights; ALiBi's authors found it better than "
        "sinusoids and RoPE there, and slower."
    ),
    family="bias",
    source="arXiv:1910.10683, section 2.1",
    models=("T5", "Flan-T5", "mT5", "UMT5"),
    domains={"bidirectional": Flag(), "max_distance": Integer(2, usual=512)},
    invariants=("shift invariant", "decode"),
    arrays={"q_positions": Axes("~*B Q", "integer"), "k_positions": Axes("~*B K", "integer"), "table": Axes("N H")},
    result="*B H Q K",
    rows="*B H Q K",
    requires=(
        "N >= 2 and (N >= 4 and N % 2 == 0 or not bidirectional)",
        "max_distance > N // (4 if bidirectional else 2)",
    ),
    read={
        "T5": "transformers 5.23.0, models/t5/modeling_t5.py:238-279",
        "Flan-T5": "transformers 5.23.0, models/t5/modeling_t5.py:112, 238-279",
    },
)
@in_strips
def t5_bias(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], table: ArrayOf[T], /, *, bidirectional: bool, max_distance: int = 128
) -> T:
    r"""
    Return T5's bias: for each head, a learned number for the bucket of each query-key distance.

    .. math:: B_{h,i,j} = E_{\mathrm{bucket}(p_j - p_i),\, h}

    where p_i and p_j are the positions of query i and key j, h is the head and E the table. The bucket of r = p_j - p_i
    (`t5_buckets`) uses

    .. math:: f(n) = n \text{ for } n < e, \qquad
        f(n) = \min\left(e + \left\lfloor (N - e) \, \frac{\ln(n/e)}{\ln(D/e)} \right\rfloor, N - 1\right) \text{ otherwise}

    with D = `max_distance` and e = N/2 rounded down. Causal: the bucket is f(max(-r, 0)), where N is the number of rows of the
    table. Bidirectional: it is f(abs(r)), plus N if r > 0, where N is half the number of rows.

    Parameters
    ----------
    q_positions : array, integer, shape ``(*B, Q)``
        Positions of the queries, in tokens.
    k_positions : array, integer, shape ``(*B, K)``
        Positions of the keys, in tokens.
    table : array, real floating, shape ``(num_buckets, H)``
        E, learned. T5 shares one table among all layers; UMT5 has one for each layer.
    bidirectional : bool
        True in encoders: keys before and after the query have different buckets. False in decoders.
    max_distance : int
        D, in tokens, above e; 128 in T5. Distances from about D on share the last bucket of their side.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In logit units: entries of `table` in its dtype, bit for bit. T5 has no 1/sqrt(D) scale: add the bias to plain q.k.

    Raises
    ------
    ValueError
        If positions are not integers or have no axis, `table` is not 2-D or not real floating, its number of
        rows is too small or (if bidirectional) odd, or `max_distance` is too small for that number of buckets.

    Notes
    -----
    T5 has this bias in self-attention only. Cross-attention has none.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.asarray([[0.0], [0.1], [0.2], [0.3]])
    >>> t5_bias(np.asarray([1]), np.asarray([0, 1, 2]), table, bidirectional=True, max_distance=4).tolist()
    [[[0.1, 0.0, 0.3]]]
    """
    library("t5_bias", q_positions=q_positions, k_positions=k_positions, table=table)  # raises for lists
    if table.ndim != 2:
        msg = f"t5_bias: table must be 2-D, (num_buckets, heads); got shape {tuple(table.shape)}."
        raise ValueError(msg)
    check_real("t5_bias", table=table)
    check_tokens("t5_bias", q_positions=q_positions, k_positions=k_positions)
    if table.shape[0] < (4 if bidirectional else 2) or (bidirectional and table.shape[0] % 2):
        least = (
            "at least 4 rows, and an even number, when bidirectional (half for each side)"
            if bidirectional
            else "at least 2 rows"
        )
        msg = f"t5_bias: table must have {least}; got shape {tuple(table.shape)}."
        raise ValueError(msg)
    check_buckets("t5_bias", bidirectional, table.shape[0], max_distance)
    relative = -distances(whole("t5_bias", "q_positions", q_positions), whole("t5_bias", "k_positions", k_positions))
    buckets = t5_buckets(relative, bidirectional=bidirectional, num_buckets=table.shape[0], max_distance=max_distance)
    return t5_rows(table, buckets)


@part()
def t5_rows(table: Array, buckets: Array, /) -> Array:
    """Return the table's rows for the buckets, with the head axis before queries and keys."""
    return with_axis_moved(rows(table, buckets), -1, -3)
