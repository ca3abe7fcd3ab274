"""As nano-vllm computes it (commit 2d9b51b): nanovllm/layers/attention.py, lines 31-51, its programs one after the other."""

import torch

backend = "torch"
dtypes = ("float64", "float32", "bfloat16", "float16")


def write_cache(cache, rows, slots, /, *, padded=False):
    k_cache = torch.clone(cache).reshape(-1)
    d = cache.shape[2] * cache.shape[3]
    key = rows.reshape(-1)
    for idx, slot in enumerate(slots.tolist()):
        if slot == -1:
            continue
        offsets = slot * d + torch.arange(0, d)
        k_cache[offsets] = key[idx * d + torch.arange(0, d)]
    return k_cache.reshape(cache.shape)
