"""
Compressed windows that a query sees. Source: transformers 5.23.0, modeling_deepseek_v4.py, lines 448 and 589: window w of r
tokens ends at position r (w + 1) - 1, and is seen by queries from there on.
"""

from typing import Any

from .lists import at, build, shape


def visible_windows(q_positions: Any, *, rate: int) -> Any:
    """Return how many windows end at or before each query; no window lies before position 0."""

    def element(*index: int) -> int:
        complete, rest = divmod(int(at(q_positions, index)), rate)
        return complete + (rest == rate - 1)

    return build(shape(q_positions), element)
