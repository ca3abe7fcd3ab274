"""Disentangled attention of DeBERTa. Source: He et al., arXiv:2006.03654, equations (2) to (4); microsoft/DeBERTa."""

from math import prod
from typing import Literal, get_args

from posref.core.arrays import Array, beside, cast, distances, index_dtype, library, namespace, rows, whole
from posref.core.checks import check_real, check_rows, check_tokens, check_word
from posref.core.products import matmul
from posref.relative.deberta_rows import BUCKETS, MAX_DISTANCE, check_span, deberta_rows
from posref.relative.shaw_table import widened
from posref.spec import Axes, OneOf, encoding, part
from posref.types import ArrayOf, T

Second = Literal["code", "paper"]
SECOND: tuple[Second, ...] = get_args(Second)
ROWS = "2*(num_buckets,max_distance)[num_buckets==None]"


@encoding(
    title="Disentangled attention (DeBERTa)",
    idea=(
        "Content and position stay apart: the query's content is compared with the key's content and with a vector for the "
        "distance, and the key's content with another vector for the distance. So a word can look for a place, and a place "
        "for a word."
    ),
    family="relative",
    source="arXiv:2006.03654, equation (4)",
    models=("DeBERTa", "DeBERTa-v2", "DeBERTa-v3", "mDeBERTa", "SEW-D"),
    domains={"num_buckets": BUCKETS, "max_distance": MAX_DISTANCE, "p2c": OneOf(SECOND)},
    invariants=("shift invariant", "decode"),
    arrays={
        "q": Axes("*R H Q D | B H Q D", usual=(-1.0, 1.0)),
        "k": Axes("*R H K D | B H K D"),
        "q_positions": Axes("Q | B 1 Q", "integer"),
        "k_positions": Axes("K | B 1 K", "integer"),
        "rel_k": Axes(f"H {ROWS} D", optional=True),
        "rel_q": Axes(f"H {ROWS} D", optional=True),
    },
    result="*R H Q K | B H Q K",
    rows="*R B H Q K",
    requires=("num_buckets is None or max_distance > num_buckets // 2 + 1",),
    sums=True,
    read={
        "microsoft/DeBERTa": "microsoft/DeBERTa@4d7fe0b, DeBERTa/deberta/disentangled_attention.py:142-156",
        "transformers": "transformers 5.23.0, models/deberta_v2/modeling_deberta_v2.py:320-337",
        "keras-hub": "keras-hub 0.32.0, keras_hub/src/models/deberta_v3/disentangled_self_attention.py:244-255, 311-344",
        "SEW-D": "transformers 5.23.0, models/sew_d/modeling_sew_d.py:758-834",
    },
)
def deberta_scores(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    num_buckets: int | None,
    max_distance: int,
    p2c: Second,
    rel_k: ArrayOf[T] | None = None,
    rel_q: ArrayOf[T] | None = None,
) -> T:
    r"""
    Return query-key products plus products of the query, and of the key, with learned vectors for their distance.

    .. math:: e_{ij} = q_i \cdot k_j + q_i \cdot K^r_{\delta(p_i - p_j)} + k_j \cdot Q^r_{\epsilon}, \qquad
        \epsilon = \delta(p_i - p_j) \text{ (code)}, \quad \delta(p_j - p_i) \text{ (paper)}

    where q_i and k_j are query i and key j of a head, p_i and p_j their positions, K^r and Q^r the projected tables of that
    head, and delta(r) is the row for a relative position (`deberta_rows`): r + S, clipped to 0 and 2S - 1, where far distances
    share rows if there are `num_buckets`. The second term is c2p, content to position; the third is p2c. A term without its
    table is 0.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries.
    k : array, real floating, shape ``(*R, H, K, D)``
        Keys.
    q_positions : array, integer, shape ``(*P, Q)``
        In tokens. For `q` of shape ``(B, H, Q, D)`` pass ``(Q,)`` or ``(B, 1, Q)``.
    k_positions : array, integer, shape ``(*P, K)``
        In tokens. For `k` of shape ``(B, H, K, D)`` pass ``(K,)`` or ``(B, 1, K)``.
    num_buckets : int, optional
        S, even, from 4 to 1024; 256 in DeBERTa-v2 and v3. None in DeBERTa: S = `max_distance`.
    max_distance : int
        D of `deberta_rows`, in tokens; 512 in the released models.
    p2c : {"code", "paper"}
        The row of the third term. The two are not mirror images: +S is clipped to 2S - 1, -S to 0.

        - ``"code"``: The row of the query minus the key, as in the second term. Used by microsoft/DeBERTa, transformers,
          keras-hub.
        - ``"paper"``: The row of the key minus the query: equation (4).
    rel_k : array, real floating, optional, shape ``(H, 2S, D)``
        K^r: the learned table, (2S, width), through the projection for keys, in the dtype of `q`. None means no c2p.
    rel_q : array, real floating, optional, shape ``(H, 2S, D)``
        Q^r: the learned table through the projection for queries. None means no p2c.

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        Unscaled, in the dtype of `q`. Divide by sqrt(D f) before the mask, where f is the number of terms: 3, or 1 plus those
        that there are.

    Raises
    ------
    ValueError
        If an array is not real floating or does not fit the shape of `q`, positions are not integers or have no axis, or an
        option is unknown or out of its range.

    Notes
    -----
    In version 1 the projection for K^r has no bias, that for Q^r has one. With ``share_att_key`` (v2 and v3) both are the
    content's own projections, biases included. The table goes through a layer norm first if ``norm_rel_ebd`` says so.
    For fewer queries than keys, version 1 in transformers takes wrong rows, and with p2c raises an error. Version 2 raises one.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, rel_k = np.asarray([[[1.0]]]), np.asarray([[[2.0], [3.0]]]), np.asarray([[[10.0], [20.0], [30.0], [40.0]]])
    >>> places = np.asarray([1]), np.asarray([0, 1])
    >>> deberta_scores(q, k, *places, num_buckets=None, max_distance=2, p2c="code", rel_k=rel_k).tolist()
    [[[42.0, 33.0]]]
    """
    name = "deberta_scores"
    check_word(name, "p2c", p2c, SECOND)
    span = check_span(name, num_buckets, max_distance)
    xp = library(name, q=q, k=k, q_positions=q_positions, k_positions=k_positions)
    _check(name, q, k, span, rel_k=rel_k, rel_q=rel_q)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    check_rows(name, "q_positions", tuple(q_positions.shape), tuple(q.shape[:-1]), of="q")
    check_rows(name, "k_positions", tuple(k_positions.shape), tuple(k.shape[:-1]), of="k")
    queries, keys = widened(q, k)
    apart = distances(whole(name, "q_positions", q_positions), whole(name, "k_positions", k_positions))
    scores = matmul(queries, xp.matrix_transpose(keys))
    index = deberta_rows(apart, num_buckets=num_buckets, max_distance=max_distance)
    if rel_k is not None:
        scores = scores + by_row(queries, cast(rel_k, queries.dtype), index)
    if rel_q is not None:
        other = index if p2c == "code" else deberta_rows(-apart, num_buckets=num_buckets, max_distance=max_distance)
        scores = scores + xp.matrix_transpose(by_row(keys, cast(rel_q, keys.dtype), xp.matrix_transpose(other)))
    return cast(scores, q.dtype)


