"""
Sliding windows. Sources: Beltagy et al., arXiv:2004.05150, section 3.1 (w/2 tokens on each side); for causal models two codes:

    counts the query:    transformers 5.23, masking_utils.py: kv_idx > q_idx - sliding_window and kv_idx <= q_idx
    does not count it:   mistralai/mistral-src, one_file_ref.py: triu(tril(ones), diagonal=-sliding_window), j >= i - W

On both sides, transformers' sliding_window_bidirectional_overlay does not count it: abs(q_idx - kv_idx) <= sliding_window.
"""

from typing import Any

from .lists import over_pairs


def sliding_window(q_positions: Any, k_positions: Any, *, window: int, counting: str, sides: str) -> Any:
    """Return 1 where a query may attend to a key, else 0, shape (*B, Q, K)."""

    def near(i: int, j: int) -> bool:
        first = {"with_query": i - window + 1, "without_query": i - window}[counting]
        last = {"causal": i, "both": i + (i - first)}[sides]
        return first <= j <= last

    return over_pairs(q_positions, k_positions, near)
