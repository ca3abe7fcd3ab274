"""
Hierarchical decomposition of absolute positions. Source: Su Jianlin, kexue.fm/archives/7947.

q_{(i-1) n + j} = alpha u_i + (1 - alpha) u_j with i, j = 1 .. n, and q_k = p_k for k <= n, so that
u_i = (p_i - alpha p_1) / (1 - alpha). Counted from 0: i is position // n, j is position % n (bert4keras, layers.py).
"""

from typing import Any

from mpmath import mpf

from .lists import at, build, shape


def hierarchical_learned(positions: Any, table: Any, *, alpha: Any = 0.4) -> Any:
    """Return q at every position, shape (*P, d)."""
    alpha, (n, width) = mpf(alpha), shape(table)

    def u(row: int, lane: int) -> Any:
        return (table[row][lane] - alpha * table[0][lane]) / (1 - alpha)

    def element(*index: int) -> Any:
        *where, lane = index
        i, j = divmod(at(positions, where), n)
        return alpha * u(i, lane) + (1 - alpha) * u(j, lane)

    return build((*shape(positions), width), element)
