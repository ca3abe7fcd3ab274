"""ReRoPE: rotation by distances clipped at a window. Source: Su, kexue.fm/archives/9708; bojone/rerope, rerope_patch.py."""

from typing import Any

from posref.core.arrays import Array, cast, distances, namespace
from posref.core.checks import check_integer
from posref.extension.passes import ROTATES, ROTATION, SCORES, passes, rotated_products
from posref.extension.rerope_distances import WINDOW, rerope_distances
from posref.scaling import Scaling
from posref.spec import encoding
from posref.types import AnyArray, ArrayOf, Layout, T


def by_map(q: Array, k: Array, q_positions: Array, k_positions: Array, /, *, window: int, **rotation: Any) -> Array:
    """Return the same scores in one pass: each query-key pair is rotated by its own relative position."""
    return rotated_products(q, k, rerope_distances(q_positions, k_positions, window=window), **rotation)


@encoding(
    title="Rectified RoPE (ReRoPE)",
    idea=(
        "RoPE whose distances stop growing at a window: all keys beyond 512 tokens, say, count as 512 away. So a trained model "
        "can read longer texts. It takes two passes, one with RoPE as usual and one for the far keys."
    ),
    longer="A trained RoPE model reads longer texts without tuning.",
    family="extension",
    source="kexue.fm/archives/9708; bojone/rerope",
    domains=WINDOW | ROTATION,
    invariants=("shift invariant", "decode", "equals its map"),
    arrays=SCORES,
    result="Q K | *R G*g Q K",
    rows="*R Q K",
    requires=ROTATES,
    sums=True,
    equals=by_map,
)
def rerope(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    window: int,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
) -> T:
    r"""
    Return the scores of ReRoPE: query-key products, rotated by the positions from `rerope_distances`.

    .. math:: \ell_{ij} = q_i \cdot R_{n_j - m_i} k_j \text{ for } |m_i - n_j| < w, \qquad
        q_i \cdot R_{-w} k_j \text{ otherwise}

    .. math:: (R_p x)_u = x_u \cos p\theta_t - x_v \sin p\theta_t, \quad
        (R_p x)_v = x_v \cos p\theta_t + x_u \sin p\theta_t, \quad \theta_t = b^{-2t/d}, \quad t = 0 \dots d/2-1

    Query i is at position :math:`m_i`, key j at :math:`n_j`. Channel pair t has the channels u and v (see `layout`). Compute it
    in two passes. The first rotates queries by m and keys by n. The second rotates queries by w and leaves keys unrotated.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing.
    k : array, real floating, shape ``(*R, G, K, D)``
        Keys; H is a multiple of G, and each key head serves a block of H/G neighbouring query heads.
    q_positions : array, signed integer, shape ``(*P, Q)``
        m, in tokens; for q of (B, H, Q, D) pass (Q,) or (B, 1, Q).
    k_positions : array, signed integer, shape ``(*P, K)``
        n, in tokens; for k of (B, G, K, D) pass (K,) or (B, 1, K).
    window : int
        w, at least 1; 512 in the author's code.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair t. "interleaved_to_half" gives the same scores as "interleaved".

        - ``"half"``: Pair t is channels t and t + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair t is the neighbouring channels 2t and 2t + 1, as in RoPE's paper.
        - ``"interleaved_to_half"``: Pair t is read at channels 2t and 2t + 1, and written at t and t + d/2.
    base : float
        b ("rope_theta" in configurations), above 0.
    rotary_dim : int, optional
        d, the number of channels that rotate, even: the first d. None means all D.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta: see `rope_frequencies`. An attention factor multiplies queries and keys in
        every pass, so each score twice.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it.

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        Unscaled: divide by sqrt(D). In the dtype of `q`.

    Raises
    ------
    ValueError
        As for `rope` and `rerope_distances`, or if H is not a multiple of G.

    Notes
    -----
    A score depends only on the two positions. So decoding with cached keys gives the same scores as the prefill. The cache
    holds unrotated keys. For keys after the query see `rerope_distances`; mask them.

    LM-Infinite's scores are the same, with the mask `lambda_window`. Its local branch is the first pass. Its global branch is
    the second pass: queries rotated by ``limit_distance``, with unrotated keys.

    The author's code first multiplies queries by max(1, ln(m + 1)/ln L), where L is the training length (`logn_scale`).

    Examples
    --------
    >>> import numpy as np
    >>> q, k, places = np.asarray([[1.0, 0.0]]), np.asarray([[1.0, 0.0]] * 3), (np.asarray([9]), np.asarray([0, 6, 9]))
    >>> rerope(q, k, *places, window=2, layout="half", base=10000.0).round(4).tolist()
    [[-0.4161, -0.4161, 1.0]]
    """
    window = check_integer("rerope", "window", window, 1)
    scores, q_positions, k_positions = passes(
        "rerope", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q)
    near = xp.abs(distances(q_positions, k_positions)) < window
    far = scores(0 * q_positions + window, 0 * k_positions)
    return cast(xp.where(near, scores(q_positions, k_positions), far), q.dtype)
