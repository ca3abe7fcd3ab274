"""
Relative positions in the keys. Source: Shaw et al., arXiv:1803.02155, section 3, equation (4), without its 1/sqrt(d_z):

    e_ij = x_i W^Q (x_j W^K + a^K_ij)^T,  a^K_ij = w^K_clip(j - i, k),  clip(x, k) = max(-k, min(k, x))

The two ends of the clip are options here (wav2vec2-BERT: 64 and 8), and so is the order (SpeechT5: i - j). VITS has a = 0
outside of the window. Huang et al., arXiv:2009.13658, method 4, without its scale:

    e_ij = (x_i W^Q).(x_j W^K) + (x_i W^Q).a_ij + (x_j W^K).a_ij
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape


def row(i: int, j: int, left: int, right: int, order: str) -> int:
    """Return the row of the table for query position `i` and key position `j`."""
    difference = {"key_minus_query": j - i, "query_minus_key": i - j}[order]
    return max(-left, min(right, difference)) + left


def vector(table: Any, i: int, j: int, left: int, right: int, order: str, outside: str) -> list[Any]:
    """Return the vector of query position `i` and key position `j`."""
    difference = {"key_minus_query": j - i, "query_minus_key": i - j}[order]
    if {"zero": True, "clip": False}[outside] and not -left <= difference <= right:
        return [mp.zero] * shape(table)[1]
    return list(table[row(i, j, left, right, order)])


def shaw_scores(
    q: Any, k: Any, key_table: Any, q_positions: Any, k_positions: Any, *, left: int, right: int, order: str,
    outside: str = "clip", terms: str = "query",
) -> Any:  # fmt: skip
    """Return q.(k + a), unscaled, shape (..., Q, K), and k.a with it if `terms` is "query_and_key"."""
    (*q_lead, rows, width), (*k_lead, columns, _) = shape(q), shape(k)

    def element(*index: int) -> Any:
        *lead, m, n = index
        places = at(q_positions, (*lead, m)), at(k_positions, (*lead, n))
        a = vector(key_table, *places, left, right, order, outside)
        of_query = mp.fsum(at(q, (*lead, m, z)) * (at(k, (*lead, n, z)) + a[z]) for z in range(width))
        of_key = mp.fsum(at(k, (*lead, n, z)) * a[z] for z in range(width))
        return {"query": of_query, "query_and_key": of_query + of_key}[terms]

    return build((*broadcast(q_lead, k_lead), rows, columns), element)
