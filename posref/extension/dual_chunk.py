"""Dual chunk attention: positions begin anew in every chunk. Source: An et al., arXiv:2402.17463; HKUNLP/ChunkLlama."""

from posref.arrays import Array, cast, distances, namespace
from posref.checks import check_integer
from posref.extension.passes import PLACES, ROTATES, ROTATION, SCORES, passes, signed
from posref.scaling import Scaling
from posref.spec import Domain, Integer, encoding

MODELS = ("Qwen2.5-1M", "Qwen3-2507 (1M)", "ChunkLlama")
OPTIONS: dict[str, Domain] = {"chunk_size": Integer(1, usual=64), "local_size": Integer(0, usual=16)}
SIZES = ("local_size < chunk_size",)


@encoding(
    family="extension",
    source="arXiv:2402.17463, section 3; HKUNLP/ChunkLlama",
    models=MODELS,
    domains=OPTIONS,
    invariants=("decode",),
    arrays=PLACES,
    requires=SIZES,
    returns="integer",
)
def dual_chunk_distances(q_positions: Array, k_positions: Array, /, *, chunk_size: int, local_size: int) -> Array:
    r"""
    Return the relative position by which dual chunk attention turns every query and key against each other.

    .. math:: f(m, n) = P(m, b) - (n \bmod s), \qquad s = c - l, \qquad
        b = \left\lfloor \frac{m}{s} \right\rfloor - \left\lfloor \frac{n}{s} \right\rfloor

    .. math:: P = m \bmod s \; (b \le 0, \text{intra}), \qquad \min(m \bmod s + s, c) \; (b = 1, \text{successive}), \qquad
        \min(2s - 1, c) \; (b > 1, \text{inter})

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens.
    k_positions : array, shape ``(*B, K)``
        n, in tokens.
    chunk_size : int
        c, at least 1; Qwen2.5-1M has 262144. Tokens are cut into chunks of s.
    local_size : int
        l, at least 0, below `chunk_size`; Qwen2.5-1M has 8192. Neighbours so near keep their distance across a chunk's border.

    Returns
    -------
    array, integer, shape ``(*B, Q, K)``
        In tokens, at most c for keys that are not after the query.

    Raises
    ------
    ValueError
        If a size is out of its range or positions are not signed integers.

    Notes
    -----
    Sizes are those of the authors' code, of vLLM and of ``dual_chunk_attention_config``. The paper has chunks of s and a
    largest position of c - 1, c the pretraining length, where the code's is c: give ``chunk_size=c-1, local_size=c-1-s`` for
    the paper's (c at most 2s).

    A key of a later chunk than the query's, which the code never asks for, counts as of the same; a causal mask hides it.

    Examples
    --------
    >>> import numpy as np
    >>> dual_chunk_distances(np.asarray([7, 13]), np.arange(14), chunk_size=9, local_size=3).tolist()
    [[7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, 1, 0], [9, 8, 7, 6, 5, 4, 7, 6, 5, 4, 3, 2, 1, 0]]
    """
    _check("dual_chunk_distances", chunk_size, local_size)
    q_positions, k_positions = signed("dual_chunk_distances", q_positions, k_positions)
    xp = namespace(q_positions, k_positions)
    key, *queries = _places(q_positions, k_positions, chunk_size, local_size)
    intra, successive, inter = (distances(query, key) for query in queries)
    behind = _behind(q_positions, k_positions, chunk_size - local_size)
    return xp.where(behind <= 0, intra, xp.where(behind == 1, successive, inter))


