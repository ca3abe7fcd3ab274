"""
The relative positions of dual chunk attention. Source: An et al., arXiv:2402.17463, equations (2), (5), (7) and (8), with the
sizes of the authors' code, HKUNLP/ChunkLlama, chunkllama_attn_replace.py, whose chunks have s = chunk_size - window tokens:

    key j mod s; query i mod s in its own chunk, min(i mod s + s, chunk_size) for the chunk before, and for earlier ones the
    last of these, of i mod s = s - 1
"""

from typing import Any

from .turned_products import relative


def chunked(m: int, n: int, chunk_size: int, window: int) -> int:
    """Return the relative position of query position `m` and key position `n`."""
    chunk_len = chunk_size - window
    of_query, of_key = m // chunk_len, n // chunk_len
    if of_query - of_key == 1:
        at = min(m % chunk_len + chunk_len, chunk_size)
    elif of_query - of_key > 1:
        at = min(chunk_len - 1 + chunk_len, chunk_size)
    else:  # its own chunk; later ones are never asked for
        at = m % chunk_len
    return at - n % chunk_len


def dual_chunk_distances(q_positions: Any, k_positions: Any, *, chunk_size: int, window: int) -> Any:
    """Return f(m, n) of every query and key."""
    return relative(lambda m, n: chunked(m, n, chunk_size, window), q_positions, k_positions)
