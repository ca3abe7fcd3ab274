"""
Cayley-STRING. Source: STRING, arXiv:2502.02562, equation (9), R(r) = P RoPE(r) P^T, and below it: since the first P cancels,
"it is sufficient to take R(r) = RoPE(r) P". RoPE of a vector multiplies that of every coordinate, equation (5), on the pairs
2n-1 and 2n, equation (2).
"""

from typing import Any

from mpmath import mp

from .apply_rope import apply_rope
from .cayley import cayley
from .lists import at, build, shape
from .mixed_table import mixed_table


def cayley_string(x: Any, positions: Any, skew: Any, frequencies: Any, *, form: str) -> Any:
    """Return `x` (..., d) times P^T, RoPE and P, or times P and RoPE."""
    p = cayley(skew)
    cos, sin = mixed_table(positions, frequencies)

    def product(vectors: Any, transposed: bool) -> Any:
        *lead, d = shape(vectors)

        def entry(*index: int) -> Any:
            *where, i = index
            places = [(j, i) if transposed else (i, j) for j in range(d)]
            return mp.fsum(at(p, (*where, *place)) * at(vectors, (*where, j)) for j, place in enumerate(places))

        return build((*lead, d), entry)

    turned = apply_rope(product(x, form == "conjugate"), cos, sin, layout="interleaved")
    return product(turned, False) if form == "conjugate" else turned
