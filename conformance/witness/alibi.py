"""
Attention with linear biases. Source: Press et al., arXiv:2108.12409, section 3:

    softmax(q_i K^T + m [-(i-1), ..., -2, -1, 0])

so that key j is biased by -m (i - j), which is "causal". "distance" makes it symmetric, -m |i - j|; "key" is the
authors' code, m j in every row, which a causal softmax cannot tell from the paper's. `root` is Step-1's, in vLLM's kernels:

    relative_pos = seq_offset - (context_len + query_pos);  where(relative_pos <= 0, -sqrt(-relative_pos), 0)
"""

from typing import Any

from mpmath import mp, mpf

from .alibi_slopes import alibi_slopes
from .lists import at, broadcast, build, shape


def alibi(
    q_positions: Any, k_positions: Any, *, heads: int, form: str, max_bias: Any = 8, root: bool = False, first: int = 0,
    count: int | None = None,
) -> Any:  # fmt: skip
    """Return the bias, shape (*B, count, Q, K), or (*B, count, 1, K) for "key"."""
    slopes = alibi_slopes(heads, max_bias=max_bias, first=first, count=count)
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> Any:
        *batch, h, q, k = index
        j = at(k_positions, (*batch, k))
        if form == "key":
            return slopes[h] * j
        i = at(q_positions, (*batch, q))
        if root:
            return -slopes[h] * mp.sqrt(i - j) if j <= i else mpf(0)
        if form == "causal":
            return -slopes[h] * (i - j)
        if form == "distance":
            return -slopes[h] * abs(i - j)
        raise ValueError(form)

    return build((*broadcast(q_batch, k_batch), len(slopes), 1 if form == "key" else rows, columns), element)
