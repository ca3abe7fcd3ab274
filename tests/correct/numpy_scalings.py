"""Every scaling in float32 NumPy, transcribed from transformers' `modeling_rope_utils.py`."""

import math

import numpy as np


def default(dim, base):
    return 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))


def llama3(inv_freq, s):
    low_wavelen, high_wavelen = s.original_length / s.low_freq_factor, s.original_length / s.high_freq_factor
    wavelen = np.float32(2 * math.pi) / inv_freq
    inv_freq_llama = np.where(wavelen > low_wavelen, inv_freq / np.float32(s.factor), inv_freq)
    smooth = (s.original_length / wavelen - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    smoothed = (1 - smooth) * inv_freq_llama / np.float32(s.factor) + smooth * inv_freq_llama
    medium = ~(wavelen < high_wavelen) & ~(wavelen > low_wavelen)
    return np.where(medium, smoothed, inv_freq_llama).astype(np.float32)


def get_mscale(scale, mscale=1):
    return 1.0 if scale <= 1 else 0.1 * mscale * math.log(scale) + 1.0


def attention_factor(s):
    if s.attention_factor is not None:
        return s.attention_factor
    if s.mscale is not None and s.mscale_all_dim is not None:
        return get_mscale(s.factor, s.mscale) / get_mscale(s.factor, s.mscale_all_dim)
    return get_mscale(s.factor)


def yarn(dim, base, s):
    def find_correction_dim(rotations):
        return (dim * math.log(s.original_length / (rotations * 2 * math.pi))) / (2 * math.log(base))

    low, high = find_correction_dim(s.beta_fast), find_correction_dim(s.beta_slow)
    if s.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    linear = (np.arange(dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low)
    extrapolate = 1 - np.clip(linear, 0, 1)
    pos_freqs = base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
    interpolation, extrapolation = 1.0 / (np.float32(s.factor) * pos_freqs), 1.0 / pos_freqs
    return interpolation * (1 - extrapolate) + extrapolation * extrapolate


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    s, factor = scaling, 1.0
    match type(s).__name__:
        case "NoneType":
            inv_freq = default(dim, base)
        case "Linear":
            inv_freq = default(dim, base) / np.float32(s.factor)
        case "NTKAware":
            inv_freq = default(dim, base * s.factor ** (dim / (dim - 2)))
        case "DynamicNTK":
            length = max(length, s.original_length)
            grow = (s.factor * length / s.original_length) - (s.factor - 1)
            inv_freq = default(dim, base * grow ** (dim / (dim - 2)))
        case "Llama3":
            inv_freq = llama3(default(dim, base), s)
        case "YaRN":
            inv_freq, factor = yarn(dim, base, s), attention_factor(s)
        case other:
            raise NotImplementedError(other)
    return inv_freq, factor


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None, inverse=False):
    d = rotary_dim or x.shape[-1]
    inv_freq, factor = rope_frequencies(d, base=base, scaling=scaling, length=length)
    angle = positions[..., None].astype(np.float32) * inv_freq
    cos, sin = np.cos(angle) * np.float32(factor), np.sin(angle) * np.float32(-factor if inverse else factor)
    halves, pairs = (slice(0, d // 2), slice(d // 2, d)), (slice(0, d, 2), slice(1, d, 2))
    read, write = {"half": (halves, halves), "interleaved": (pairs, pairs)}.get(layout, (pairs, halves))
    if inverse:
        read, write = write, read
    out, (a, b) = x.copy(), (x[..., side] for side in read)
    out[..., write[0]], out[..., write[1]] = a * cos - b * sin, b * cos + a * sin
    return out


def rotation_matrix(position, dim, /, *, layout, base, scaling=None, length=None, dtype=None):
    unit = np.eye(dim, dtype=np.float32)
    turned = rope(unit, np.asarray(position), layout=layout, base=base, scaling=scaling, length=length)
    return np.swapaxes(turned, -1, -2).astype(dtype or np.float32)
