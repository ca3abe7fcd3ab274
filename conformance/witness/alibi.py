"""
Attention with linear biases. Source: Press et al., arXiv:2108.12409, section 3:

    softmax(q_i K^T + m [-(i-1), ..., -2, -1, 0])

so that key j is biased by -m (i - j), which is "causal". "distance" makes it symmetric, -m |i - j|; "key" is the
authors' code, m j in every row, which a causal softmax cannot tell from the paper's.
"""

from typing import Any

from .alibi_slopes import alibi_slopes
from .lists import at, broadcast, build, shape


def alibi(q_positions: Any, k_positions: Any, *, heads: int, form: str) -> Any:
    """Return the bias, shape (*B, heads, Q, K), or (*B, heads, 1, K) for "key"."""
    slopes = alibi_slopes(heads)
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> Any:
        *batch, h, q, k = index
        j = at(k_positions, (*batch, k))
        if form == "key":
            return slopes[h] * j
        i = at(q_positions, (*batch, q))
        if form == "causal":
            return -slopes[h] * (i - j)
        if form == "distance":
            return -slopes[h] * abs(i - j)
        raise ValueError(form)

    return build((*broadcast(q_batch, k_batch), heads, 1 if form == "key" else rows, columns), element)
