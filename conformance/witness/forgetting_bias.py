"""
Forgetting attention. Source: Lin et al., arXiv:2503.02130, section 3:

    o_i = sum_{j<=i} exp(q_i^T k_j + d_ij) v_j / ...,   d_ij = sum_{l=j+1}^i log f_l

and for keys after the query, minus the same sum with i and j exchanged, as d = c_i - c_j gives it.
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def forgetting_bias(log_gates: Any, *, queries: int) -> Any:
    """Return the bias, shape (*B, H, queries, K); the queries are the last tokens."""
    *lead, keys = shape(log_gates)

    def element(*index: int) -> Any:
        *row, q, j = index
        i = keys - queries + q
        between = mp.fsum(at(log_gates, (*row, token)) for token in range(min(i, j) + 1, max(i, j) + 1))
        return between if j <= i else -between

    return build((*lead, queries, keys), element)
