"""RoPE inside linear attention. Source: Su et al., arXiv:2104.09864, section 3.3, equation (19)."""

from posref.core.arrays import Array, beside, by_sign, cast, index_dtype, library, namespace, wide
from posref.core.checks import (
    check_broadcast,
    check_flag,
    check_positions,
    check_positive,
    check_real,
    check_rows,
    check_tokens,
    check_word,
)
from posref.core.products import matmul
from posref.rotary.apply_rope import WORDS
from posref.rotary.rope import rope
from posref.spec import Axes, Flag, OneOf, Real, encoding
from posref.types import ArrayOf, Layout, T


@encoding(
    title="Linear attention with RoPE",
    idea=(
        "Linear attention has no softmax, so its cost grows with the length of the text and not with its square. RoPE rotates "
        "queries and keys where values are added up, but not in the sum of weights in the denominator, which must stay "
        "positive."
    ),
    family="rotary",
    source="arXiv:2104.09864, equation (19)",
    domains={"layout": OneOf(WORDS), "base": Real(0, usual=(2, 1e7)), "causal": Flag()},
    invariants=("relative", "decode"),
    arrays={
        "q": Axes("*R Q 2*n", usual=(-1.0, 1.0)),
        "k": Axes("*R K 2*n"),
        "v": Axes("*R K E"),
        "q_positions": Axes("~*R Q", "position"),
        "k_positions": Axes("~*R K", "position"),
    },
    result="*R Q E",
    rows="*R Q",
    requires=("n > 0",),
    closed=True,
    sums=True,
    rounded=("q_positions", "k_positions"),
    read={
        "performer-pytorch": "performer-pytorch 1.1.4, performer_pytorch/performer_pytorch.py:430-433",
        "MLLA": "LeapLabTHU/MLLA@66b6d29, models/mlla.py:128-138",
    },
)
def rotary_linear_attention(
    q: ArrayOf[T],
    k: ArrayOf[T],
    v: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    layout: Layout,
    base: float,
    causal: bool,
) -> T:
    r"""
    Return the output of linear attention, with rotated queries and keys in the numerator and unrotated ones in the denominator.

    .. math:: o_i = \frac{\sum_j \left( R_{p_i} \phi(q_i) \cdot R_{p_j} \phi(k_j) \right) v_j}
        {\sum_j \phi(q_i) \cdot \phi(k_j)}, \qquad \phi(x) = x + 1 \text{ for } x > 0, \; e^x \text{ otherwise}

    .. math:: (R_p x)_u = x_u \cos p\theta_t - x_v \sin p\theta_t, \quad
        (R_p x)_v = x_v \cos p\theta_t + x_u \sin p\theta_t, \quad \theta_t = b^{-2t/D}, \quad t = 0 \dots D/2-1

    Query i is at position :math:`p_i`, and key and value j are at :math:`p_j`. Pair t is channels u and v (see `layout`). The
    sums run over the keys that the query sees (see `causal`). The denominator is positive, because phi (elu + 1) is.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, Q, D)``
        Queries, before phi. D is even.
    k : array, real floating, shape ``(*R, K, D)``
        Keys, before phi.
    v : array, real floating, shape ``(*R, K, E)``
        Values.
    q_positions : array, integer or at least float32, shape ``(*P, Q)``
        Positions of the queries, in tokens. For q of (B, H, Q, D) pass (Q,) or (B, 1, Q).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    k_positions : array, integer or at least float32, shape ``(*P, K)``
        Positions of the keys, in tokens. For k of (B, H, K, D) pass (K,) or (B, 1, K).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t. "interleaved" and "interleaved_to_half" give the same result, because they reorder the
        channels of queries and keys in the same way.

        - ``"half"``: Pair t is channels t and t + D/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + D/2.
    base : float
        b, the base of the frequencies, above 0.
    causal : bool
        True: a query sees only the keys at its own position and before. False: it sees all keys.

    Returns
    -------
    array, shape ``(*R, Q, E)``
        In the dtype of `q`. For a query that sees no key the output is 0.

    Raises
    ------
    ValueError
        If shapes do not fit, an array is not real floating, positions do not broadcast or are half precision, or an option is
        unknown.

    Notes
    -----
    The rotation comes after phi. MLLA does the same with positions on two axes, and adds 1e-6 to the denominator, as most code
    for linear attention does. performer-pytorch rotates before its kernel, so the rotation is in its denominators too.

    This reference computes the product of every query and key. Implementations of linear attention sum the products of keys
    and values first, which gives the same result.

    Examples
    --------
    >>> import numpy as np
    >>> q = np.asarray([[0.0, 0.0]])  # phi is 1 in both channels
    >>> places = np.asarray([1]), np.asarray([0])
    >>> rotary_linear_attention(q, q, np.asarray([[2.0]]), *places, layout="half", base=10000.0, causal=True).round(4).tolist()
    [[1.0806]]
    """
    check_word("rotary_linear_attention", "layout", layout, WORDS)
    causal = check_flag("rotary_linear_attention", "causal", causal)
    xp = library("rotary_linear_attention", q=q, k=k, v=v)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        msg = (
            "rotary_linear_attention: q, k and v must be (*R, Q, D), (*R, K, D) and (*R, K, E); "
            f"got {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}."
        )
        raise ValueError(msg)
    check_real("rotary_linear_attention", q=q, k=k, v=v)
    check_broadcast("rotary_linear_attention", "leading axes of q and k", q.shape[:-2], k.shape[:-2])
    check_tokens("rotary_linear_attention", q_positions=q_positions, k_positions=k_positions)
    for name, positions, of, x in (("q_positions", q_positions, "q", q), ("k_positions", k_positions, "k", k)):
        check_positions("rotary_linear_attention", name, positions)
        library("rotary_linear_attention", **{of: x, name: positions})
        check_rows("rotary_linear_attention", name, tuple(positions.shape), tuple(x.shape[:-1]), of=of)
    base = check_positive("rotary_linear_attention", "base", base)
    work = wide(q.dtype, xp)
    queries, keys = (_elu(cast(x, work)) + 1.0 for x in (q, k))
    rotated_queries, rotated_keys = (
        rope(x, positions, layout=layout, base=base) for x, positions in ((queries, q_positions), (keys, k_positions))
    )
    above = matmul(rotated_queries, xp.matrix_transpose(rotated_keys))
    if 0 in above.shape:  # no queries or no keys: empty sums
        return cast(matmul(above, cast(v, work)), q.dtype)
    below = matmul(queries, xp.matrix_transpose(keys))
    if not causal:
        return cast(matmul(above, cast(v, work)) / xp.sum(below, axis=-1, keepdims=True), q.dtype)
    q_places, k_places = (cast(p, index_dtype(p)) if xp.isdtype(p.dtype, "integral") else p for p in (q_positions, k_positions))
    seen = xp.broadcast_to(q_places[..., :, None] >= k_places[..., None, :], above.shape)
    zero, one = (beside(number, q, work) for number in (0.0, 1.0))
    total = xp.sum(xp.where(seen, below, zero), axis=-1, keepdims=True)
    total = xp.where(xp.any(seen, axis=-1, keepdims=True), total, one)
    return cast(matmul(xp.where(seen, above, zero), cast(v, work)) / total, q.dtype)


def _elu(x: Array) -> Array:
    """Return x where it is positive, else exp(x) - 1."""
    xp = namespace(x)
    below, above, _ = by_sign(x)
    return above + (xp.exp(below) - 1.0)
