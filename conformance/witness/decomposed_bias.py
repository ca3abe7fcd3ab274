"""
Decomposed relative positions. Source: Li et al., MViTv2, arXiv:2112.01526, equations (4) and (5), without the axis of time:

    Attn = Softmax((Q K^T + E^(rel)) / sqrt(d)) V,  E_ij^(rel) = Q_i . R_p(i),p(j),  R_p(i),p(j) = R^h_h(i),h(j) + R^w_w(i),w(j)

The authors' code adds E after the division by sqrt(d).
"""

from typing import Any

from mpmath import mp

from .decomposed_rows import row
from .lists import at, build, shape


def decomposed_bias(q: Any, table_h: Any, table_w: Any, *, k_rows: int, k_columns: int) -> Any:
    """Return Q.(R^h + R^w), shape (..., I, J, V, U)."""
    *lead, rows, columns, lanes = shape(q)

    def element(*index: int) -> Any:
        *batch, y, x, v, u = index
        of_row, of_column = table_h[row(y, v, rows, k_rows)], table_w[row(x, u, columns, k_columns)]
        return mp.fsum(at(q, (*batch, y, x, c)) * (of_row[c] + of_column[c]) for c in range(lanes))

    return build((*lead, rows, columns, k_rows, k_columns), element)
