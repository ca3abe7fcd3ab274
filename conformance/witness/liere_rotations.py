"""
Rotations of LieRE. Source: Ostmeier et al., arXiv:2406.10322, and the authors' code, which their README sums up:

    upper_triangle = torch.triu(generator_raw_params, diagonal=1)
    skew_bases = upper_triangle - torch.transpose(upper_triangle, -1, -2)
    rotation = torch.matrix_exp(sum over axes of positions times skew_bases)
"""

from typing import Any

from mpmath import mpf

from .lists import at, broadcast, build, shape
from .matrices import exponential, skew


def liere_rotations(positions: Any, generators: Any) -> Any:
    """Return a matrix for each of positions (axes, *P) and generators (axes, *F, blocks, n, n)."""
    *head, blocks, n, _ = shape(generators[0])
    rows = broadcast(shape(positions[0]), head)

    def rotation(*index: int) -> Any:
        def exponent(i: int, j: int) -> Any:
            total = mpf(0)
            for place, learned in zip(positions, generators, strict=True):
                total += at(place, index[:-1]) * at(learned, (*index, i, j))
            return total

        return exponential(skew(n, exponent))

    return build((*rows, blocks), rotation)
