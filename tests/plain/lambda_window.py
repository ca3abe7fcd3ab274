"""As LM-Infinite computes it (Glaciohound/LM-Infinite, commit a0ce64c): models/lambda_attention.py, lines 59-77 (the global
branch, of keys beyond the local one) and 99-107 (the local branch)."""

backend = "torch"


def lambda_window(q_positions, k_positions, /, *, num_sinks, window, counting):
    if counting != "with_query":
        raise NotImplementedError(counting)
    q, k = q_positions[..., :, None], k_positions[..., None, :]
    stationary = (k < num_sinks) & (k - q <= -window)
    rotating = (k - q <= 0) & (k - q > -window)
    return stationary | rotating
