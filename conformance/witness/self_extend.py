"""
The scores of Self-Extend: products of queries and keys turned by the map of self_extend_distances, element by element.

The authors' code (datamllab/LongLM, self_extend_patch) chooses between two matrices of scores, of queries at m and keys at n,
and of queries at m // G + W - W // G and keys at n // G (or W / G): turned against each other by the differences.
"""

from typing import Any

from .self_extend_distances import bilevel
from .turned_products import turned_products


def self_extend(
    q: Any, k: Any, q_positions: Any, k_positions: Any, *, group: int, window: int, shift: str, **rotation: Any
) -> Any:
    """Return q . R_f(m, n) k, unscaled, shape (..., Q, K)."""
    return turned_products(lambda m, n: bilevel(m, n, group, window, shift), q, k, q_positions, k_positions, **rotation)
