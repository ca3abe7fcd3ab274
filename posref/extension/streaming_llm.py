"""StreamingLLM: positions are places in a cache of the first tokens and the last. Source: Xiao et al., arXiv:2309.17453."""

from typing import Any

from posref.arrays import Array, beside, cast, distances, namespace
from posref.checks import check_integer
from posref.extension.passes import PLACES, ROTATES, ROTATION, SCORES, passes, rotated_products, signed
from posref.extension.sliding_window import COUNTED, WINDOW, Counting, reach
from posref.scaling import Scaling
from posref.spec import Domain, Integer, encoding
from posref.types import AnyArray, ArrayOf, Layout, T

OPTIONS: dict[str, Domain] = {"sinks": Integer(0, usual=16), **WINDOW}


@encoding(
    title="Distances of StreamingLLM",
    idea=(
        "StreamingLLM keeps the first few tokens and the latest ones, and forgets those between. Positions count places in "
        "this cache, so the first tokens never get further away than the cache is long. This gives the distances."
    ),
    family="extension",
    source="arXiv:2309.17453, section 3.2",
    domains=OPTIONS,
    invariants=("decode",),
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    requires=COUNTED,
    returns="integer",
    noun="relative",
)
def streaming_llm_distances(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, sinks: int, window: int, counting: Counting
) -> T:
    r"""
    Return the relative position by which StreamingLLM rotates every query and key against each other.

    .. math:: f(m, n) = \min(m, g + r) - n \text{ for } n < g, \qquad m - n \text{ otherwise}

    Here m is the position of the query, n the position of the key, g is `sinks`, and r is `window` - 1 for
    ``counting="with_query"``, else `window`.

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens from the start of the text.
    k_positions : array, signed integer, shape ``(*B, K)``
        n, in tokens from the start of the text, not places in the cache.
    sinks : int
        g, at least 0: the number of first tokens that stay in the cache; 4 in the authors' code. With 0 this is RoPE.
    window : int
        The number of recent tokens, without the sinks; 2000 in the authors' chat (``recent_size``). At least 1 with
        "with_query", at least 0 with "without_query".
    counting : {"with_query", "without_query"}
        Whether the window counts the query's own key. `lambda_window` returns the mask.

        - ``"with_query"``: A window of W tokens is the query's own and the W - 1 before it.
        - ``"without_query"``: A window of W tokens is the W before the query, plus the query's own. Used by StreamingLLM's
          evaluation of perplexity.

    Returns
    -------
    array, integer, shape ``(*B, Q, K)``
        In tokens. At most g + r for keys that `lambda_window` allows.

    Raises
    ------
    ValueError
        If `sinks` or `window` is too small, their sum is 2**31 or more, `counting` is unknown or positions are not signed
        integers.

    Notes
    -----
    A cache of g sinks and r recent keys holds the sinks at places 0 to g - 1, then the recent keys, then the query. The query's
    place is its own position until a key is evicted, and g + r from then on. Within the window distances do not change.

    Use "without_query" for a cache trimmed after every token, as in the authors' evaluation. Use "with_query" for one that
    makes room before a token comes (``evict_for_space``). The authors' chat makes room for many tokens at once: it evicts
    before the first of them, and the window then grows with each token. Those distances depend on more than m and n, so use
    `posref.positions.evicted`, which returns the places of any cache.

    For a key that is not a sink and was evicted or is after the query, the result is m - n; `lambda_window` masks it.

    LM-Infinite uses the distances of `rerope_distances` instead: no sink is farther than its window.

    Examples
    --------
    >>> import numpy as np
    >>> options = {"sinks": 2, "window": 2, "counting": "without_query"}
    >>> streaming_llm_distances(np.asarray([9]), np.asarray([0, 1, 7, 8, 9]), **options).tolist()
    [[4, 3, 2, 1, 0]]
    """
    sinks, farthest = _reach("streaming_llm_distances", sinks, window, counting)
    q_positions, k_positions = signed("streaming_llm_distances", q_positions, k_positions)
    xp = namespace(q_positions, k_positions)
    of_sinks = distances(_in_cache(q_positions, sinks + farthest), k_positions)
    return xp.where(_sinks(k_positions, sinks), of_sinks, distances(q_positions, k_positions))


def by_map(
    q: Array,
    k: Array,
    q_positions: Array,
    k_positions: Array,
    /,
    *,
    sinks: int,
    window: int,
    counting: Counting,
    **rotation: Any,
) -> Array:
    """Return the same scores in one pass: each query-key pair is rotated by its own relative position."""
    relative = streaming_llm_distances(q_positions, k_positions, sinks=sinks, window=window, counting=counting)
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
)
def streaming_llm(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    sinks: int,
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

    Query i is at position :math:`m_i`, key j at :math:`n_j`, g is `sinks`, and r is `window` - 1 for ``counting="with_query"``,
    else `window`. Channel pair t has the channels u and v (see `layout`). Compute it in two passes. The first rotates queries
    by m, the second by min(m, g + r). Both rotate keys by n.

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
    sinks : int
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
        Unscaled, in the dtype of `q`. Divide by sqrt(D), and mask with `lambda_window` of the same `sinks`, `window` and
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
    >>> options = {"sinks": 1, "window": 2, "counting": "with_query", "layout": "half", "base": 10000.0}
    >>> streaming_llm(q, k, *places, **options).round(4).tolist()
    [[-0.4161, 0.5403, 1.0]]
    """
    sinks, farthest = _reach("streaming_llm", sinks, window, counting)
    q_positions, k_positions = signed("streaming_llm", q_positions, k_positions)
    scores = passes(
        "streaming_llm", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q, k, q_positions, k_positions)
    of_sinks = scores(_in_cache(q_positions, sinks + farthest), k_positions)
    return cast(xp.where(_sinks(k_positions, sinks), of_sinks, scores(q_positions, k_positions)), q.dtype)


def _in_cache(q_positions: Array, size: int) -> Array:
    """Return the places in the cache of queries that come after at most `size` keys."""
    return namespace(q_positions).minimum(q_positions, beside(size, q_positions, q_positions.dtype))


def _sinks(k_positions: Array, sinks: int) -> Array:
    return k_positions[..., None, :] < sinks


def _reach(function: str, sinks: int, window: int, counting: Counting) -> tuple[int, int]:
    sinks = check_integer(function, "sinks", sinks, 0)
    farthest = reach(function, window, counting)
    check_integer(function, "sinks + window", sinks + window, 0)
    return sinks, farthest
