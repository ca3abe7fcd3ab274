"""
The relative positions of Self-Extend. Source: Jin et al., arXiv:2401.01325, section 3, and the authors' code, datamllab/LongLM,
self_extend_patch, group_query_position and group_key_position:

    beyond the window, query floor(m/G) + W - W/G, key floor(n/G)

with floor(W/G) in Llama_4_40.py and in the decoding paths. The window is what a causal mask leaves of the last W keys.
"""

from typing import Any

from mpmath import mpf

from .turned_products import relative


def bilevel(m: int, n: int, group: int, window: int, rounding: str) -> Any:
    """Return the relative position of query position `m` and key position `n`."""
    if n <= m < n + window:
        return mpf(m - n)
    taken = {"floor": mpf(window // group), "exact": mpf(window) / group}[rounding]
    return m // group + window - taken - n // group


def self_extend_distances(q_positions: Any, k_positions: Any, *, group: int, window: int, rounding: str) -> Any:
    """Return f(m, n) of every query and key."""
    return relative(lambda m, n: bilevel(m, n, group, window, rounding), q_positions, k_positions)
