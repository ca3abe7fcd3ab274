"""Tables of rotary embeddings and their application, implemented with defects reported after the registry was written."""

import numpy as np
from planting import planted


@planted("strides ignored", names=())
def apply_strides_ignored():
    """A kernel that reads its input as if it were contiguous (TileOPs #492)."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        if not x.flags.c_contiguous:
            x = np.ascontiguousarray(x).reshape(-1)[::-1].reshape(x.shape)
        n = cos.shape[-1]
        a, b = x[..., :n], x[..., n : 2 * n]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * n :]], axis=-1)

    return apply_rope


@planted("inverse ignored, and the tail zeroed", names=(("inverse-ignored", "tail-zeroed"),))
def inverse_forward_and_tail_lost():
    """inverse=True rotates forward, and lanes beyond rotary_dim come back as zeros (labml #215's slice)."""

    def apply_rope(x, cos, sin, /, *, layout, inverse=False):
        out = np.zeros_like(x)
        n = cos.shape[-1]
        if layout == "half":
            read = write = (slice(0, n), slice(n, 2 * n))
        else:
            read = write = (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
        if layout == "interleaved_to_half":
            write = (slice(0, n), slice(n, 2 * n))
        a, b = x[..., read[0]], x[..., read[1]]
        out[..., write[0]], out[..., write[1]] = a * cos - b * sin, b * cos + a * sin
        return out

    return apply_rope


@planted("sines and cosines of low accuracy", names=())
def table_coarse_sine():
    """A table of sines with 2^-11 between its steps, as some hardware has."""

    def coarse(x, way):
        return np.round(way(x) * 2048) / 2048

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
        angle = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
        return tuple((attention_factor * coarse(angle, way)).astype(dtype) for way in (np.cos, np.sin))

    return rope_table


@planted("positions wrap at 20000", names=())
def table_wrapped_20000():
    """A ring buffer of 20000 rows."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
        positions = np.where(positions >= 20000, np.asarray(positions) % 20000, positions)
        angle = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
        return tuple((attention_factor * way(angle)).astype(dtype) for way in (np.cos, np.sin))

    return rope_table


@planted("partner by exclusive or", names=("partner-xor",))
def rotation_partner_by_xor():
    """
    The partner is found by exclusive or of channel and half, right for powers of two alone: three released kernels, 96 of 128.

    Should be said: unexplained; cases whose rotated half is not a power of two.
    """

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        h = cos.shape[-1]
        channel = np.arange(2 * h)
        partner = np.minimum(channel ^ h, x.shape[-1] - 1)
        sign, column = np.where(channel < h, -1, 1), channel % h
        out = x[..., : 2 * h] * cos[..., column] + sign * x[..., partner] * sin[..., column]
        return np.concatenate([out, x[..., 2 * h :]], axis=-1).astype(x.dtype)

    return apply_rope


@planted("the second channel lacks its partner", names=("partner-missing-second",))
def rotation_partner_missing():
    """
    The second channel of each pair is only scaled by the cosine: a term was lost in an unrolled loop.

    Should be said: unexplained; the second channel of every pair is wrong, the first right.
    """

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        h = cos.shape[-1]
        u, v = x[..., :h], x[..., h : 2 * h]
        return np.concatenate([u * cos - v * sin, v * cos, x[..., 2 * h :]], axis=-1).astype(x.dtype)

    return apply_rope


@planted("whole turns taken off with a float32 constant", names=("angles-reduced", "angles-reduced-fused"))
def table_coarse_range():
    """
    Whole turns are taken off in float32 with one constant: range reduction of fast-math sines, kekzl/imp #1316.

    Should be said: angles are reduced coarsely; errors grow with the position. Not a looser trigonometry that passes all.
    """

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0):
        angle = positions.astype(np.float32)[..., None] * np.asarray(inv_freq, dtype=np.float32)
        turn = np.float32(2 * np.pi)
        angle = angle - np.round(angle / turn) * turn
        return (np.cos(angle) * attention_factor).astype(np.float32), (np.sin(angle) * attention_factor).astype(np.float32)

    return rope_table
