"""
Circulant-STRING. Source: STRING, arXiv:2502.02562, equation (11), whose rows are (c_0, c_{d-1}, ..., c_1), (c_1, c_0, c_{d-1},
...) and so on; L_k = C_k - C_k^T; z -> exp(sum_k L_k [r]_k) z. Not by way of the Fourier transform.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, broadcast, build, shape
from .matrices import exponential, skew


def circulant_string(x: Any, positions: Any, coefficients: Any, *, inverse: bool = False) -> Any:
    """Return `x` (..., d) with each block of n lanes multiplied by its exponential, or by the transpose."""
    *lead, d = shape(x)
    *head, blocks, n = shape(coefficients[0])

    def rotation(*index: int) -> Any:
        def exponent(i: int, j: int) -> Any:
            total = mpf(0)
            for place, c in zip(positions, coefficients, strict=True):
                total += at(place, index[:-1]) * (at(c, (*index, (i - j) % n)) - at(c, (*index, (j - i) % n)))
            return total

        return exponential(skew(n, exponent))

    matrices = build((*broadcast(shape(positions[0]), head), blocks), rotation)

    def entry(*index: int) -> Any:
        *where, lane = index
        b, i = divmod(lane, n)
        if b >= blocks:
            return at(x, index)
        places = [(j, i) if inverse else (i, j) for j in range(n)]
        return mp.fsum(at(matrices, (*where, b, *place)) * at(x, (*where, b * n + j)) for j, place in enumerate(places))

    return build((*lead, d), entry)
