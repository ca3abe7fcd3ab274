"""Self-Extend: positions of far keys are grouped. Source: Jin et al., arXiv:2401.01325, section 3; datamllab/LongLM."""

from typing import Any

from posref.core.arrays import Array, cast, distances, namespace
from posref.extension.passes import ROTATES, ROTATION, SCORES, passes, rotated_products
from posref.extension.self_extend_distances import OPTIONS, Rounding, check_options, near_window, self_extend_distances
from posref.scaling import Scaling
from posref.spec import encoding
from posref.types import AnyArray, ArrayOf, Layout, T


def by_map(
    q: Array, k: Array, q_positions: Array, k_positions: Array, /, *,
    group: int, window: int, rounding: Rounding, **rotation: Any,
) -> Array:  # fmt: skip
    """Return the same scores in one pass: each query-key pair is rotated by its own relative position."""
    relative = self_extend_distances(q_positions, k_positions, group=group, window=window, rounding=rounding)
    return rotated_products(q, k, relative, **rotation)


@encoding(
    title="Self-Extend",
    idea=(
        "RoPE for texts longer than in training. Near keys keep exact distances; far ones are grouped, so that eight "
        "neighbours, say, share one position and distances shrink. The order of the text survives, and nothing is trained."
    ),
    longer="A trained RoPE model reads longer texts without tuning.",
    family="extension",
    source="arXiv:2401.01325, section 3; datamllab/LongLM",
    domains=OPTIONS | ROTATION,
    invariants=("decode", "equals its map"),
    arrays=SCORES,
    result="Q K | *R G*g Q K",
    rows="*R Q K",
    requires=ROTATES,
    sums=True,
    equals=by_map,
)
def self_extend(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    group: int,
    window: int,
    rounding: Rounding,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
) -> T:
    r"""
    Return the scores of Self-Extend: query-key products, rotated by the positions from `self_extend_distances`.

    .. math:: \ell_{ij} = q_i \cdot R_{-f(m_i, n_j)} k_j, \qquad f(m, n) = m - n \text{ for } 0 \le m - n < w, \quad
        \left\lfloor \frac{m}{g} \right\rfloor - \left\lfloor \frac{n}{g} \right\rfloor + w - \frac{w}{g} \text{ otherwise}

    .. math:: (R_p x)_u = x_u \cos p\theta_t - x_v \sin p\theta_t, \quad
        (R_p x)_v = x_v \cos p\theta_t + x_u \sin p\theta_t, \quad \theta_t = b^{-2t/d}, \quad t = 0 \dots d/2-1

    Query i is at position :math:`m_i`, key j at :math:`n_j`. Channel pair t has the channels u and v (see `layout`). Compute it
    in two passes. The first rotates queries by m and keys by n. The second rotates queries by floor(m/g) + w - w/g and keys by
    floor(n/g). The last w/g is rounded down for ``rounding="floor"``.

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
    group : int
        g, at least 1; 8 in the authors' code. With 1 this is RoPE.
    window : int
        w, at least 1; 1024 in the authors' code.
    rounding : {"floor", "exact"}
        What is subtracted from w. `self_extend_distances` names the users.

        - ``"floor"``: Grouped positions move by w - floor(w / g), as the authors mean it.
        - ``"exact"``: Grouped positions move by w - w/g, a fraction unless g divides w.
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
        As for `rope` and `self_extend_distances`, or if H is not a multiple of G.

    Notes
    -----
    A score depends only on the two positions. So decoding with cached keys gives the same scores as the prefill, if both use
    the same `rounding`. For keys after the query see `self_extend_distances`; mask them.

    With ``rounding="exact"`` the positions of the second pass are fractions. posref counts them as whole steps of 1/g token. In
    JAX with 32-bit integers, m + w(g - 1) must stay below 2**31.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, places = np.asarray([[1.0, 0.0]]), np.asarray([[1.0, 0.0]] * 3), (np.asarray([9]), np.asarray([3, 8, 9]))
    >>> self_extend(q, k, *places, group=4, window=2, rounding="floor", layout="half", base=10000.0).round(4).tolist()
    [[-0.6536, 0.5403, 1.0]]
    """
    group, window = check_options("self_extend", group, window, rounding)
    scores, q_positions, k_positions = passes(
        "self_extend", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q)
    steps, taken = (group, window) if rounding == "exact" else (1, window // group)
    q_groups, k_groups = steps * (q_positions // group + window) - taken, steps * (k_positions // group)
    near = near_window(distances(q_positions, k_positions), window)
    far = scores(q_groups, k_groups, steps=steps)
    return cast(xp.where(near, scores(q_positions, k_positions), far), q.dtype)
