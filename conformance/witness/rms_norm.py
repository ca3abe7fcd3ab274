"""
RMS normalization. Source: Zhang and Sennrich, arXiv:1910.07467, equation (4):

    a_bar_i = a_i / RMS(a) g_i,    RMS(a) = sqrt(1/n sum_i a_i^2)

The authors' code and transformers add eps to the mean, under the root. Gemma's weights are g - 1.
"""

from typing import Any

from mpmath import mpf, sqrt

from .lists import at, build, shape


def rms_norm(x: Any, weight: Any, *, eps: float, weight_offset: int) -> Any:
    """Return a / RMS(a) g for every row a of `x` (..., n), with g = weight + offset."""
    *lead, n = shape(x)

    def row(*where: int) -> list[Any]:
        a = [at(x, (*where, i)) for i in range(n)]
        squares = mpf(0)
        for number in a:
            squares += number**2
        rms = sqrt(squares / n + mpf(eps))
        return [a[i] / rms * (weight[i] + weight_offset) for i in range(n)]

    return build(lead, row)
