"""As transformers 5.23.0 computes it: masking_utils.py, lines 72-76 and 100-109."""

backend = "torch"


def chunked_window(q_positions, k_positions, /, *, chunk_size, sides):
    if sides != "causal":
        raise NotImplementedError(sides)
    q, k = q_positions[..., :, None], k_positions[..., None, :]
    return (k // chunk_size == q // chunk_size) & (k <= q)
