"""Frequencies and context extensions with one mistake each: ramps, factors, wavelengths, lists."""

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


@planted("YaRN's correction range has pi where 2 pi belongs", names=(), said="original_length is twice what is asked")
def yarn_range_of_pi():
    """L / (rotations * pi)."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "YaRN")
        return yarn(dim, base, scaling, turn=math.pi)

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("YaRN's ramp runs the wrong way", names=("yarn-ramp-inverted",))
def yarn_ramp_turned():
    """Interpolation and extrapolation are exchanged in the blend."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "YaRN")
        return yarn(dim, base, scaling, kept=lambda ramp: ramp)

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("YaRN's mscale uses log10", names=("yarn-gain-log10",))
def yarn_mscale_log10():
    """0.1 log10(s) + 1, and the range in natural logarithms."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "YaRN")
        freqs, _ = yarn(dim, base, scaling)
        factor = scaling.attention_factor
        if factor is None:
            both = scaling.mscale and scaling.mscale_all_dim
            one = lambda m: 1.0 if scaling.factor <= 1 else 0.1 * m * math.log10(scaling.factor) + 1.0  # noqa: E731
            factor = one(scaling.mscale) / one(scaling.mscale_all_dim) if both else one(1.0)
        return freqs, factor

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("YaRN's mscale_all_dim is not divided out", names=("yarn-all-dim-ignored",))
def yarn_mscale_alone():
    """The factor is that of mscale, whatever mscale_all_dim says."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "YaRN")
        freqs, factor = yarn(dim, base, scaling)
        if scaling.attention_factor is None and scaling.mscale and scaling.mscale_all_dim and scaling.factor > 1:
            factor = 0.1 * scaling.mscale * math.log(scaling.factor) + 1.0
        return freqs, factor

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("YaRN's ramp is limited to dim / 2 - 1", names=("yarn-high-half",))
def yarn_high_limited_to_pairs():
    """high = min(high, dim // 2 - 1), as pairs are counted."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "YaRN")
        s = scaling

        def find(rotations):
            return dim * math.log(s.original_length / (rotations * 2 * math.pi)) / (2 * math.log(base))

        low, high = find(s.beta_fast), find(s.beta_slow)
        if s.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim // 2 - 1)
        high += 0.001 * (low == high)
        share = 1 - np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
        f = plain(dim, base)
        return f / s.factor * (1 - share) + f * share, yarn(dim, base, s)[1]

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("Llama 3's smooth part is not interpolated: it takes the nearer of the two", names=("llama3-step",))
def llama3_without_smoothing():
    """A hard step at the geometric middle."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "Llama3")
        f = plain(dim, base)
        middle = math.sqrt(scaling.low_freq_factor * scaling.high_freq_factor)
        return np.where(scaling.original_length * f / (2 * math.pi) < middle, f / scaling.factor, f), 1.0

    rope_frequencies.scalings = ("Llama3",)
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


@planted("dynamic NTK grows from the first token, not from the original length", names=("dynamic-below-limit",))
def dynamic_from_start():
    """base is scaled also where the sequence is shorter than the original length."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        only(scaling, "DynamicNTK")
        s = scaling
        grown = abs(s.factor * length / s.original_length - (s.factor - 1))
        return plain(dim, base * grown ** (dim / (dim - 2))), 1.0

    rope_frequencies.scalings = ("DynamicNTK",)
    return rope_frequencies


@planted("dynamic NTK's exponent is not d / (d - 2)", names=("ntk-power-missing", "dynamic-base-times-factor"))
def dynamic_without_exponent():
    """base * grown."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        only(scaling, "DynamicNTK")
        s = scaling
        grown = s.factor * max(length, s.original_length) / s.original_length - (s.factor - 1)
        return plain(dim, base * grown), 1.0

    rope_frequencies.scalings = ("DynamicNTK",)
    return rope_frequencies


@planted("LongRoPE's lists multiply where they should divide", names=("longrope-multiplied",))
def longrope_multiplied():
    """inv_freq * factor."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        only(scaling, "LongRoPE")
        s = scaling
        if s.short_mscale is not None or s.long_mscale is not None:
            raise NotImplementedError(s)
        factor = s.max_length / s.original_length if s.factor is None else s.factor
        attention = s.attention_factor
        if attention is None:
            attention = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(s.original_length))
        chosen = s.long_factor if length and length > s.original_length else s.short_factor
        return plain(dim, base) * np.asarray(chosen, np.float64), attention

    rope_frequencies.scalings = ("LongRoPE",)
    return rope_frequencies


@planted("the long list is used from the original length on, itself included", names=("longrope-early",))
def longrope_at_length():
    """length >= original_length."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        only(scaling, "LongRoPE")
        s = scaling
        if s.short_mscale is not None or s.long_mscale is not None:
            raise NotImplementedError(s)
        factor = s.max_length / s.original_length if s.factor is None else s.factor
        attention = s.attention_factor
        if attention is None:
            attention = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(s.original_length))
        chosen = s.long_factor if length and length >= s.original_length else s.short_factor
        return plain(dim, base) / np.asarray(chosen, np.float64), attention

    rope_frequencies.scalings = ("LongRoPE",)
    return rope_frequencies


@planted("linear scaling is applied to the base", names=("linear-on-base",))
def linear_on_base():
    """base * factor, as a rope_theta that was patched."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "Linear", "NoneType")
        return plain(dim, base * (scaling.factor if scaling else 1.0)), 1.0

    rope_frequencies.scalings = ("Linear",)
    return rope_frequencies


@planted("proportional frequencies use the rotated width in the exponent", names=("proportional-own-denominator",))
def proportional_rotated_width():
    """base ** (-2i / rotated width): a partial rotation."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        only(scaling, "Proportional")
        n = int(scaling.rotated * dim // 2)
        f = np.zeros(dim // 2)
        f[:n] = base ** (-np.arange(n) / max(n, 1)) / scaling.factor
        return f, 1.0

    rope_frequencies.scalings = ("Proportional",)
    return rope_frequencies
