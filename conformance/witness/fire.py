"""
FIRE. Source: Li et al., arXiv:2310.04418, section 4:

    b_FIRE(i, j) = f_theta( psi(i - j) / psi(max{L, i}) ),   psi: x -> log(c x + 1)

f_theta is an MLP with one hidden layer and ReLU. The code of the appendix adds eps to the denominator.
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape


def fire(
    q_positions: Any, k_positions: Any, w1: Any, b1: Any, w2: Any, b2: Any, c: Any, threshold: Any, *, eps: float = 1e-6
) -> Any:
    """Return the bias, shape (*B, H, Q, K)."""
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def psi(x: Any) -> Any:
        return mp.log(c[0] * x + 1)

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        query, key = mp.mpf(at(q_positions, (*batch, i))), mp.mpf(at(k_positions, (*batch, j)))
        normalized = psi(abs(query - key)) / (psi(max(threshold[0], query)) + mp.mpf(eps))
        total = b2[h]
        for weight, bias, out in zip(w1, b1, w2[h], strict=True):
            hidden = weight * normalized + bias
            total += out * hidden if hidden > 0 else 0
        return total

    return build((*broadcast(q_batch, k_batch), len(b2), rows, columns), element)
