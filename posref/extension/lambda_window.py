"""Windows of the first keys and the last. Sources: Xiao et al., arXiv:2309.17453, section 3.2; Han et al., arXiv:2308.16137."""

from posref.arrays import distances
from posref.checks import check_integer
from posref.extension.sliding_window import COUNTED, PLACES, WINDOW, Counting, of_tokens, reach
from posref.spec import Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    family="extension",
    source="arXiv:2309.17453, section 3.2",
    models=("StreamingLLM", "LM-Infinite"),
    domains={"sinks": Integer(0, usual=16), **WINDOW},
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    requires=COUNTED,
    invariants=("decode",),
    returns="mask",
)
def lambda_window(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, sinks: int, window: int, counting: Counting) -> T:
    r"""
    Return which keys every query may attend to: the first of the text, and the last before the query.

    .. math:: M_{ij} = [\, p_j \le p_i \,] \wedge ([\, p_i - p_j \le r \,] \vee [\, p_j < g \,])

    Here :math:`p_i` is the position of query i, :math:`p_j` that of key j, g is `sinks`, and r is `window` - 1 for
    ``counting="with_query"``, else `window`.

    Parameters
    ----------
    q_positions, k_positions : arrays, integer, shapes ``(*B, Q)`` and ``(*B, K)``
        Positions in tokens from the beginning of the text: not places in a cache.
    sinks : int
        g, how many of the first tokens stay; StreamingLLM has 4, LM-Infinite's ``global_branch`` is 10 to 100.
    window : int
        Tokens in the window, which ends at the query and does not count the sinks; at least 1 if it counts the query, else 0.
    counting : {"with_query", "without_query"}
        Whether the window counts the query's own key.

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

    The two differ in their distances, which a mask does not show. StreamingLLM rotates queries and keys by their places in the
    cache, so that a sink is :math:`\min(p_i, g + r) - p_j` away; within the window nothing changes. `streaming_llm` has its
    scores, and `posref.positions.evicted` gives the places. LM-Infinite clips distances to :math:`\min(p_i - p_j, W)`, so that
    all sinks outside the window are equally far: its scores are those of `rerope` with the same `window`, W, counting the
    query.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([9]), np.asarray([0, 1, 2, 7, 8, 9])
    >>> lambda_window(*places, sinks=1, window=2, counting="with_query").tolist()
    [[True, False, False, False, True, True]]
    """
    sinks = check_integer("lambda_window", "sinks", sinks, 0)
    farthest = reach("lambda_window", window, counting)
    q, k = of_tokens("lambda_window", q_positions, k_positions)
    apart = distances(q, k)
    return (apart >= 0) & ((apart <= farthest) | (k[..., None, :] < sinks))
