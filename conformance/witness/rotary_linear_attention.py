"""
RoPE with linear attention. Source: Su et al., RoFormer, arXiv:2104.09864, section 3.3, equation (19):

    Attention(Q, K, V)_m = sum_n (R_m phi(q_m))^T (R_n varphi(k_n)) v_n / sum_n phi(q_m)^T varphi(k_n)

with phi(x) = varphi(x) = elu(x) + 1 (Katharopoulos et al., arXiv:2006.16236, equation (7)): x + 1 above 0, else exp(x). A
causal sum has the keys at the query's position and before.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape
from .rope import rope


def rotary_linear_attention(
    q: Any, k: Any, v: Any, q_positions: Any, k_positions: Any, *, layout: str, base: Any, causal: bool
) -> Any:
    """Return the quotient of the two sums, shape (..., Q, E); 0 for a query that sees no key."""
    (*lead, rows, width), (*_, columns, out) = shape(q), shape(v)
    phi_q, phi_k = (build(shape(x), lambda *index, x=x: phi(at(x, index))) for x in (q, k))
    turned_q = rope(phi_q, q_positions, layout=layout, base=base)
    turned_k = rope(phi_k, k_positions, layout=layout, base=base)

    def vector(*index: int) -> list[Any]:
        batch = index[:-1]
        here = at(q_positions, index)
        seen = [n for n in range(columns) if not causal or at(k_positions, (*batch, n)) <= here]
        below = mp.fsum(at(phi_q, (*index, z)) * at(phi_k, (*batch, n, z)) for n in seen for z in range(width))
        if not seen:
            return [mpf(0)] * out
        return [
            mp.fsum(
                at(turned_q, (*index, z)) * at(turned_k, (*batch, n, z)) * at(v, (*batch, n, e))
                for n in seen
                for z in range(width)
            )
            / below
            for e in range(out)
        ]

    return build((*lead, rows), vector)


def phi(x: Any) -> Any:
    """Return elu(x) + 1."""
    return x + 1 if x > 0 else mp.exp(x)
