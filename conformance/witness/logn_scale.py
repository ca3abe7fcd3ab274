"""
Log-n attention. Sources: Su, kexue.fm/archives/8823 (log_512 n, n the number of keys), and codes that differ:

    bojone/rerope, rerope_patch.py:  ((position_ids + 1).log() / log(training_length)).clip(1)
    Qwen-7B, modeling_qwen.py:       [log(i, seq_length) if i > seq_length else 1 for i in range(1, 32768)], at position i - 1
    SGLang, triton_ops (Grok-2):     where(position > temperature_len, log2(position) / log2(temperature_len), 1)

No code takes the logarithm of a number below 1 without one of these limits; here it is that of 1.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def logn_scale(positions: Any, *, original_length: int, offset: int, at_least_one: bool) -> Any:
    """Return the factor of every query, in the shape of the positions."""

    def element(*index: int) -> Any:
        n = at(positions, index) + offset
        if at_least_one and n <= original_length:
            return mpf(1)
        return mp.log(n, original_length) if n > 1 else mpf(0)

    return build(shape(positions), element)
