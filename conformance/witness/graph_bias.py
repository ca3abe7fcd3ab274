"""
Spatial and edge bias of Graphormer. Source: Ying et al., arXiv:2106.05234:

    A_ij = (h_i W_Q)(h_j W_K)^T / sqrt(d) + b_phi(v_i, v_j) + c_ij        (6), (7)
    c_ij = 1/N sum_{n=1..N} x_{e_n} (w^E_n)^T                             (7)

N is the length of the path, at most that of the learned vectors, and 1 from a node to itself (the authors' code).
"""

from typing import Any

from mpmath import mpf

from .lists import at, build, shape


def graph_bias(distances: Any, table: Any, edges: Any, weights: Any) -> Any:
    """Return the bias, shape (*B, H, Q, K)."""
    (count, heads), (length, features, _) = shape(table), shape(weights)
    *d_batch, rows, columns = shape(distances)

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        d = at(distances, (*batch, i, j))
        b = table[0 if d < 0 else min(d, count - 2) + 1][h]
        c = sum((at(edges, (*batch, i, j, n, x)) * weights[n][x][h] for n in range(length) for x in range(features)), mpf(0))
        return b + c / min(max(d, 1), length)

    return build((*d_batch, heads, rows, columns), element)
