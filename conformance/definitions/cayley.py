"""
The Cayley transform. Source: STRING, arXiv:2502.02562, equation (10):

    P_Cayley := (I_d - S)(I_d + S)^-1

Its transpose solves (I + S)^T P^T = (I - S)^T, that is (I - S) P^T = I + S.
"""

from typing import Any

from mpmath import eye, mp

from .lists import at, build, shape
from .matrices import skew as skew_symmetric


def cayley(skew: Any) -> Any:
    """Return P for the strict upper triangle of every matrix of (..., n, n)."""
    *lead, n, _ = shape(skew)

    def transform(*where: int) -> list[Any]:
        s = skew_symmetric(n, lambda i, j: at(skew, (*where, i, j)))
        rows = [mp.lu_solve(eye(n) - s, (eye(n) + s)[:, i]) for i in range(n)]  # row i of P
        return [[rows[i][j] for j in range(n)] for i in range(n)]

    return build(lead, transform)
