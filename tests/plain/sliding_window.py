"""As transformers 5.23.0 computes it: masking_utils.py, lines 72-97 (causal, which counts the query) and 137-154 (both
sides, which do not)."""

backend = "torch"


def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
    q, k = q_positions[..., :, None], k_positions[..., None, :]
    if (counting, sides) == ("with_query", "causal"):
        return (k > q - window) & (k <= q)
    if (counting, sides) == ("without_query", "both"):
        return abs(q - k) <= window
    raise NotImplementedError(counting, sides)
