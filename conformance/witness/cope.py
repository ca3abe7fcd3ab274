"""
CoPE. Source: Golovneva et al., arXiv:2405.18719, section 4:

    g_ij = sigma(q_i^T k_j),   p_ij = sum_{k=j}^i g_ik,
    e[p_ij] = (p_ij - floor(p_ij)) e[ceil(p_ij)] + (1 - p_ij + floor(p_ij)) e[floor(p_ij)]

and the bias is q_i^T e[p_ij], with p_ij limited to the last row.
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def cope(q: Any, logits: Any, table: Any, mask: Any) -> Any:
    """Return the bias, shape (..., Q, K)."""
    *lead, queries, keys = shape(logits)
    last = len(table) - 1

    def element(*index: int) -> Any:
        *row, i, j = index
        gates = [1 / (1 + mp.exp(-at(logits, (*row, i, k)))) if at(mask, (*row, i, k)) else mp.mpf(0) for k in range(j, keys)]
        position = min(mp.fsum(gates), mp.mpf(last))
        below = int(mp.floor(position))
        above = min(below + 1, last)
        share = position - below
        return mp.fsum(
            at(q, (*row, i, d)) * ((1 - share) * table[below][d] + share * table[above][d]) for d in range(len(table[0]))
        )

    return build((*lead, queries, keys), element)
