"""
The relative position bias of T5. Source: Raffel et al., arXiv:1910.10683, section 2.1.

"each 'embedding' is simply a scalar that is added to the corresponding logit"; one for each bucket and head.
"""

from typing import Any

from .lists import at, broadcast, build, shape
from .t5_buckets import t5_buckets


def t5_bias(q_positions: Any, k_positions: Any, table: Any, *, bidirectional: bool, max_distance: int = 128) -> Any:
    """Return the bias, shape (*B, H, Q, K), from `table` of shape (num_buckets, H)."""
    num_buckets, heads = shape(table)
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def relative(*index: int) -> Any:
        *batch, q, k = index
        return at(k_positions, (*batch, k)) - at(q_positions, (*batch, q))

    apart = build((*broadcast(q_batch, k_batch), rows, columns), relative)
    buckets = t5_buckets(apart, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance)

    def element(*index: int) -> Any:
        *batch, h, q, k = index
        return table[at(buckets, (*batch, q, k))][h]

    return build((*broadcast(q_batch, k_batch), heads, rows, columns), element)
