"""
Sandwich. Source: Chi et al., arXiv:2212.10356, section 5: the temporal bias is the inner product of sinusoidal embeddings,

    p_m^T p_n = sum_{i=1}^{d/2} cos((m - n) / 10000^{2i/d})

compressed by 8h/H for head h. NeMo subtracts d/2 first, so that it is 0 at distance 0.
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape


def sandwich(q_positions: Any, k_positions: Any, *, heads: int, dim: int, base: float = 10000.0) -> Any:
    """Return the bias, shape (*B, heads, Q, K)."""
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        distance = at(q_positions, (*batch, i)) - at(k_positions, (*batch, j))
        cosines = [mp.cos(distance / mp.mpf(base) ** (mp.mpf(2 * k) / dim)) for k in range(1, dim // 2 + 1)]
        return (mp.fsum(cosines) - mp.mpf(dim) / 2) / (mp.mpf(8 * (h + 1)) / heads)

    return build((*broadcast(q_batch, k_batch), heads, rows, columns), element)
