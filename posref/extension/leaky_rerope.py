"""Leaky ReRoPE: distances grow more slowly beyond a window. Source: Su, kexue.fm/archives/9708; bojone/rerope."""

from typing import Any

from posref.core.arrays import Array, cast, distances, namespace
from posref.extension.leaky_rerope_distances import OPTIONS, check_options, leaky_rerope_distances
from posref.extension.passes import ROTATES, ROTATION, SCORES, passes, rotated_products
from posref.scaling import Scaling
from posref.spec import encoding
from posref.types import AnyArray, ArrayOf, Layout, T


def by_map(
    q: Array, k: Array, q_positions: Array, k_positions: Array, /, *, window: int, factor: int, **rotation: Any
) -> Array:
    """Return the same scores in one pass: each query-key pair is rotated by its own relative position."""
    return rotated_products(q, k, leaky_rerope_distances(q_positions, k_positions, window=window, factor=factor), **rotation)


@encoding(
    title="Leaky ReRoPE",
    idea=(
        "RoPE whose distances grow slowly beyond a window: with a window of 512, a key 672 tokens back may count as 522 back. "
        "Near keys stay exact, far ones stay in order, and a text may be several times longer than in training."
    ),
    longer="A trained RoPE model reads longer texts without tuning.",
    family="extension",
    source="kexue.fm/archives/9708; bojone/rerope",
    domains=OPTIONS | ROTATION,
    invariants=("shift invariant", "decode", "equals its map"),
    arrays=SCORES,
    result="Q K | *R G*g Q K",
    rows="*R Q K",
    requires=ROTATES,
    sums=True,
    equals=by_map,
)
def leaky_rerope(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    window: int,
    factor: int,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
) -> T:
    r"""
    Return the scores of Leaky ReRoPE: query-key products, rotated by the positions from `leaky_rerope_distances`.

    .. math:: \ell_{ij} = q_i \cdot R_{-f(m_i, n_j)} k_j, \qquad
        f(m, n) = m - n \text{ for } |m - n| < w, \quad w + \frac{m - n - w}{c} \text{ otherwise}

    .. math:: (R_p x)_u = x_u \cos p\theta_t - x_v \sin p\theta_t, \quad
        (R_p x)_v = x_v \cos p\theta_t + x_u \sin p\theta_t, \quad \theta_t = b^{-2t/d}, \quad t = 0 \dots d/2-1

    Query i is at position :math:`m_i`, key j at :math:`n_j`. Channel pair t has the channels u and v (see `layout`). Compute it
    in two passes. The first rotates queries by m and keys by n. The second divides all theta by c and rotates queries by
    m + w(c - 1) and keys by n.

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
    factor : int
        c, at least 1; 16 in the author's code.
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
        As for `rope` and `leaky_rerope_distances`, or if H is not a multiple of G.

    Notes
    -----
    A score depends only on the two positions. So decoding with cached keys gives the same scores as the prefill. The cache
    holds unrotated keys. For keys after the query see `leaky_rerope_distances`; mask them.

    In JAX with 32-bit integers, m + w(c - 1) must stay below 2**31 too.

    The author's code first multiplies queries by max(1, ln(m + 1)/ln L), where L is the training length (`logn_scale`).

    Examples
    --------
    >>> import numpy as np
    >>> q, k, places = np.asarray([[1.0, 0.0]]), np.asarray([[1.0, 0.0]] * 3), (np.asarray([9]), np.asarray([3, 8, 9]))
    >>> leaky_rerope(q, k, *places, window=2, factor=4, layout="half", base=10000.0).round(4).tolist()
    [[-0.99, 0.5403, 1.0]]
    """
    window, factor = check_options("leaky_rerope", window, factor)
    scores, q_positions, k_positions = passes(
        "leaky_rerope", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q)
    near = xp.abs(distances(q_positions, k_positions)) < window
    far = scores(q_positions + window * (factor - 1), k_positions, steps=factor)
    return cast(xp.where(near, scores(q_positions, k_positions), far), q.dtype)
