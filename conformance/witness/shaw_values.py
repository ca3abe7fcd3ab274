"""
Relative positions in the values. Source: Shaw et al., arXiv:1803.02155, section 3, equation (3):

    z_i = sum_j alpha_ij (x_j W^V + a^V_ij),  a^V_ij = w^V_clip(j - i, k)

VITS has a = 0 outside of the window.
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape
from .shaw_scores import vector


def shaw_values(
    weights: Any, v: Any, value_table: Any, q_positions: Any, k_positions: Any, *, left: int, right: int, order: str,
    outside: str = "clip",
) -> Any:  # fmt: skip
    """Return the sum over keys of weights * (v + a), shape (..., Q, D)."""
    (*w_lead, rows, columns), (*v_lead, _, width) = shape(weights), shape(v)

    def element(*index: int) -> Any:
        *lead, m, z = index

        def term(n: int) -> Any:
            places = at(q_positions, (*lead, m)), at(k_positions, (*lead, n))
            a = vector(value_table, *places, left, right, order, outside)
            return at(weights, (*lead, m, n)) * (at(v, (*lead, n, z)) + a[z])

        return mp.fsum(term(n) for n in range(columns))

    return build((*broadcast(w_lead, v_lead), rows, width), element)
