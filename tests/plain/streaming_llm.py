"""As StreamingLLM's authors compute the scores (mit-han-lab/streaming-llm, commit 2e50426):
streaming_llm/pos_shift/modify_llama.py, lines 21-28 and 89-112, in the cache of streaming_llm/kv_cache.py, lines 40-58 and
66-85: for every query the keys are rotated anew, by their places there."""

import torch

backend = "torch"


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotated(x, position, base):
    inv_freq = 1.0 / (base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    freqs = position[..., None].float() * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()


def streaming_llm(q, k, q_positions, k_positions, /, *, num_sinks, window, counting, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    cache = num_sinks + window - (1 if counting == "with_query" else 0)
    places = q_positions.clamp(max=cache)
    evicted = (q_positions - places)[..., :, None]
    key = k_positions[..., None, :]
    keys = rotated(k[..., None, :, :], torch.where(key < num_sinks, key, key - evicted), base)
    if q.ndim > 2:
        keys = keys.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-4)
    queries = rotated(q, places, base)
    return torch.matmul(queries[..., :, None, :], keys.transpose(-2, -1))[..., 0, :]
