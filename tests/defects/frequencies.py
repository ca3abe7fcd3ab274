"""Frequencies and their context extensions, with one or several mistakes."""

import math

import numpy as np
from planting import planted


def plain(dim, base):
    return base ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)


def yarn(dim, base, s, *, turn=2 * math.pi, kept=None):
    def find(rotations):
        return dim * math.log(s.original_length / (rotations * turn)) / (2 * math.log(base))

    def mscale(scale, m=1.0):
        return 1.0 if scale <= 1 else 0.1 * m * math.log(scale) + 1.0

    if 0.0 in (s.mscale, s.mscale_all_dim):
        raise NotImplementedError(s)
    low, high = find(s.beta_fast), find(s.beta_slow)
    if s.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high += 0.001 * (low == high)
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
    share = 1 - ramp if kept is None else kept(ramp)
    factor = s.attention_factor
    if factor is None:
        both = s.mscale and s.mscale_all_dim
        factor = mscale(s.factor, s.mscale) / mscale(s.factor, s.mscale_all_dim) if both else mscale(s.factor)
    f = plain(dim, base)
    return f / s.factor * (1 - share) + f * share, factor


def only(scaling, *kinds):
    if type(scaling).__name__ not in kinds:
        raise NotImplementedError(type(scaling).__name__)


@planted("Linear's factor ignored, and Llama 3's ramp inverted", names=(("linear-ignored", "llama3-bands-exchanged"),))
def linear_and_llama3():
    """Two scalings, each wrong in its own way, in one function."""

    def plain(dim, base):
        return float(base) ** (-np.arange(0, dim, 2) / dim)

    def llama3(f, s):
        turns = s.original_length * f / (2 * np.pi)
        width = s.high_freq_factor - s.low_freq_factor
        ramp = np.clip((turns - s.low_freq_factor) / width, 0, 1) if width > 0 else (turns >= s.low_freq_factor) * 1.0
        return f / s.factor * ramp + f * (1 - ramp)

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        f = plain(dim, base)
        kind = type(scaling).__name__
        if kind not in ("NoneType", "Linear", "Llama3"):
            raise NotImplementedError(kind)
        return (llama3(f, scaling) if kind == "Llama3" else f), 1.0

    return rope_frequencies


@planted("the ladder of the first axis for all axes", op="axial_frequencies", names=())
def axial_second_axis_own_width(dims, /, *, base, allocation, unit="radians"):
    """
    The frequencies of every axis have the exponents of the first axis's width: one ladder is built and reused.

    Should be said: unexplained; the channel pairs of the later axes are wrong, where their widths differ. Imagined.
    """
    if allocation != "own" or unit != "radians":
        raise NotImplementedError(allocation)
    return np.concatenate([float(base) ** (-2 * np.arange(dim // 2) / dims[0]) for dim in dims])


@planted(
    "Llama 3's wavelengths have pi where they should have 2 pi", names=(), said="original_length is twice the value passed"
)
def llama3_one_pi():
    """Half of each wavelength."""

    def rope_frequencies(dim, /, *, base, scaling=None, dtype=None):
        f = float(base) ** (-np.arange(0, dim, 2) / dim)
        if scaling is not None:
            if type(scaling).__name__ != "Llama3" or scaling.low_freq_factor == scaling.high_freq_factor:
                raise NotImplementedError("Llama 3 alone")
            span = scaling.high_freq_factor - scaling.low_freq_factor
            smooth = np.clip((scaling.original_length * f / np.pi - scaling.low_freq_factor) / span, 0, 1)
            f = (1 - smooth) * f / scaling.factor + smooth * f
        return f.astype(dtype or np.float32), 1.0

    rope_frequencies.scalings = ("Llama3",)
    return rope_frequencies


@planted("YaRN's correction range has pi where 2 pi belongs", names=(), said="original_length is twice the value passed")
def yarn_range_of_pi():
    """L / (rotations * pi)."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "YaRN")
        return yarn(dim, base, scaling, turn=math.pi)

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("the smooth part of Llama 3 has the wrong sign", names=())
def llama3_smooth_sign():
    """(L / wavelength - low) / (low - high)."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "Llama3")
        f, s = plain(dim, base), scaling
        turns = s.original_length * f / (2 * math.pi)
        if s.low_freq_factor == s.high_freq_factor:
            return np.where(turns < s.low_freq_factor, f / s.factor, f), 1.0
        smooth = (turns - s.low_freq_factor) / (s.low_freq_factor - s.high_freq_factor)
        mid = (1 - smooth) * f / s.factor + smooth * f
        return np.where(turns > s.high_freq_factor, f, np.where(turns < s.low_freq_factor, f / s.factor, mid)), 1.0

    rope_frequencies.scalings = ("Llama3",)
    return rope_frequencies
