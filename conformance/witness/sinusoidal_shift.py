"""
The map between sinusoidal positions. Source: Vaswani et al., arXiv:1706.03762, section 3.5:

    "for any fixed offset k, PE_{pos+k} can be represented as a linear function of PE_pos"

by sin(a + b) = sin a cos b + cos a sin b and cos(a + b) = cos a cos b - sin a sin b. The sines and cosines of b are those of
PE_k, found where the layout has them.
"""

from typing import Any

from mpmath import mpf

from .lists import at, build, shape
from .sinusoidal import sinusoidal


def sinusoidal_shift(offsets: Any, dim: int, *, layout: str, base: Any = 10000.0, endpoint: bool = False) -> Any:
    """Return M of shape (*offsets.shape, dim, dim) with ``M PE(p) = PE(p + k)``."""
    half = dim // 2
    sines = [2 * i if layout == "interleaved" else i + half * (layout == "cos_sin") for i in range(half)]
    cosines = [2 * i + 1 if layout == "interleaved" else i + half * (layout == "sin_cos") for i in range(half)]
    rows = sinusoidal(offsets, dim, layout=layout, base=base, endpoint=endpoint)

    def matrix(*where: int) -> list[list[Any]]:
        m = [[mpf(0)] * dim for _ in range(dim)]
        for s, c in zip(sines, cosines, strict=True):
            sin_b, cos_b = at(rows, (*where, s)), at(rows, (*where, c))
            m[s][s], m[s][c] = cos_b, sin_b
            m[c][c], m[c][s] = cos_b, -sin_b
        return m

    return build(shape(offsets), matrix)
