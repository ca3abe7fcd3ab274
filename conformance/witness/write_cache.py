"""
Writing into a paged cache. Source: vllm-project/vllm@002a0ba, csrc/cache_kernels.cu, reshape_and_cache_flash_kernel:

    if (slot_idx < 0) return;
    block_idx = slot_idx / block_size;  block_offset = slot_idx % block_size;
    key_cache[block_idx, block_offset, head_idx, head_offset] = key[token_idx, head_idx, head_offset]
"""

from typing import Any

from .lists import build, shape


def write_cache(cache: Any, rows: Any, slots: Any, padded: bool = False) -> Any:
    """Return the cache (blocks, block_size, heads, d) after every row (tokens, heads, d) was stored, one after the other."""
    blocks, block_size, heads, d = shape(cache)
    held = build((blocks, block_size), lambda block, offset: cache[block][offset])
    for token_idx, slot_idx in enumerate(slots):
        if slot_idx < 0:
            continue
        held[slot_idx // block_size][slot_idx % block_size] = rows[token_idx]
    return build((blocks, block_size, heads, d), lambda block, offset, head, i: held[block][offset][head][i])
