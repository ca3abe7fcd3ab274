"""
The convolutional positions of wav2vec 2.0, before the activation.

arXiv:2006.11477, section 2 (a convolution in place of fixed positions), as its code has it (fairseq, wav2vec2.py,
make_conv_pos, and SamePad): nn.Conv1d(e, e, kernel_size=k, padding=k // 2, groups=g), and of an even k the last frame is
dropped. Conv1d is out[o] = bias[o] + sum over c of weight[o, c] cross-correlated with the channel c of the group of o.
"""

from typing import Any

from .lists import at, build, shape


def conv_positions(x: Any, weight: Any, bias: Any, *, groups: int) -> Any:
    """Return the convolution at every frame, shape of x."""
    *lead, frames, width = shape(x)
    _, channels, taps = shape(weight)

    def element(*index: int) -> Any:
        *where, t, o = index
        first = o // (width // groups) * channels
        total = bias[o]
        for c in range(channels):
            for k in range(taps):
                source = t + k - taps // 2
                if 0 <= source < frames:
                    total += weight[o][c][k] * at(x, (*where, source, first + c))
        return total

    return build((*lead, frames, width), element)
