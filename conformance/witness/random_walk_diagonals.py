"""
Random-walk encoding. Source: Dwivedi et al., arXiv:2110.07875, section 3.2:

    p_i = [RW_ii, RW_ii^2, ..., RW_ii^k],   RW = A D^-1

whose diagonals are those of D^-1 A, with D the sums of the rows of A.
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def random_walk_diagonals(adjacency: Any, *, steps: int) -> Any:
    """Return the diagonals, shape (*B, N, steps)."""
    *lead, nodes, _ = shape(adjacency) if len(shape(adjacency)) > 1 else (0, 0)

    def returns(*index: int) -> list[Any]:
        """Follow the walk from one node, step by step, and note what returns."""
        *batch, start = index
        probabilities, back = {start: mp.mpf(1)}, []
        for _ in range(steps):
            after: dict[int, Any] = {}
            for node, probability in probabilities.items():
                edges = [at(adjacency, (*batch, node, other)) for other in range(nodes)]
                degree = mp.fsum(edges)
                for other, weight in enumerate(edges):
                    if weight:
                        after[other] = after.get(other, mp.mpf(0)) + probability * weight / degree
            probabilities = after
            back.append(probabilities.get(start, mp.mpf(0)))
        return back

    return build((*lead, nodes), returns)
