"""Windows and chunks, implemented with defects reported after the registry was written."""

import numpy as np
from planting import planted


@planted("positions in int8", names=())
def chunks_int8():
    """
    Positions are held in int8 before they are divided into chunks, and go below zero at 128. A mask kernel's index type.

    Should be said: unexplained; positions from 128 on.
    """

    def chunked_window(q_positions, k_positions, /, *, chunk_size, sides):
        q, k = (p.astype(np.int64).astype(np.int8).astype(np.int64) for p in (q_positions, k_positions))
        q, k = q[..., :, None], k[..., None, :]
        return (q // chunk_size == k // chunk_size) & ((k <= q) if sides == "causal" else True)

    return chunked_window


@planted("sinks limited to the window's size", names=())
def lambda_sinks_within_window():
    """
    No more sinks are kept than the window is wide: one buffer serves both. Imagined, a ring buffer of a cache.

    Should be said: unexplained; cases with more sinks than the window has places.
    """

    def lambda_window(q_positions, k_positions, /, *, num_sinks, window, counting):
        q, k = q_positions.astype(np.int64)[..., :, None], k_positions.astype(np.int64)[..., None, :]
        farthest = window - (counting == "with_query")
        return (k <= q) & ((q - k <= farthest) | (k < min(num_sinks, window)))

    return lambda_window


@planted("distances limited to the window", names=())
def streaming_middle_clamped():
    """
    Keys between the sinks and the window have the largest distance of the window: ReRoPE's rule in StreamingLLM. Imagined.

    Should be said: unexplained; distances beyond the window are wrong (they are all one number).
    """

    def streaming_llm_distances(q_positions, k_positions, /, *, num_sinks, window, counting):
        farthest = window - 1 if counting == "with_query" else window
        q, k = q_positions.astype(np.int64)[..., :, None], k_positions.astype(np.int64)[..., None, :]
        return np.where(k < num_sinks, np.minimum(q, num_sinks + farthest) - k, np.minimum(q - k, farthest))

    return streaming_llm_distances


@planted("queries and keys counted from the bottom right", names=("mask-bottom-right",))
def window_bottom_right():
    """
    Positions are not read: the last query is put at the last key, as FlashAttention aligns a causal mask.

    Should be said: unexplained, or that positions count from the end; never one group of options as the cause.
    """

    def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
        queries, keys = q_positions.shape[-1], k_positions.shape[-1]
        lead = np.broadcast_shapes(q_positions.shape[:-1], k_positions.shape[:-1])
        apart = np.arange(queries)[:, None] + keys - queries - np.arange(keys)
        farthest = window - (counting == "with_query")
        return np.broadcast_to((apart <= farthest) & (apart >= (0 if sides == "causal" else -farthest)), (*lead, queries, keys))

    return sliding_window


@planted("positions subtracted as unsigned numbers", names=("window-causal",))
def window_unsigned_gap():
    """
    The gap between query and key is unsigned, so that later keys are far away; uint32 indices in a kernel.

    Should be said: keys after the query are not visible with sides "both", as if they were "causal".
    """

    def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
        q, k = q_positions.astype(np.uint32)[..., :, None], k_positions.astype(np.uint32)[..., None, :]
        return q - k <= np.uint32(window - (counting == "with_query"))

    return sliding_window
