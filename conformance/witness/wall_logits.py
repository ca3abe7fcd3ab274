"""
The logits of Wall attention. Source: Tilde Research, as naive_wall_attn of fla-core 0.6.0 states them:

    s_ij = sum_n q_in k_jn exp(P_in - P_jn) * scale,   P the prefix cumsum of g

so that the exponent is the sum of g over the tokens j + 1, ..., i. Keys after the query, which it masks, have 0 here.
"""

from typing import Any

from mpmath import mp, mpf

from .attention_logits import repeat_heads
from .lists import at, broadcast, build, shape


def wall_logits(q: Any, k: Any, log_decay: Any, *, scale: Any = None) -> Any:
    """Return the logits, shape (..., Q, K); the queries are the last tokens."""
    k = repeat_heads(k, q)
    (*q_lead, rows, width), (*k_lead, columns, _) = shape(q), shape(k)
    factor = 1 / mp.sqrt(width) if scale is None else mpf(scale)

    def element(*index: int) -> Any:
        *lead, m, j = index
        i = columns - rows + m
        if j > i:
            return mpf(0)

        def decay(c: int) -> Any:
            return mp.exp(mp.fsum(at(log_decay, (*lead, token, c)) for token in range(j + 1, i + 1)))

        return factor * mp.fsum(at(q, (*lead, m, c)) * at(k, (*lead, j, c)) * decay(c) for c in range(width))

    return build(broadcast((*q_lead, rows, columns), (*k_lead, rows, columns)), element)
