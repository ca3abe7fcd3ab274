"""
Relative positions in the keys. Source: Shaw et al., arXiv:1803.02155, section 3, equation (4), without its 1/sqrt(d_z):

    e_ij = x_i W^Q (x_j W^K + a^K_ij)^T,  a^K_ij = w^K_clip(j - i, k),  clip(x, k) = max(-k, min(k, x))

The two ends of the clip are options here (wav2vec2-BERT: 64 and 8), and so is the order (SpeechT5: i - j).
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape


def row(i: int, j: int, left: int, right: int, order: str) -> int:
    """Return the row of the table for query position `i` and key position `j`."""
    difference = {"key_minus_query": j - i, "query_minus_key": i - j}[order]
    return max(-left, min(right, difference)) + left


def shaw_scores(
    q: Any, k: Any, key_table: Any, q_positions: Any, k_positions: Any, *, left: int, right: int, order: str
) -> Any:
    """Return q.(k + a), unscaled, shape (..., Q, K)."""
    (*q_lead, rows, width), (*k_lead, columns, _) = shape(q), shape(k)

    def element(*index: int) -> Any:
        *lead, m, n = index
        a = key_table[row(at(q_positions, (*lead, m)), at(k_positions, (*lead, n)), left, right, order)]
        return mp.fsum(at(q, (*lead, m, z)) * (at(k, (*lead, n, z)) + a[z]) for z in range(width))

    return build((*broadcast(q_lead, k_lead), rows, columns), element)
