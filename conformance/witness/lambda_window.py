"""
The first keys and the last. Sources: Han et al., arXiv:2308.16137, in Glaciohound/LM-Infinite, models/lambda_attention.py:

    global branch: keys j < global_branch, masked by triu(-local_branch + 1): those at i - j >= local_branch
    local branch:  triu(1).tril(local_branch) of two blocks: those at 0 <= i - j < local_branch

and Xiao et al., arXiv:2309.17453, in mit-han-lab/streaming-llm, kv_cache.py: after every token the first start_size keys and
the last recent_size are kept, to which the next query brings its own.
"""

from typing import Any

from .lists import over_pairs


def lambda_window(q_positions: Any, k_positions: Any, *, num_sinks: int, window: int, counting: str) -> Any:
    """Return 1 where a query may attend to a key, else 0, shape (*B, Q, K)."""

    def kept(i: int, j: int) -> bool:
        before = i - j
        if before < 0:
            return False
        local = before < window if counting == "with_query" else before == 0 or before <= window
        return local or j < num_sinks

    return over_pairs(q_positions, k_positions, kept)
