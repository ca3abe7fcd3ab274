"""StreamingLLM: positions are places in a cache of the first tokens and the last. Source: Xiao et al., arXiv:2309.17453."""

from typing import Any

from posref.core.arrays import Array, cast, namespace
from posref.extension.passes import ROTATES, ROTATION, SCORES, passes, rotated_products
from posref.extension.sliding_window import COUNTED, Counting
from posref.extension.streaming_llm_distances import OPTIONS, are_sinks, check_reach, places_in_cache, streaming_llm_distances
from posref.scaling import Scaling
from posref.spec import encoding
from posref.types import AnyArray, ArrayOf, Layout, T


def by_map(
    q: Array,
    k: Array,
    q_positions: Array,
    k_positions: Array,
    /,
    *,
    num_sinks: int,
    window: int,
    counting: Counting,
    **rotation: Any,
) -> Array:
    """Return the same scores in one pass: each query-key pair is rotated by its own relative position."""
    relative = streaming_llm_distances(q_positions, k_positions, num_sinks=num_sinks, window=window, counting=counting)
    return rotated_products(q, k, relative, **rotation)


@encoding(
    title="StreamingLLM",
    idea=(
        "A chat may go on for millions of tokens, but the cache keeps only the first few and the latest. RoPE then rotates by "
        "places in the cache, not by places in the text, so that no distance is larger than the model knows."
    ),
    longer="Text of any length stays fluent; what has left the cache is forgotten.",
    family="extension",
    source="arXiv:2309.17453, section 3.2",
    domains=OPTIONS | ROTATION,
    invariants=("decode", "equals its map"),
    arrays=SCORES,
    result="Q K | *R G*g Q K",
    rows="*R Q K",
    requires=(*COUNTED, *ROTATES),
    sums=True,
    equals=by_map,
    read={"StreamingLLM": "mit-han-lab/streaming-llm@2e50426, streaming_llm/pos_shift/modify_llama.py:89-103"},
)
def streaming_llm(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    num_sinks: int,
    window: int,
    counting: Counting,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
) -> T:
    r"""
    Return the scores of StreamingLLM: query-key products, rotated by the positions from `streaming_llm_distances`.

    .. math:: \ell_{ij} = q_i \cdot R_{-f(m_i, n_j)} k_j, \qquad
        f(m, n) = \min(m, g + r) - n \text{ for } n < g, \quad m - n \text{ otherwise}

    .. math:: (R_p x)_u = x_u \cos p\theta_t - x_v \sin p\theta_t, \quad
        (R_p x)_v = x_v \cos p\theta_t + x_u \sin p\theta_t, \quad \theta_t = b^{-2t/d}, \quad t = 0 \dots d/2-1

    Query i is at position :math:`m_i`, key j at :math:`n_j`, g is `num_sinks`, and r is `window` - 1 for
    ``counting="with_query"``, else `window`. Channel pair t has the channels u and v (see `layout`). Compute it
    in two passes. The first rotates queries by m, the second by min(m, g + r). Both rotate keys by n.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing.
    k : array, real floating, shape ``(*R, G, K, D)``
        Keys; H is a multiple of G, and each key head serves a block of H/G neighbouring query heads.
    q_positions : array, signed integer, shape ``(*P, Q)``
        m, in tokens from the start of the text. For q of (B, H, Q, D) pass (Q,) or (B, 1, Q).
    k_positions : array, signed integer, shape ``(*P, K)``
        n, in tokens from the start of the text, not places in the cache. For k of (B, G, K, D) pass (K,) or (B, 1, K).
    num_sinks : int
        g, at least 0: the number of first tokens that stay in the cache; 4 in the authors' code.
    window : int
        The number of recent tokens, without the sinks. At least 1 with "with_query", at least 0 with "without_query".
    counting : {"with_query", "without_query"}
        Whether the window counts the query's own key. `streaming_llm_distances` names the users.

        - ``"with_query"``: A window of W tokens is the query's own and the W - 1 before it.
        - ``"without_query"``: A window of W tokens is the W before the query, plus the query's own.
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
        Unscaled, in the dtype of `q`. Divide by sqrt(D), and mask with `lambda_window` of the same `num_sinks`, `window` and
        `counting`.

    Raises
    ------
    ValueError
        As for `rope` and `streaming_llm_distances`, or if H is not a multiple of G.

    Notes
    -----
    A score depends only on the two positions. So decoding with cached keys gives the same scores as the prefill, and the cache
    can hold keys rotated by n. The authors' cache holds unrotated keys, and their code rotates them by their places at every
    step.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, places = np.asarray([[1.0, 0.0]]), np.asarray([[1.0, 0.0]] * 3), (np.asarray([9]), np.asarray([0, 8, 9]))
    >>> options = {"num_sinks": 1, "window": 2, "counting": "with_query", "layout": "half", "base": 10000.0}
    >>> streaming_llm(q, k, *places, **options).round(4).tolist()
    [[-0.4161, 0.5403, 1.0]]
    """
    num_sinks, farthest = check_reach("streaming_llm", num_sinks, window, counting)
    scores, q_positions, k_positions = passes(
        "streaming_llm", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q)
    of_sinks = scores(places_in_cache(q_positions, num_sinks + farthest), k_positions)
    return cast(xp.where(are_sinks(k_positions, num_sinks), of_sinks, scores(q_positions, k_positions)), q.dtype)
