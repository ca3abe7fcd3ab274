"""
Disentangled attention. Source: He et al., arXiv:2006.03654, equation (4):

    A~_ij = Q^c_i K^c_j^T (a) + Q^c_i K^r_delta(i,j)^T (b) + K^c_j Q^r_delta(j,i)^T (c)

without its scale. In the authors' code (c) has delta(i, j): commit c558ad9, DeBERTa/deberta/disentangled_attention.py, p2c_pos.
"""

from typing import Any

from mpmath import mp, mpf

from .deberta_rows import row
from .lists import at, broadcast, build, shape


def deberta_scores(
    q: Any, k: Any, q_positions: Any, k_positions: Any, *, num_buckets: int | None, max_distance: int, p2c: str,
    rel_k: Any = None, rel_q: Any = None,
) -> Any:  # fmt: skip
    """Return (a) + (b) + (c), shape (..., H, Q, K); a term without its table is left out."""
    (*lead, heads, rows, lanes), columns = shape(q), shape(k)[-2]

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        query, key = ([at(x, (*batch, h, n, z)) for z in range(lanes)] for x, n in ((q, i), (k, j)))
        apart = at(q_positions, (*batch, h, i)) - at(k_positions, (*batch, h, j))
        a = mp.fdot(query, key)
        b = mpf(0) if rel_k is None else mp.fdot(query, rel_k[h][row(apart, num_buckets, max_distance)])
        other = {"code": apart, "paper": -apart}[p2c]
        c = mpf(0) if rel_q is None else mp.fdot(key, rel_q[h][row(other, num_buckets, max_distance)])
        return mp.fsum((a, b, c))

    return build((*broadcast(lead, shape(k)[:-3]), heads, rows, columns), element)