@encoding(
    family="extension",
    source="arXiv:2402.17463, section 3; HKUNLP/ChunkLlama",
    models=MODELS,
    domains=OPTIONS | ROTATION,
    invariants=("decode", "equals its map"),
    stages=("rope_frequencies", "rope_table", "dual_chunk_distances"),
    arrays=SCORES,
    requires=(*SIZES, *ROTATES),
)
def dual_chunk(
    q: Array,
    k: Array,
    q_positions: Array,
    k_positions: Array,
    /,
    *,
    chunk_size: int,
    local_size: int,
    layout: str,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | None = None,
) -> Array:
    r"""
    Return the scores of dual chunk attention: products of queries and keys, turned by `dual_chunk_distances`.

    .. math:: s_{ij} = q_i \cdot R_{-f(m_i, n_j)} k_j

    in three passes, of queries turned by the positions P of their own chunk, of the next and of all later ones, each with
    keys turned by n mod s.

    Parameters
    ----------
    q : array, real floating, shape ``(*R, H, Q, D)``
        Queries; R and H may be missing.
    k : array, shape ``(*R, G, K, D)``
        Keys; H is a multiple of G, and each key head serves a block of H/G neighbouring query heads.
    q_positions, k_positions : arrays, signed integer, shapes ``(*P, Q)`` and ``(*P, K)``
        In tokens; they broadcast against the leading axes of `q` and of `k`: (B, H, Q, D) takes (Q,) or (B, 1, Q).
    chunk_size, local_size : int
        See `dual_chunk_distances`; Qwen2.5-1M has 262144 and 8192.
    layout, base, rotary_dim, scaling, length
        Of the rotation: see `rope`. A factor of the scaling multiplies queries and keys in every pass, so each score twice:
        ChunkLlama has one of 1 + 0.05 ln(length/L).

    Returns
    -------
    array, shape ``(*R, H, Q, K)``
        Unscaled: divide by sqrt(D). In the dtype of `q`.

    Raises
    ------
    ValueError
        As for `rope` and `dual_chunk_distances`, or if H is not a multiple of G.

    Notes
    -----
    Every score depends on its own two positions alone, on the query's through its chunk: a query decoded with cached keys has
    the scores of the prefill, and the cache holds keys turned by n mod s. Keys after the query: see `dual_chunk_distances`.

    vLLM multiplies scores by a temperature beyond the original length. The two more queries that it makes, "critical", choose
    keys for its sparse attention; they enter no score.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, places = np.asarray([[1.0, 0.0]]), np.asarray([[1.0, 0.0]] * 3), (np.asarray([9]), np.asarray([0, 4, 9]))
    >>> dual_chunk(q, k, *places, chunk_size=5, local_size=1, layout="half", base=10000.0).round(4).tolist()
    [[0.2837, 0.2837, 1.0]]
    """
    _check("dual_chunk", chunk_size, local_size)
    q_positions, k_positions = signed("dual_chunk", q_positions, k_positions)
    scores = passes(
        "dual_chunk", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q, k, q_positions, k_positions)
    key, *queries = _places(q_positions, k_positions, chunk_size, local_size)
    intra, successive, inter = (scores(query, key) for query in queries)
    behind = _behind(q_positions, k_positions, chunk_size - local_size)
    return cast(xp.where(behind <= 0, intra, xp.where(behind == 1, successive, inter)), q.dtype)


def _places(q_positions: Array, k_positions: Array, chunk_size: int, local_size: int) -> tuple[Array, Array, Array, Array]:
    """Return positions of keys, and of queries of the same, of the next and of later chunks."""
    xp = namespace(q_positions, k_positions)
    size = chunk_size - local_size
    query, key = (p - size * (p // size) for p in (q_positions, k_positions))
    return key, query, xp.minimum(query + size, 0 * query + chunk_size), 0 * query + min(2 * size - 1, chunk_size)


def _behind(q_positions: Array, k_positions: Array, size: int) -> Array:
    """Return by how many chunks of `size` every key is behind the query."""
    return distances(q_positions // size, k_positions // size)


def _check(function: str, chunk_size: int, local_size: int) -> None:
    check_integer(function, "chunk_size", chunk_size, 1)
    check_integer(function, "local_size", local_size, 0)
    if local_size >= chunk_size:
        msg = f"{function}: local_size must be below chunk_size, {chunk_size}; got {local_size}."
        raise ValueError(msg)
