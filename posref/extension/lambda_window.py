"""A window of first and recent keys. Sources: Xiao et al., arXiv:2309.17453, section 3.2; Han et al., arXiv:2308.16137."""

from posref.core.arrays import distances
from posref.core.checks import check_integer
from posref.extension.sliding_window import COUNTED, PLACES, WINDOW, Counting, of_tokens, reach
from posref.spec import Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Window with attention sinks",
    idea=(
        "A query sees the last few thousand tokens, and always the first few of the text. Models put much weight on these "
        "first tokens, called sinks, and fail when a window drops them. Drawn, the mask has the shape of the letter lambda."
    ),
    longer="Text of any length stays fluent; what is outside the window is not read.",
    family="extension",
    source="arXiv:2309.17453, section 3.2",
    models=("StreamingLLM", "LM-Infinite"),
    domains={"num_sinks": Integer(0, usual=16), **WINDOW},
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    requires=COUNTED,
    invariants=("decode",),
    returns="mask",
    read={
        "LM-Infinite": "Glaciohound/LM-Infinite@a0ce64c, models/lambda_attention.py:61-66",
        "StreamingLLM's evaluation of perplexity": (
            "mit-han-lab/streaming-llm@2e50426, streaming_llm/kv_cache.py:40-64; examples/eval_long_ppl.py:80-93"
        ),
    },
)
def lambda_window(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, num_sinks: int, window: int, counting: Counting) -> T:
    r"""
    Return a mask that lets every query attend to the first keys of the text (sinks) and the most recent ones.

    .. math:: M_{ij} = [\, p_j \le p_i \,] \wedge ([\, p_i - p_j \le r \,] \vee [\, p_j < g \,])

    Here :math:`p_i` is the position of query i, :math:`p_j` the position of key j, g is `num_sinks`, and r is `window` - 1 for
    ``counting="with_query"``, else `window`. Brackets are True where the statement holds.

    Parameters
    ----------
    q_positions : array, integer, shape ``(*B, Q)``
        In tokens from the start of the text.
    k_positions : array, integer, shape ``(*B, K)``
        In tokens from the start of the text, not places in a cache.
    num_sinks : int
        g, at least 0: the number of first tokens that stay visible. StreamingLLM has 4, LM-Infinite's ``global_branch`` is 10
        to 100.
    window : int
        The number of recent tokens, without the sinks. At least 1 with "with_query", at least 0 with "without_query".
    counting : {"with_query", "without_query"}
        Whether the window counts the query's own key.

        - ``"with_query"``: A window of W tokens is the query's own and the W - 1 before it. Used by LM-Infinite.
        - ``"without_query"``: A window of W tokens is the W before the query, plus the query's own. Used by StreamingLLM's
          evaluation of perplexity.

    Returns
    -------
    array of booleans, shape ``(*B, Q, K)``
        True where a query may attend to a key: the `mask` of `attention`.

    Raises
    ------
    ValueError
        If positions are not integers, `num_sinks` or `window` is too small, or `counting` is unknown.

    Notes
    -----
    LM-Infinite's ``local_branch`` counts the query. StreamingLLM's ``recent_size`` does not count it where the cache is trimmed
    after each token (its perplexity evaluation). Its chat makes room for a whole prompt and answer at once
    (``evict_for_space``), so that the window has no fixed size.

    StreamingLLM and LM-Infinite use the same mask with different distances. StreamingLLM rotates queries and keys by their
    places in the cache. So a sink is :math:`\min(p_i, g + r) - p_j` away, and within the window nothing changes.
    `streaming_llm` returns its scores and `posref.positions.evicted` the places. LM-Infinite clips distances to
    :math:`\min(p_i - p_j, W)`, so all sinks outside the window are equally far. `rerope` returns its scores, with the same
    `window` W, counting the query.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.asarray([9]), np.asarray([0, 1, 2, 7, 8, 9])
    >>> lambda_window(*places, num_sinks=1, window=2, counting="with_query").tolist()
    [[True, False, False, False, True, True]]
    """
    num_sinks = check_integer("lambda_window", "num_sinks", num_sinks, 0)
    farthest = reach("lambda_window", window, counting)
    q, k = of_tokens("lambda_window", q_positions, k_positions)
    apart = distances(q, k)
    return (apart >= 0) & ((apart <= farthest) | (k[..., None, :] < num_sinks))
