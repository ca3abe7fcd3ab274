"""
Forgetting gates by rows. Source: GRAPE-AP's code, and PerRowDataDependentAlibi of x-transformers:

    b_ij = sum_{l=j+1..i} log f_il     and     b_ij = sum_{l=j..i-1} log f_il
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def row_forgetting_bias(log_gates: Any, *, counted: str) -> Any:
    """Return the bias, shape (*B, H, Q, K); the queries are the last tokens."""
    *lead, queries, keys = shape(log_gates)
    shift = {"query": 1, "key": 0}[counted]

    def element(*index: int) -> Any:
        *row, q, j = index
        i = keys - queries + q
        return mp.fsum(at(log_gates, (*row, q, token)) for token in range(j + shift, i + shift))

    return build((*lead, queries, keys), element)
