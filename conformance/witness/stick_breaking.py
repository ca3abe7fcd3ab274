"""
Stick-breaking attention. Source: Tan et al., arXiv:2410.17980, section 2:

    A_{i,j} = beta_{i,j} prod_{i<k<j} (1 - beta_{k,j}),   beta_{i,j} = sigmoid(z_{i,j})

where, in the paper, j is the query and i < j the key.
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def stick_breaking(logits: Any, mask: Any) -> Any:
    """Return the weights, shape (..., Q, K), and the remainder, shape (..., Q)."""
    *lead, queries, keys = shape(logits)

    def beta(*index: int) -> Any:
        return 1 / (1 + mp.exp(-at(logits, index))) if at(mask, index) else mp.mpf(0)

    def weight(*index: int) -> Any:
        *row, j = index
        left = mp.mpf(1)
        for later in range(j + 1, keys):
            left *= 1 - beta(*row, later)
        return beta(*index) * left

    def remainder(*row: int) -> Any:
        return 1 - mp.fsum(weight(*row, j) for j in range(keys))

    return build((*lead, queries, keys), weight), build((*lead, queries), remainder)
