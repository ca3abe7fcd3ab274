"""
Sinusoidal positions. Source: Vaswani et al., arXiv:1706.03762, section 3.5.

    PE(pos, 2i)   = sin(pos / 10000^(2i/d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

tensor2tensor's get_timing_signal_1d differs: timescales go from 1 to max_timescale inclusive,

    log_timescale_increment = log(max_timescale / min_timescale) / (num_timescales - 1)
    inv_timescales = min_timescale * exp(range(num_timescales) * -log_timescale_increment)

with num_timescales = channels // 2 and min_timescale = 1, and its output is concat([sin, cos]), padded if the width is odd:

    signal = tf.pad(signal, [[0, 0], [0, tf.mod(channels, 2)]])

positional-encodings 6.0.3, PositionalEncoding1D, rounds the width up and cuts the result, `[..., :orig_ch]`. transformers
5.23.0, RoFormerSinusoidalPositionalEmbedding, keeps the odd dim in the exponent:

    position_enc[pos][j] = pos / np.power(10000, 2 * (j // 2) / dim)
    out[:, 0:sentinel] = np.sin(position_enc[:, 0::2])   # sentinel = dim // 2 + 1
    out[:, sentinel:] = np.cos(position_enc[:, 1::2])
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def sinusoidal(
    positions: Any,
    dim: int,
    *,
    layout: str,
    base: Any = 10000.0,
    endpoint: bool = False,
    odd: str = "refused",
    scale: Any = 1.0,
) -> Any:
    """Return the encoding of `positions`, shape (*positions.shape, dim)."""
    if dim % 2 == 0 or odd == "extra_sine":
        sines, cosines, width = dim - dim // 2, dim // 2, dim
    elif odd == "zeros":
        sines = cosines = dim // 2
        width = dim - 1
    elif odd == "truncated":
        sines = cosines = dim // 2 + 1
        width = dim + 1
    else:
        raise ValueError(odd)
    if layout == "interleaved":
        columns = [(j // 2, (mp.sin, mp.cos)[j % 2]) for j in range(sines + cosines)]
    elif layout == "sin_cos":
        columns = [(i, mp.sin) for i in range(sines)] + [(i, mp.cos) for i in range(cosines)]
    elif layout == "cos_sin":
        columns = [(i, mp.cos) for i in range(cosines)] + [(i, mp.sin) for i in range(sines)]
    else:
        raise ValueError(layout)

    def element(*index: int) -> Any:
        *where, lane = index
        if lane >= len(columns):
            return mpf(0)
        i, wave = columns[lane]
        if endpoint:
            increment = mp.log(mpf(base)) / (sines - 1)
            return mpf(scale) * wave(at(positions, where) * mp.exp(i * -increment))
        return mpf(scale) * wave(at(positions, where) / mpf(base) ** (mpf(2 * i) / width))

    return build((*shape(positions), dim), element)
