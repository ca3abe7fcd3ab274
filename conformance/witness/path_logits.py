"""
The logits of PaTH attention. Source: Yang et al., arXiv:2505.16381, section 2:

    A_ij proportional to exp(k_j^T (prod_{s=j+1}^i H_s) q_i),   H_t = I - beta_t w_t w_t^T

as keys that each later token transforms: k <- k - beta_t (k . w_t) w_t. Keys after the query have 0 here.
"""

from typing import Any

from mpmath import mp, mpf

from .attention_logits import repeat_heads
from .lists import at, broadcast, build, shape


def path_logits(q: Any, k: Any, w: Any, betas: Any, *, scale: Any = None) -> Any:
    """Return the logits, shape (..., Q, K); the queries are the last tokens."""
    (*q_lead, rows, width), (*k_lead, columns, _) = shape(q), shape(k)
    strengths = build((*k_lead, columns, 1), lambda *index: at(betas, index[:-1]))
    k, w, strengths = (repeat_heads(x, q) for x in (k, w, strengths))
    factor = 1 / mp.sqrt(width) if scale is None else mpf(scale)

    def element(*index: int) -> Any:
        *lead, m, j = index
        i = columns - rows + m
        if j > i:
            return mpf(0)
        key = [at(k, (*lead, j, c)) for c in range(width)]
        for t in range(j + 1, i + 1):
            direction = [at(w, (*lead, t, c)) for c in range(width)]
            part = at(strengths, (*lead, t, 0)) * mp.fdot(key, direction)
            key = [x - part * y for x, y in zip(key, direction, strict=True)]
        return factor * mp.fdot((at(q, (*lead, m, c)), x) for c, x in enumerate(key))

    return build(broadcast((*q_lead, rows, columns), (*shape(k)[:-2], rows, columns)), element)
