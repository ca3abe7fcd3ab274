"""Relative positions of StreamingLLM, from places in its cache. Source: Xiao et al., arXiv:2309.17453."""

from posref.core.arrays import Array, beside, distances, library, namespace
from posref.core.checks import check_integer
from posref.extension.passes import PLACES, signed
from posref.extension.sliding_window import COUNTED, WINDOW, Counting, reach
from posref.spec import Domain, Integer, encoding
from posref.types import ArrayOf, T

OPTIONS: dict[str, Domain] = {"num_sinks": Integer(0, usual=16), **WINDOW}


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
    read={
        "StreamingLLM's evaluation of perplexity": (
            "mit-han-lab/streaming-llm@2e50426, streaming_llm/kv_cache.py:40-64; examples/eval_long_ppl.py:80-93"
        )
    },
)
def streaming_llm_distances(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, num_sinks: int, window: int, counting: Counting
) -> T:
    r"""
    Return the relative position by which StreamingLLM rotates every query and key against each other.

    .. math:: f(m, n) = \min(m, g + r) - n \text{ for } n < g, \qquad m - n \text{ otherwise}

    Here m is the position of the query, n the position of the key, g is `num_sinks`, and r is `window` - 1 for
    ``counting="with_query"``, else `window`.

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens from the start of the text.
    k_positions : array, signed integer, shape ``(*B, K)``
        n, in tokens from the start of the text, not places in the cache.
    num_sinks : int
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
        If `num_sinks` or `window` is too small, their sum is 2**31 or more, `counting` is unknown or positions are not signed
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
    >>> options = {"num_sinks": 2, "window": 2, "counting": "without_query"}
    >>> streaming_llm_distances(np.asarray([9]), np.asarray([0, 1, 7, 8, 9]), **options).tolist()
    [[4, 3, 2, 1, 0]]
    """
    num_sinks, farthest = check_reach("streaming_llm_distances", num_sinks, window, counting)
    q_positions, k_positions = signed("streaming_llm_distances", q_positions, k_positions)
    xp = library("streaming_llm_distances", q_positions=q_positions, k_positions=k_positions)
    of_sinks = distances(places_in_cache(q_positions, num_sinks + farthest), k_positions)
    return xp.where(are_sinks(k_positions, num_sinks), of_sinks, distances(q_positions, k_positions))


def places_in_cache(q_positions: Array, size: int) -> Array:
    """Return the places in the cache of queries that come after at most `size` keys."""
    return namespace(q_positions).minimum(q_positions, beside(size, q_positions, q_positions.dtype))


def are_sinks(k_positions: Array, num_sinks: int) -> Array:
    """Return whether each key is a sink, shape ``(*B, 1, K)``."""
    return k_positions[..., None, :] < num_sinks


def check_reach(function: str, num_sinks: int, window: int, counting: Counting) -> tuple[int, int]:
    """Return the number of sinks, and the distance of the farthest key in the window. Raise if an option is out of range."""
    num_sinks = check_integer(function, "num_sinks", num_sinks, 0)
    farthest = reach(function, window, counting)
    check_integer(function, "num_sinks + window", num_sinks + window, 0)
    return num_sinks, farthest
