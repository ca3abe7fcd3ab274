"""
TGN's time encoder. Source: Rossi et al., arXiv:2006.10637 (after TGAT, arXiv:2002.07962), and Time2Vec, arXiv:1907.05321:

    phi(t) = cos(t w + b)          t2v(t)[i] = sin(omega_i t + phi_i)
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def affine_waves(x: Any, weight: Any, bias: Any, *, wave: str) -> Any:
    """Return the waves, shape (*P, m)."""

    def element(*index: int) -> Any:
        *place, n = index
        angle = at(x, place) * weight[n] + bias[n]
        return mp.cos(angle) if wave == "cos" else mp.sin(angle)

    return build((*shape(x), len(weight)), element)
