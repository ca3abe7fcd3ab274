"""Rotated values, with the output rotated back. Source: DeepSeek-V4's attention, in transformers 5.23."""

from posref.core.arrays import Array, cast, library, repeat_heads, wide
from posref.core.checks import check_broadcast, check_positions, check_real, check_rotated, check_rows, check_word
from posref.core.products import matmul
from posref.rotary.apply_rope import LANES, WORDS
from posref.rotary.rope import rope
from posref.rotary.rope_frequencies import check_scaling
from posref.scaling import Scaling
from posref.spec import Axes, Integer, OneOf, Real, Record, encoding
from posref.types import AnyArray, ArrayOf, Lanes, Layout, T


@encoding(
    title="RoPE on values, rotated back",
    idea=(
        "DeepSeek-V4 has one vector as key and value, so values come rotated by their position. Rotating the result back by "
        "the query's position leaves each value rotated by its offset from the query: again only offsets count."
    ),
    family="rotary",
    source="transformers 5.23, modeling_deepseek_v4.py",
    models=("DeepSeek-V4",),
    domains={
        "layout": OneOf(WORDS),
        "base": Real(0, usual=(2, 1e7)),
        "rotary_dim": Integer(2, step=2, optional=True, usual=64),
        "scaling": Record("rotary_dim or D"),
        "length": Integer(0, optional=True, usual=2**20),
        "lanes": OneOf(LANES),
    },
    invariants=("relative", "decode", "tail unchanged"),
    arrays={
        "weights": Axes("Q K | *R G*g Q K | *R G*g Q K", usual=(0.0, 1.0)),
        "v": Axes("K D | *R G K D | *R G K D"),
        "q_positions": Axes("Q | Q | *R 1 Q", "position"),
        "k_positions": Axes("K | K | *R 1 K", "position"),
    },
    result="Q D | *R G*g Q D",
    rows="*R Q",
    requires=("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0"),
    closed=True,
    sums=True,
    rounded=("q_positions", "k_positions"),
    read={"DeepSeek-V4": "transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py:353-370"},
)
def rotated_values(
    weights: ArrayOf[T],
    v: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    lanes: Lanes = "leading",
) -> T:
    r"""
    Return the weighted sum of values rotated by their keys' positions, with the sum rotated back by the query's position.

    .. math:: o_i = R_{p_i}^{T} \sum_j \alpha_{ij} R_{p_j} v_j = \sum_j \alpha_{ij} R_{p_j - p_i} v_j

    .. math:: (R_p x)_u = f (x_u \cos p\theta_t - x_v \sin p\theta_t), \quad
        (R_p x)_v = f (x_v \cos p\theta_t + x_u \sin p\theta_t), \quad \theta_t = b^{-2t/d}, \quad t = 0 \dots d/2-1

    Query i is at position :math:`p_i`, key and value j are at :math:`p_j`, and :math:`\alpha_{ij}` is the attention weight.
    Pair t is channels u and v (see `layout`). The factor f is 1 unless a `scaling` has one. The second form of o holds if f is
    1. So what a value adds to the output depends on positions only through its offset from the query.

    Parameters
    ----------
    weights : array, real floating, shape ``(*R, H, Q, K)``
        alpha, after the softmax. R and H may be missing. They need not add up to 1 (DeepSeek-V4 has sinks).
    v : array, real floating, shape ``(*R, G, K, D)``
        Values, before the rotation. H is a multiple of G, and each value head serves a block of H/G neighbouring query heads.
    q_positions : array, integer or at least float32, shape ``(*P, Q)``
        Positions of the queries, in tokens. For weights of (B, H, Q, K) pass (Q,) or (B, 1, Q).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    k_positions : array, integer or at least float32, shape ``(*P, K)``
        Positions of the keys, in tokens. For v of (B, G, K, D) pass (K,) or (B, 1, K).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t. "interleaved" and "interleaved_to_half" give the same result.

        - ``"half"``: Pair t is channels t and t + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper. Used by DeepSeek-V4.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + d/2.
    base : float
        b ("rope_theta" in configurations), above 0.
    rotary_dim : int, optional
        d, the number of channels that rotate, even. None means all D.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta and f: see `rope_frequencies`.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it: see `rope_frequencies`.
    lanes : {"leading", "trailing"}
        Which d channels rotate. The channels of pairs are counted from the first that rotates.

        - ``"leading"``: The first channels of the head rotate, the rest stay as they are.
        - ``"trailing"``: The last channels of the head rotate, those before them stay as they are. Used by DeepSeek-V4.

    Returns
    -------
    array, shape ``(*R, H, Q, D)``
        In the dtype of `weights`, with one rounding. Channels that do not rotate hold the plain weighted sum.

    Raises
    ------
    ValueError
        As for `rope`. Also if `weights` and `v` differ in the number of keys, H is not a multiple of G, or an array is not real
        floating.

    Notes
    -----
    DeepSeek-V4 has one head that serves all query heads as keys and as values. Its last 64 of 512 channels rotate, in layout
    "interleaved". So the values are rotated with the keys, and the output is rotated back. RoFormer with ``rotary_value``, and
    CLVP, rotate the values and do not rotate the output: it is the product of weights and `rope` of the values.

    The output is rotated back with the transpose, so an attention factor counts twice. DeepSeek-V4 sets YaRN's factor to 1.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([5]), np.asarray([4, 5])
    >>> v = np.asarray([[1.0, 0.0], [1.0, 0.0]])
    >>> rotated_values(np.asarray([[1.0, 0.0]]), v, *places, layout="half", base=10000.0).round(4).tolist()
    [[0.5403, -0.8415]]
    """
    xp = library("rotated_values", weights=weights, v=v)
    if weights.ndim < 2 or v.ndim < 2 or weights.shape[-1] != v.shape[-2]:
        msg = (
            "rotated_values: weights and v must be (..., Q, K) and (..., K, D); "
            f"got {tuple(weights.shape)} and {tuple(v.shape)}."
        )
        raise ValueError(msg)
    check_real("rotated_values", weights=weights, v=v)
    for name, positions, of, x in (("q_positions", q_positions, "weights", weights), ("k_positions", k_positions, "v", v)):
        check_positions("rotated_values", name, positions)
        library("rotated_values", **{of: x, name: positions})
        check_rows("rotated_values", name, tuple(positions.shape), tuple(x.shape[:-1]), of=of)
    check_word("rotated_values", "layout", layout, WORDS)
    check_word("rotated_values", "lanes", lanes, LANES)
    dim = check_rotated("rotated_values", rotary_dim, v.shape[-1], "v")
    check_scaling("rotated_values", dim, base=base, scaling=scaling, length=length)
    work = wide(weights.dtype, xp)

    def rotated(x: Array, positions: Array, inverse: bool) -> Array:
        return rope(
            x, positions, layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length, lanes=lanes,
            inverse=inverse,
        )  # fmt: skip

    values = rotated(cast(v, work), k_positions, inverse=False)
    values = repeat_heads("rotated_values", values, weights.shape[-3]) if weights.ndim > 2 else values
    check_broadcast("rotated_values", "leading axes of weights and v", weights.shape[:-2], values.shape[:-2])
    mixed = matmul(cast(weights, work), values)
    return cast(rotated(mixed, q_positions, inverse=True), weights.dtype)
