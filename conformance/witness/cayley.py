"""
The Cayley transform. Source: STRING, arXiv:2502.02562, equation (10):

    P_Cayley := (I_d - S)(I_d + S)^-1
"""

from typing import Any

from mpmath import eye, mp

from .lists import at, build, shape
from .matrices import skew as skew_symmetric


def cayley(skew: Any) -> Any:
    """Return P for the strict upper triangle of every matrix of (..., n, n)."""
    *lead, n, _ = shape(skew)

    def transform(*where: int) -> Any:
        s = skew_symmetric(n, lambda i, j: at(skew, (*where, i, j)))
        return ((eye(n) - s) * mp.inverse(eye(n) + s)).tolist()

    return build(lead, transform)
