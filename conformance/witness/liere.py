"""
LieRE on queries or keys. Source: Ostmeier et al., arXiv:2406.10322; apply_transforms of the authors' code:

    rotated_states = torch.matmul(positional_transforms, states_split)

where states_split holds blocks of lanes as columns, and the lanes that are left over are appended unchanged.
"""

from typing import Any

from mpmath import mpf

from .liere_rotations import liere_rotations
from .lists import at, build, shape


def liere(x: Any, positions: Any, generators: Any, *, inverse: bool = False) -> Any:
    """Return `x` (..., d) with each block of n lanes multiplied by its matrix, or by the transpose."""
    matrices = liere_rotations(positions, generators)
    *lead, d = shape(x)
    blocks, n = shape(generators[0])[-3:-1]

    def vector(*where: int) -> list[Any]:
        out = [at(x, (*where, lane)) for lane in range(d)]
        for b in range(blocks):
            for i in range(n):
                total = mpf(0)
                for j in range(n):
                    place = (j, i) if inverse else (i, j)
                    total += at(matrices, (*where, b, *place)) * at(x, (*where, b * n + j))
                out[b * n + i] = total
        return out

    return build(lead, vector)
