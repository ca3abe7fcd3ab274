"""Relative positions of dual chunk attention, which divides a text into chunks. Source: An et al., arXiv:2402.17463."""

from posref.core.arrays import Array, distances, library, namespace
from posref.core.checks import check_integer
from posref.extension.passes import PLACES, signed
from posref.spec import Domain, Integer, encoding
from posref.types import ArrayOf, T

MODELS = ("Qwen2.5-1M", "Qwen3-2507 (1M)", "ChunkLlama")
OPTIONS: dict[str, Domain] = {"chunk_size": Integer(1, usual=64), "window": Integer(0, usual=16)}
SIZES = ("window < chunk_size",)


@encoding(
    title="Distances of dual chunk attention",
    idea=(
        "A model trained on 32768 tokens has never met a larger distance. Dual chunk attention cuts the text into chunks: "
        "distances within a chunk are exact, those to far chunks are replaced by ones that training had. This gives the "
        "distances."
    ),
    family="extension",
    source="arXiv:2402.17463, section 3; HKUNLP/ChunkLlama",
    models=MODELS,
    domains=OPTIONS,
    invariants=("decode",),
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    requires=SIZES,
    returns="integer",
    noun="relative",
    read={"vLLM": "vllm 0.33.0, model_executor/layers/rotary_embedding/dual_chunk_rope.py:75-91, 143-161"},
)
def dual_chunk_distances(q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *, chunk_size: int, window: int) -> T:
    r"""
    Return the relative position by which dual chunk attention rotates every query and key against each other.

    .. math:: f(m, n) = g(m, e) - (n \bmod s), \qquad s = c - l, \qquad
        e = \left\lfloor \frac{m}{s} \right\rfloor - \left\lfloor \frac{n}{s} \right\rfloor

    .. math:: g(m, e) = m \bmod s \; (e \le 0, \text{intra}), \qquad
        \min(m \bmod s + s, c) \; (e = 1, \text{successive}), \qquad \min(2s - 1, c) \; (e > 1, \text{inter})

    Here m is the position of the query, n the position of the key, c is `chunk_size`, l `window`, s the size of a chunk in
    tokens, and e the number of chunks by which the key is before the query.

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens.
    k_positions : array, signed integer, shape ``(*B, K)``
        n, in tokens.
    chunk_size : int
        c, at least 1; Qwen2.5-1M has 262144. The text is cut into chunks of s tokens, not c.
    window : int
        l, at least 0, below `chunk_size`; Qwen2.5-1M has 8192. Tokens at most l apart keep their true distance across a chunk
        border.

    Returns
    -------
    array, integer, shape ``(*B, Q, K)``
        In tokens. At most c for keys at or before the query.

    Raises
    ------
    ValueError
        If a size is out of its range or positions are not signed integers.

    Notes
    -----
    The two sizes have the meaning that they have in the authors' code, in vLLM and in ``dual_chunk_attention_config``. In the
    paper chunks have s tokens and the largest position is c - 1, where c is the pretraining length; in the code it is c. For
    the paper's distances pass ``chunk_size=c-1, window=c-1-s`` (c at most 2s).

    The authors' code never computes a key in a later chunk than the query's. Here such a key is treated as if in the same
    chunk. A causal mask hides it.

    Examples
    --------
    >>> import numpy as np
    >>> dual_chunk_distances(np.asarray([7, 13]), np.arange(14), chunk_size=9, window=3).tolist()
    [[7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, 1, 0], [9, 8, 7, 6, 5, 4, 7, 6, 5, 4, 3, 2, 1, 0]]
    """
    chunk_size, window = check_options("dual_chunk_distances", chunk_size, window)
    q_positions, k_positions = signed("dual_chunk_distances", q_positions, k_positions)
    xp = library("dual_chunk_distances", q_positions=q_positions, k_positions=k_positions)
    key, *queries = places_in_chunks(q_positions, k_positions, chunk_size, window)
    intra, successive, inter = (distances(query, key) for query in queries)
    behind = chunks_behind(q_positions, k_positions, chunk_size - window)
    return xp.where(behind <= 0, intra, xp.where(behind == 1, successive, inter))


def places_in_chunks(q_positions: Array, k_positions: Array, chunk_size: int, window: int) -> tuple[Array, Array, Array, Array]:
    """Return n mod s for keys, and g(m, e) for queries: for keys in the same chunk, in the one before, and in earlier ones."""
    xp = namespace(q_positions, k_positions)
    size = chunk_size - window
    query, key = (p - size * (p // size) for p in (q_positions, k_positions))
    return key, query, xp.minimum(query + size, 0 * query + chunk_size), 0 * query + min(2 * size - 1, chunk_size)


def chunks_behind(q_positions: Array, k_positions: Array, size: int) -> Array:
    """Return by how many chunks of `size` tokens every key is before the query."""
    return distances(q_positions // size, k_positions // size)


def check_options(function: str, chunk_size: int, window: int) -> tuple[int, int]:
    """Return both options as ints. Raise if one is out of range."""
    chunk_size = check_integer(function, "chunk_size", chunk_size, 1)
    window = check_integer(function, "window", window, 0)
    if window >= chunk_size:
        msg = f"{function}: window must be below chunk_size, {chunk_size}; got {window}."
        raise ValueError(msg)
    return chunk_size, window