@part()
def by_row(x: Array, table: Array, index: Array, /) -> Array:
    """Return the product of each x, (..., H, T, D), with the rows of its head's table at index, (..., T, U): (..., H, T, U)."""
    xp = namespace(x)
    products = matmul(x, xp.matrix_transpose(table))  # with every row, once
    *lead, count = products.shape
    places = xp.reshape(beside(list(range(prod(lead))), index, index_dtype(index)), (*lead, 1)) * count
    return rows(xp.reshape(products, (-1,)), places + index)


def _check(function: str, q: Array, k: Array, span: int, **tables: Array | None) -> None:
    """Raise if arrays of reals do not fit together."""
    check_real(function, q=q, k=k)
    if q.ndim < 3 or k.ndim < 3 or q.shape[-1] != k.shape[-1] or q.shape[:-2] != k.shape[:-2]:
        msg = f"{function}: q and k must be (..., H, Q, D) and (..., H, K, D); got {tuple(q.shape)} and {tuple(k.shape)}."
        raise ValueError(msg)
    shape = (q.shape[-3], 2 * span, q.shape[-1])
    for argument, table in tables.items():
        if table is not None:
            library(function, q=q, **{argument: table})
            check_real(function, **{argument: table})
            if tuple(table.shape) != shape:
                msg = f"{function}: {argument} must be (H, 2S, D), {shape}; got {tuple(table.shape)}."
                raise ValueError(msg)
