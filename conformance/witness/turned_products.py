"""
Products of queries and keys under a map of relative positions. Source: RoFormer, arXiv:2104.09864, equation (16):

    q_m^T k_n = x_m^T W_q R_(n-m) W_k x_n

with another f(m, n) in place of m - n: of one pair, (q1 k1 + q2 k2) cos(f theta) + (q1 k2 - q2 k1) sin(f theta). The factor of
a scaling is on queries and on keys.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from mpmath import mp, mpf

from .apply_rope import pair
from .attention_logits import repeat_heads
from .lists import at, broadcast, build, shape
from .rope_frequencies import rope_frequencies


def relative(f: Callable[[int, int], Any], q_positions: Any, k_positions: Any) -> Any:
    """Return f(m, n) of every query and key, shape (..., Q, K)."""
    (*q_lead, rows), (*k_lead, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> Any:
        *lead, i, j = index
        return f(at(q_positions, (*lead, i)), at(k_positions, (*lead, j)))

    return build((*broadcast(q_lead, k_lead), rows, columns), element)


def turned_products(
    q: Any, k: Any, f: Any, *, layout: str, base: Any, rotary_dim: int | None = None, scaling: Any = None,
    length: int | None = None,
) -> Any:  # fmt: skip
    """Return q.k with every pair of lanes turned by f(m, n), which is given for every query and key, shape (..., Q, K)."""
    k = repeat_heads(k, q)
    (*q_lead, rows, width), (*k_lead, columns, _) = shape(q), shape(k)
    r = width if rotary_dim is None else rotary_dim
    inv_freq, factor = rope_frequencies(r, base=base, scaling=scaling, length=length)
    pairs = [pair(layout, i, r)[0] for i in range(r // 2)]

    @cache
    def turn(apart: Any) -> list[tuple[Any, Any]]:
        return [mp.cos_sin(apart * theta) for theta in inv_freq]

    def element(*index: int) -> Any:
        *lead, i, j = index
        x, y = ([at(a, (*lead, row, z)) for z in range(width)] for a, row in ((q, i), (k, j)))
        turned = [
            (x[a] * y[a] + x[b] * y[b]) * cos + (x[a] * y[b] - x[b] * y[a]) * sin
            for (a, b), (cos, sin) in zip(pairs, turn(at(f, index)), strict=True)
        ]
        return mp.fsum(turned) * mpf(factor) ** 2 + mp.fsum(x[z] * y[z] for z in range(r, width))

    return build((*broadcast(q_lead, k_lead), rows, columns), element)
