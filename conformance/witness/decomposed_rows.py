"""
Rows of decomposed tables. Source: facebookresearch/mvit, commit 1978663, mvit/models/attention.py, cal_rel_pos_spatial:

    q_h_ratio = max(k_h / q_h, 1.0),  k_h_ratio = max(q_h / k_h, 1.0)
    dist_h = arange(q_h)[:, None] * q_h_ratio - arange(k_h)[None, :] * k_h_ratio,  dist_h += (k_h - 1) * k_h_ratio

of which the integer part is taken. Here in fractions.
"""

from fractions import Fraction
from typing import Any

from .lists import at, broadcast, build, shape


def row(i: int, j: int, q_size: int, k_size: int) -> int:
    """Return the row for query cell `i` and key cell `j`."""
    q_ratio, k_ratio = max(Fraction(k_size, q_size), Fraction(1)), max(Fraction(q_size, k_size), Fraction(1))
    return int(i * q_ratio - j * k_ratio + (k_size - 1) * k_ratio)


def decomposed_rows(q_positions: Any, k_positions: Any, *, q_size: int, k_size: int) -> Any:
    """Return the rows, integers of shape (..., Q, K)."""
    (*q_lead, rows), (*k_lead, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> int:
        *lead, m, n = index
        return row(at(q_positions, (*lead, m)), at(k_positions, (*lead, n)), q_size, k_size)

    return build((*broadcast(q_lead, k_lead), rows, columns), element)
