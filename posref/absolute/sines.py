"""Shared by the sinusoidal encodings: geometric frequencies, the order of sines and cosines, and columns of zeros."""

from posref.core.arrays import Array, Namespace, beside, constants, namespace
from posref.core.pairs import paired


def ladder(xp: Namespace, count: int, steps: float, base: float) -> Array:
    """Return ``base ** (-i / steps)`` for i from 0 to `count` - 1, as NumPy float64 or in the number system `xp`."""
    c = constants(xp)
    return c.pow(c.asarray(float(base), dtype=c.float64), -c.arange(count, dtype=c.float64) / steps)


def arranged(sin: Array, cos: Array, layout: str) -> Array:
    """Return sines and cosines side by side ("interleaved"), or as halves of the last axis."""
    if layout == "interleaved":
        return paired(sin, cos, -1)
    return namespace(sin).concat([sin, cos] if layout == "sin_cos" else [cos, sin], axis=sin.ndim - 1)


def followed_by_zeros(x: Array, width: int) -> Array:
    """Return `x` with columns of zeros appended, `width` columns in all."""
    xp = namespace(x)
    if x.shape[-1] == width:
        return x
    zeros = xp.broadcast_to(beside([0.0], x, x.dtype), (*x.shape[:-1], width - x.shape[-1]))
    return xp.concat([x, zeros], axis=x.ndim - 1)
