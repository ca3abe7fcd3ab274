"""Dual chunk attention: positions start again in every chunk. Source: An et al., arXiv:2402.17463; HKUNLP/ChunkLlama."""

from typing import Any

from posref.core.arrays import Array, cast, namespace
from posref.extension.dual_chunk_distances import (
    MODELS,
    OPTIONS,
    SIZES,
    check_options,
    chunks_behind,
    dual_chunk_distances,
    places_in_chunks,
)
from posref.extension.passes import ROTATES, ROTATION, SCORES, passes, rotated_products
from posref.scaling import Scaling
from posref.spec import encoding
from posref.types import AnyArray, ArrayOf, Layout, T


def by_map(
    q: Array, k: Array, q_positions: Array, k_positions: Array, /, *, chunk_size: int, window: int, **rotation: Any
) -> Array:
    """Return the same scores in one pass: each query-key pair is rotated by its own relative position."""
    relative = dual_chunk_distances(q_positions, k_positions, chunk_size=chunk_size, window=window)
    return rotated_products(q, k, relative, **rotation)


@encoding(
    title="Dual chunk attention (DCA)",
    idea=(
        "RoPE for texts longer than in training. The text is cut into chunks. Distances within a chunk, and to the nearest "
        "keys of the chunk before, are exact; larger ones are replaced by distances that training had. The model need not be "
        "trained again."
    ),
    longer="A trained RoPE model reads more than 100k tokens without tuning.",
    family="extension",
    source="arXiv:2402.17463, section 3; HKUNLP/ChunkLlama",
    models=MODELS,
    domains=OPTIONS | ROTATION,
    invariants=("decode", "equals its map"),
    arrays=SCORES,
    result="Q K | *R G*g Q K",
    rows="*R Q K",
    requires=(*SIZES, *ROTATES),
    sums=True,
    equals=by_map,
    read={
        "vLLM": (
            "vllm 0.10.0, attention/backends/dual_chunk_flash_attn.py:160-166, 428-438, 736, 750-835; "
            "vllm/model_executor/layers/rotary_embedding.py:1753-1766"
        ),
        "Qwen2.5-1M": "vllm 0.33.0, model_executor/models/qwen2.py:183-194",
        "Qwen3-2507 (1M)": "vllm 0.33.0, model_executor/models/qwen3.py:127-139",
        "ChunkLlama": "HKUNLP/ChunkLlama@2add4d7, chunkllama_attn_replace.py:44-61, 151-222",
    },
)
def dual_chunk(
    q: ArrayOf[T],
    k: ArrayOf[T],
    q_positions: ArrayOf[T],
    k_positions: ArrayOf[T],
    /,
    *,
    chunk_size: int,
    window: int,
    layout: Layout,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
) -> T:
    r"""
    Return the scores of dual chunk attention: query-key products, rotated by the positions from `dual_chunk_distances`.

    .. math:: \ell_{ij} = q_i \cdot R_{-f(m_i, n_j)} k_j, \qquad f(m, n) = g(m, e) - (n \bmod s), \qquad s = c - l, \qquad
        e = \left\lfloor \frac{m}{s} \right\rfloor - \left\lfloor \frac{n}{s} \right\rfloor

    .. math:: g(m, e) = m \bmod s \; (e \le 0), \qquad \min(m \bmod s + s, c) \; (e = 1), \qquad \min(2s - 1, c) \; (e > 1)

    .. math:: (R_p x)_u = x_u \cos p\theta_t - x_v \sin p\theta_t, \quad
        (R_p x)_v = x_v \cos p\theta_t + x_u \sin p\theta_t, \quad \theta_t = b^{-2t/d}, \quad t = 0 \dots d/2-1

    Query i is at position :math:`m_i`, key j at :math:`n_j`. Channel pair t has the channels u and v (see `layout`). Compute it
    in three passes: queries rotated by g(m, 0), g(m, 1) and g(m, 2), each with keys rotated by n mod s.

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
    chunk_size : int
        c, at least 1; Qwen2.5-1M has 262144. See `dual_chunk_distances`.
    window : int
        l, at least 0, below `chunk_size`; Qwen2.5-1M has 8192.
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
        every pass, so each score twice. ChunkLlama's
        factor is 1 + 0.05 ln(length/L), with L the original length.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it.

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
    A score depends only on the two positions. So decoding with cached keys gives the same scores as the prefill, and the cache
    can hold keys rotated by n mod s. For keys after the query see `dual_chunk_distances`.

    Beyond the original length, vLLM 0.10 multiplies scores by a temperature. It also rotates two more queries, called
    "critical", to choose keys for its sparse attention. They do not change any score. vLLM 0.33 has the rotations alone.

    Examples
    --------
    >>> import numpy as np
    >>> q, k, places = np.asarray([[1.0, 0.0]]), np.asarray([[1.0, 0.0]] * 3), (np.asarray([9]), np.asarray([0, 4, 9]))
    >>> dual_chunk(q, k, *places, chunk_size=5, window=1, layout="half", base=10000.0).round(4).tolist()
    [[0.2837, 0.2837, 1.0]]
    """
    chunk_size, window = check_options("dual_chunk", chunk_size, window)
    scores, q_positions, k_positions = passes(
        "dual_chunk", q, k, q_positions, k_positions,
        layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length,
    )  # fmt: skip
    xp = namespace(q)
    key, *queries = places_in_chunks(q_positions, k_positions, chunk_size, window)
    intra, successive, inter = (scores(query, key) for query in queries)
    behind = chunks_behind(q_positions, k_positions, chunk_size - window)
    return cast(xp.where(behind <= 0, intra, xp.where(behind == 1, successive, inter)), q.dtype)
