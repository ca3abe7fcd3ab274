"""Kernels that compute in blocks, and are wrong where sizes are no multiple of these, or at the edges of blocks."""

import numpy as np
from planting import planted


@planted("tokens after the last full tile of four are not computed", names=(), said="after the last full block of 4")
def tiles_without_a_tail():
    """The grid is ``tokens // 4``, at least 1, where it must be rounded up: what is left has the zeros of the buffer."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half" or x.ndim < 2:
            raise NotImplementedError(layout)
        pairs = x.shape[-1] // 2
        angles = positions[..., None] * base ** -(np.arange(pairs) / pairs)
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        u, v = x[..., :pairs], x[..., pairs:]
        found = np.concatenate([u * cos - v * sin, v * cos + u * sin], axis=-1)
        found[..., x.shape[-2] // 4 * 4 or x.shape[-2] :, :] = 0
        return found

    return rope


@planted("the exponent counts padded channels", names=(), said="a number of channels that is not a power of two")
def exponent_of_padded_channels():
    """Triton's blocks have a power of two of channels, and the kernel divides by that in place of the head size."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        pairs = x.shape[-1] // 2
        padded = 1 << max(0, (2 * pairs - 1).bit_length())
        frequencies = base ** -(2 * np.arange(pairs) / padded)
        angles = positions[..., None] * frequencies
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        u, v = x[..., :pairs], x[..., pairs:]
        return np.concatenate([u * cos - v * sin, v * cos + u * sin], axis=-1)

    return rope


@planted("the last row of every eight is not written", names=(), said="that end a block of 8")
def last_of_eight_not_written():
    """A warp stores ``lane < 7``: the last row of each eight has the zeros of the buffer."""

    def rope_table(positions, inv_freq, /):
        angles = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        if cos.ndim > 1:
            cos[..., 7::8, :] = 0
            sin[..., 7::8, :] = 0
        return cos, sin

    return rope_table
