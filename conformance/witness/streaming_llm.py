"""
The scores of StreamingLLM: products of queries and keys turned by the map of streaming_llm_distances, element by element.

The authors' code (mit-han-lab/streaming-llm, modify_llama.py) turns the keys of the cache by their places in it, and the query
by the place after them.
"""

from typing import Any

from .streaming_llm_distances import streaming_llm_distances
from .turned_products import turned_products


def streaming_llm(
    q: Any, k: Any, q_positions: Any, k_positions: Any, *, num_sinks: int, window: int, counting: str, **rotation: Any
) -> Any:
    """Return q . R_f(m, n) k, unscaled, shape (..., Q, K)."""
    relative = streaming_llm_distances(q_positions, k_positions, num_sinks=num_sinks, window=window, counting=counting)
    return turned_products(q, k, relative, **rotation)
