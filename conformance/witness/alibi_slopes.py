"""
The slopes of ALiBi. Source: Press et al., arXiv:2108.12409, section 3.

For n heads the slopes are the geometric sequence that starts at 2^(-8/n) and has that same value as its ratio. Other
head counts as in the authors' get_slopes (fairseq/models/transformer.py): the slopes of the closest power of two below,
then every second slope of twice that. A rank of tensor parallelism has the slopes of its heads among those of the whole model
(vllm/model_executor/models/bloom.py: ``_get_alibi_slopes(total_num_heads)[head_start:head_end]``).
"""

from typing import Any

from mpmath import mpf


def alibi_slopes(heads: int, *, max_bias: Any = 8, first: int = 0, count: int | None = None) -> list[Any]:
    """Return one slope for each head of a shard; `max_bias` is the 8 of the paper."""
    if (first, count) != (0, None):
        return alibi_slopes(heads, max_bias=max_bias)[first:][:count]

    def get_slopes_power_of_2(n: int) -> list[Any]:
        return [mpf(2) ** (-mpf(max_bias) * (i + 1) / n) for i in range(n)]  # start * ratio**i, where start is the ratio

    if heads & (heads - 1) == 0:
        return get_slopes_power_of_2(heads)
    closest_power_of_2 = 1 << (heads.bit_length() - 1)
    more = alibi_slopes(2 * closest_power_of_2, max_bias=max_bias)[0::2]
    return get_slopes_power_of_2(closest_power_of_2) + more[: heads - closest_power_of_2]
