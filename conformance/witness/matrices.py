"""Matrices of mpmath: skew-symmetric ones from a triangle, and the exponential by eigenvectors."""

from collections.abc import Callable
from typing import Any

from mpmath import matrix, mp


def skew(n: int, above: Callable[[int, int], Any]) -> Any:
    """Return the skew-symmetric matrix of size n with ``above(i, j)`` at (i, j), i < j."""
    out = matrix(n, n)
    for i in range(n):
        for j in range(i + 1, n):
            out[i, j] = +above(i, j)
            out[j, i] = -above(i, j)
    return out


def exponential(a: Any) -> Any:
    """
    Return the exponential of a skew-symmetric matrix as nested lists.

    i a is Hermitian: i a = Q diag(e) Q^H with orthonormal columns of Q, so that exp(a) = Q diag(exp(-i e)) Q^H.
    """
    n = a.rows
    values, vectors = mp.eighe(a * mp.mpc(0, 1))
    phases = [mp.expj(-e) for e in values]

    def entry(i: int, j: int) -> Any:
        return mp.re(mp.fsum(vectors[i, k] * phases[k] * mp.conj(vectors[j, k]) for k in range(n)))

    return [[entry(i, j) for j in range(n)] for i in range(n)]
