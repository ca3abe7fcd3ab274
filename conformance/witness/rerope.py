"""
The scores of ReRoPE: products of queries and keys turned by the map of rerope_distances, element by element.

The authors' code (bojone/rerope, rerope_patch.py) chooses between two matrices of scores, of queries at m and keys at n, and of
queries at w and keys at 0: turned against each other by m - n and by w.
"""

from typing import Any

from .rerope_distances import rerope_distances
from .turned_products import turned_products


def rerope(q: Any, k: Any, q_positions: Any, k_positions: Any, *, window: int, **rotation: Any) -> Any:
    """Return q . R_f(m, n) k, unscaled, shape (..., Q, K)."""
    relative = rerope_distances(q_positions, k_positions, window=window)
    return turned_products(q, k, relative, **rotation)
