"""
TUPE. Source: Ke et al., arXiv:2006.15595, equations (7) to (10), and the authors' code:

    alpha_ij = ... + (1 / sqrt(2 d)) (p_i U^Q) (p_j U^K)^T
    reset_theta(v, i, j) = theta_1 if i is [CLS], theta_2 if j is [CLS] and i is not, else v_ij

where theta_1 is the product of row 0 of the table with itself, theta_2 that of row 1, and tokens begin at row 1.
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def tupe_bias(p_q: Any, p_k: Any, *, cls: bool) -> Any:
    """Return the bias, shape (*R, T, T), for tables of T + 1 rows."""
    *lead, count, width = shape(p_q)

    def theta(head: Any, m: int, n: int) -> Any:
        return mp.fsum(at(p_q, (*head, m, c)) * at(p_k, (*head, n, c)) for c in range(width)) / mp.sqrt(2 * width)

    def element(*index: int) -> Any:
        *head, i, j = index
        if cls and i == 0:
            return theta(head, 0, 0)
        if cls and j == 0:
            return theta(head, 1, 1)
        return theta(head, i + 1, j + 1)

    return build((*lead, count - 1, count - 1), element)
