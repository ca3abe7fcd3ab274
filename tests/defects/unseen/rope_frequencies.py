"""Frequencies and their extensions, implemented with defects reported after the registry was written."""

import math

import jax.numpy as jnp
import numpy as np
import torch
from planting import planted


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


@planted("Linear's factor ignored", names=("linear-ignored",))
def linear_ignored():
    """A declared scaling falls through the switch (mlx-vlm #1710), and Linear alone is declared so."""

    def plain(dim, base):
        return float(base) ** (-np.arange(0, dim, 2) / dim)

    def llama3(f, s):
        turns = s.original_length * f / (2 * np.pi)
        width = s.high_freq_factor - s.low_freq_factor
        ramp = np.clip((turns - s.low_freq_factor) / width, 0, 1) if width > 0 else (turns >= s.low_freq_factor) * 1.0
        return f / s.factor * (1 - ramp) + f * ramp

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        f = plain(dim, base)
        kind = type(scaling).__name__
        if kind not in ("NoneType", "Linear", "Llama3"):
            raise NotImplementedError(kind)
        return (llama3(f, scaling) if kind == "Llama3" else f), 1.0

    return rope_frequencies


@planted("Llama 3's ramp inverted for all pairs", names=("llama3-bands-exchanged",))
def llama3_bands_exchanged():
    """The ramp is taken for its complement: fast pairs are divided, slow ones are not."""

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
        return (f if scaling is None else f / scaling.factor if kind == "Linear" else llama3(f, scaling)), 1.0

    return rope_frequencies


@planted("factor fixed at 8", names=("llama3-factor-8",), backend="torch")
def llama3_factor_fixed():
    """Llama 3's factor is 8 for everybody, as Llama 3.1 has it; swiss-ai/Megatron-LM #80."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim))
        if scaling is None:
            return inv_freq.float(), 1.0
        if type(scaling).__name__ != "Llama3":
            raise NotImplementedError(scaling)
        turns = scaling.original_length * inv_freq / (2 * math.pi)
        low, high = scaling.low_freq_factor, scaling.high_freq_factor
        if low == high:
            raise NotImplementedError(scaling)
        smooth = ((turns - low) / (high - low)).clamp(0, 1)
        return ((1 - smooth) * inv_freq / 8 + smooth * inv_freq).float(), 1.0

    return rope_frequencies


@planted("the ramp mixes wavelengths", names=("llama3-periods",), backend="jax")
def llama3_periods_mixed():
    """Wavelengths are mixed rather than frequencies. A transcription that keeps the paper's lambda to the end."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        wavelength = 2 * np.pi * float(base) ** (np.arange(0, dim, 2) / dim)
        if scaling is None:
            return jnp.asarray(2 * np.pi / wavelength, dtype=jnp.float32), 1.0
        if type(scaling).__name__ != "Llama3" or scaling.low_freq_factor == scaling.high_freq_factor:
            raise NotImplementedError(scaling)
        smooth = (scaling.original_length / wavelength - scaling.low_freq_factor) / (
            scaling.high_freq_factor - scaling.low_freq_factor
        )
        smooth = np.clip(smooth, 0, 1)
        wavelength = (1 - smooth) * scaling.factor * wavelength + smooth * wavelength
        return jnp.asarray(2 * np.pi / wavelength, dtype=jnp.float32), 1.0

    return rope_frequencies


@planted("NTK divides all frequencies", names=("ntk-as-linear",))
def ntk_as_linear():
    """NTK-aware scaling divides every frequency by the factor, which is linear scaling; keras-hub's 'dynamic'."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        inv_freq = np.float32(base) ** (-np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))
        if scaling is None:
            return inv_freq, 1.0
        if type(scaling).__name__ not in ("Linear", "NTKAware"):
            raise NotImplementedError(scaling)
        return inv_freq / np.float32(scaling.factor), 1.0

    return rope_frequencies


@planted("correction range clamped to d/2 - 1", names=("yarn-high-half",))
def yarn_high_half():
    """YaRN's upper correction dimension is limited to d/2 - 1; keras-hub #2981 and minimind #602."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        half = dim // 2
        plain = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float64) / dim)
        if scaling is None:
            return plain.astype(np.float32), 1.0
        if type(scaling).__name__ != "YaRN":
            raise NotImplementedError(scaling)
        low, high = (
            dim * math.log(scaling.original_length / (2 * math.pi * turns)) / (2 * math.log(base))
            for turns in (scaling.beta_fast, scaling.beta_slow)
        )
        if scaling.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, half - 1)
        ramp = np.clip((np.arange(half) - low) / (high - low if high != low else 0.001), 0, 1)

        def g(m):
            return 1.0 if scaling.factor <= 1 else 0.1 * m * math.log(scaling.factor) + 1.0

        factor = scaling.attention_factor
        if factor is None:
            both = scaling.mscale is not None and scaling.mscale_all_dim is not None
            factor = g(scaling.mscale) / g(scaling.mscale_all_dim) if both else g(1)
        return (plain / scaling.factor * ramp + plain * (1 - ramp)).astype(np.float32), float(factor)

    return rope_frequencies


@planted("truncate=True is ignored", names=("yarn-not-truncated",), backend="torch")
def yarn_never_truncated():
    """The correction range stays fractional whatever `truncate` says; gpt-oss's habit put into a general module."""

    def correction(turns, dim, base, length):
        return dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        freqs = base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        if scaling is None:
            return (1 / freqs).float(), 1.0
        if type(scaling).__name__ != "YaRN" or scaling.attention_factor is not None or scaling.mscale is not None:
            raise NotImplementedError(scaling)
        s = scaling.factor
        low = max(correction(scaling.beta_fast, dim, base, scaling.original_length), 0)
        high = min(correction(scaling.beta_slow, dim, base, scaling.original_length), dim - 1)
        ramp = ((torch.arange(dim // 2) - low) / max(high - low, 0.001)).clamp(0, 1)
        inv_freq = (1 / (s * freqs)) * ramp + (1 / freqs) * (1 - ramp)
        return inv_freq.float(), 0.1 * math.log(s) + 1.0 if s > 1 else 1.0

    return rope_frequencies


@planted("the ladder of the first axis for all axes", names=())
def axial_second_axis_own_width():
    """
    The frequencies of every axis have the exponents of the first axis's width: one ladder is built and reused.

    Should be said: unexplained; the channel pairs of the later axes are wrong, where their widths differ. Imagined.
    """

    def axial_frequencies(dims, /, *, base, allocation, unit="radians"):
        if allocation != "own" or unit != "radians":
            raise NotImplementedError(allocation)
        return np.concatenate([float(base) ** (-2 * np.arange(dim // 2) / dims[0]) for dim in dims])

    return axial_frequencies
