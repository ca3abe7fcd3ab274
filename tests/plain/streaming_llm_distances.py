"""As StreamingLLM's authors have them (mit-han-lab/streaming-llm, commit 2e50426): streaming_llm/pos_shift/modify_llama.py,
lines 89-104, in the cache of streaming_llm/kv_cache.py, lines 40-58 and 66-85: a query and its keys have their places there."""

import torch

backend = "torch"


def streaming_llm_distances(q_positions, k_positions, /, *, num_sinks, window, counting):
    cache = num_sinks + window - (1 if counting == "with_query" else 0)
    query, key = q_positions[..., :, None], k_positions[..., None, :]
    evicted = query - query.clamp(max=cache)
    return (query - evicted) - torch.where(key < num_sinks, key, key - evicted)
