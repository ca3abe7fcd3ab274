"""The first keys and the last ones. Sources: Xiao et al., arXiv:2309.17453, section 3.2; Han et al., arXiv:2308.16137."""

from posref.arrays import Array, distances
from posref.checks import check_integer
from posref.extension.sliding_window import COUNTED, PLACES, WINDOW, of_tokens, reach
from posref.spec import Integer, encoding


@encoding(
    family="extension",
    source="arXiv:2309.17453, section 3.2",
    models=("StreamingLLM", "LM-Infinite"),
    domains={"sinks": Integer(0, usual=16), **WINDOW},
    arrays=PLACES,
    requires=COUNTED,
    invariants=("decode",),
    returns="mask",
)
def lambda_window(q_positions: Array, k_positions: Array, /, *, sinks: int, window: int, counting: str) -> Array:
    r"""
    Return which keys every query may attend to: the first of all, and the last before it.

    .. math:: M_{ij} = [\, p_j \le p_i \,] \wedge ([\, p_i - p_j \le r \,] \vee [\, p_j < g \,])

    with r = `window` - 1 where the window counts the query's own key, and r = `window` where it does not.

    Parameters
    ----------
    q_positions, k_positions : arrays, integer, shapes ``(*B, Q)`` and ``(*B, K)``
        Positions in tokens, from the beginning of the text: not places in a cache.
    sinks : int
        g, how many of the first tokens stay; StreamingLLM has 4, LM-Infinite's ``global_branch`` is 10 to 100.
    window, counting
        As in `sliding_window`, on the side of the past. It does not count the sinks.

    Returns
    -------
    array of booleans, shape ``(*B, Q, K)``
        True may attend: the mask of `attention`.

    Raises
    ------
    ValueError
        If positions are not integers, `sinks` or `window` is too small, or `counting` is unknown.

    Notes
    -----
    LM-Infinite's ``local_branch`` counts the query. StreamingLLM's ``recent_size`` does not where the cache is trimmed after
    each token (its evaluation of perplexity), and does where room is made before (``evict_for_space``, its chat).

    The two differ in what a distance is, which a mask does not say. StreamingLLM turns queries and keys by their places in
    the cache, :math:`\min(p_i, g + r) - p_j` to a sink; within the window nothing changes: `streaming_llm` has its scores, and
    `posref.positions.evicted` gives the places. LM-Infinite clamps distances, :math:`\min(p_i - p_j, W)`, so that all sinks
    outside the window are as far: its scores are those of `rerope` with the same `window`, W, counting the query.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([9]), np.asarray([0, 1, 2, 7, 8, 9])
    >>> lambda_window(*places, sinks=1, window=2, counting="with_query").tolist()
    [[True, False, False, False, True, True]]
    """
    check_integer("lambda_window", "sinks", sinks, 0)
    farthest = reach("lambda_window", window, counting)
    q, k = of_tokens("lambda_window", q_positions, k_positions)
    apart = distances(q, k)
    return (apart >= 0) & ((apart <= farthest) | (k[..., None, :] < sinks))
