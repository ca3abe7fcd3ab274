"""
The relative positions of StreamingLLM. Source: Xiao et al., arXiv:2309.17453, section 3.2: positions within the cache, not in
the text. The authors' code (mit-han-lab/streaming-llm): kv_cache.py keeps the first start_size keys and the last recent_size,
modify_llama.py numbers the keys of the cache from 0 and gives the query the number after the last. Every key that was evicted
therefore brings the sinks one nearer, and leaves the distances behind it alone.
"""

from typing import Any

from .turned_products import relative


def in_cache(m: int, n: int, num_sinks: int, window: int, counting: str) -> int:
    """Return the relative position of query position `m` and key position `n`: less what was evicted between."""
    kept = {"with_query": num_sinks + window - 1, "without_query": num_sinks + window}[counting]
    evicted = m - kept if m > kept else 0
    return m - n - evicted if n < num_sinks else m - n


def streaming_llm_distances(q_positions: Any, k_positions: Any, *, num_sinks: int, window: int, counting: str) -> Any:
    """Return f(m, n) of every query and key."""
    return relative(lambda m, n: in_cache(m, n, num_sinks, window, counting), q_positions, k_positions)
