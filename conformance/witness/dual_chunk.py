"""
The scores of dual chunk attention: products of queries and keys turned by the map of dual_chunk_distances, element by element.

The authors' code (HKUNLP/ChunkLlama, chunkllama_attn_replace.py) has three matrices of scores, of queries at their positions in
their own chunk, in the next and in later ones, with keys at theirs: arXiv:2402.17463, equation (8).
"""

from typing import Any

from .dual_chunk_distances import dual_chunk_distances
from .turned_products import turned_products


def dual_chunk(q: Any, k: Any, q_positions: Any, k_positions: Any, *, chunk_size: int, window: int, **rotation: Any) -> Any:
    """Return q . R_f(m, n) k, unscaled, shape (..., Q, K)."""
    relative = dual_chunk_distances(q_positions, k_positions, chunk_size=chunk_size, window=window)
    return turned_products(q, k, relative, **rotation)
