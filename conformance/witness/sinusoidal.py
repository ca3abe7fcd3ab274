"""
Sinusoidal positions. Source: Vaswani et al., arXiv:1706.03762, section 3.5.

    PE(pos, 2i)   = sin(pos / 10000^(2i/d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

tensor2tensor's get_timing_signal_1d differs: timescales go from 1 to max_timescale inclusive,

    log_timescale_increment = log(max_timescale / min_timescale) / (num_timescales - 1)
    inv_timescales = min_timescale * exp(range(num_timescales) * -log_timescale_increment)

with num_timescales = channels // 2 and min_timescale = 1, and its output is concat([sin, cos]).
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def sinusoidal(positions: Any, dim: int, *, layout: str, base: Any = 10000.0, endpoint: bool = False) -> Any:
    """Return the encoding of `positions`, shape (*positions.shape, dim)."""
    half = dim // 2

    def element(*index: int) -> Any:
        *where, lane = index
        if layout == "interleaved":
            i, wave = lane // 2, (mp.sin, mp.cos)[lane % 2]
        elif layout == "sin_cos":
            i, wave = lane % half, (mp.sin, mp.cos)[lane // half]
        elif layout == "cos_sin":
            i, wave = lane % half, (mp.cos, mp.sin)[lane // half]
        else:
            raise ValueError(layout)
        if endpoint:
            increment = mp.log(mpf(base)) / (half - 1)
            return wave(at(positions, where) * mp.exp(i * -increment))
        return wave(at(positions, where) / mpf(base) ** (mpf(2 * i) / dim))

    return build((*shape(positions), dim), element)
