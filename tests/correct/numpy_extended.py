"""The context extensions that came later, in float32 NumPy, as vLLM, transformers and the YaRN repository compute them."""

import math

import numpy as np

scalings = (
    "NTKAlpha", "NTKFixed", "NTKMixed", "DynamicYaRN", "YaRNByTurns", "LongRoPE", "Proportional", "Clipped", "Linear",
    "NTKAware", "DynamicNTK", "Llama3", "YaRN",
)  # fmt: skip


def exponents(dim):
    return np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim)


def default(dim, base):
    return np.float32(1) / np.float32(base) ** exponents(dim)


def longrope(dim, base, s, length):
    is_long = length > s.original_length
    ext_factors = np.array(s.long_factor if is_long else s.short_factor, dtype=np.float32)
    inv_freq = np.float32(1) / (ext_factors * np.float32(base) ** exponents(dim))
    override = s.long_mscale if is_long else s.short_mscale
    if s.attention_factor is not None:
        return inv_freq, s.attention_factor
    if override is not None:
        return inv_freq, override
    factor = s.factor if s.factor is not None else s.max_length / s.original_length
    return inv_freq, 1.0 if factor <= 1.0 else math.sqrt(1 + math.log(factor) / math.log(s.original_length))


def dynamic_yarn(dim, base, s, length):
    scale = max(length, s.original_length) / s.original_length
    corner = [dim * math.log(s.original_length / (b * 2 * math.pi)) / (2 * math.log(base)) for b in (s.beta_fast, s.beta_slow)]
    if s.truncate:
        corner = [math.floor(corner[0]), math.ceil(corner[1])]
    low, high = max(corner[0], 0), min(corner[1], dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low), 0, 1)
    inv_freq = default(dim, base)
    return inv_freq / np.float32(scale) * ramp + inv_freq * (1 - ramp), 1.0 if scale <= 1 else 0.1 * math.log(scale) + 1


def yarn_by_turns(dim, base, s):
    inv_freq = default(dim, base)
    turns = s.original_length * inv_freq / np.float32(2 * math.pi)
    if s.beta_fast == s.beta_slow:
        kept = (turns >= s.beta_slow).astype(np.float32)
    else:
        kept = np.clip((turns - np.float32(s.beta_slow)) / np.float32(s.beta_fast - s.beta_slow), 0, 1)
    factor = s.attention_factor
    if factor is None:
        factor = 1.0 if s.factor <= 1 else 0.1 * math.log(s.factor) + 1
    return (1 - kept) * inv_freq / np.float32(s.factor) + kept * inv_freq, factor


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    s, half = scaling, dim // 2
    match type(s).__name__:
        case "NTKAlpha":
            return default(dim, base * s.alpha ** (dim / (dim - 2))), 1.0
        case "NTKFixed":
            return default(dim, base * s.factor) / np.float32(s.factor ** (2 / dim)), 1.0
        case "NTKMixed":
            a = math.log(s.factor) / half**s.mix
            return default(dim, base) * np.exp(
                np.float32(-a) * np.arange(1, half + 1, dtype=np.float32) ** np.float32(s.mix)
            ), 1.0
        case "DynamicYaRN":
            return dynamic_yarn(dim, base, s, length)
        case "YaRNByTurns":
            return yarn_by_turns(dim, base, s)
        case "LongRoPE":
            return longrope(dim, base, s, length)
        case "Proportional":
            angles = int(s.rotated * dim // 2)
            inv_freq = np.concatenate([default(dim, base)[:angles], np.zeros(half - angles, np.float32)])
            return inv_freq / np.float32(s.factor), 1.0
        case "Clipped":
            inv_freq, clip = default(dim, base), min(s.pairs, half)
            mask = 0.5 * (1.0 + np.cos(np.linspace(0.0, np.pi, clip, dtype=np.float32)))
            inv_freq[half - clip :] *= 0.0 if s.hard else mask.astype(np.float32)
            return inv_freq, 1.0
        case other:
            raise NotImplementedError(other)


def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None, inverse=False):
    if inverse or layout == "interleaved_to_half":
        raise NotImplementedError
    d = rotary_dim or x.shape[-1]
    inv_freq, factor = rope_frequencies(d, base=base, scaling=scaling, length=length)
    angle = np.einsum("...,i->...i", positions.astype(np.float32), inv_freq)
    cos, sin = np.cos(angle) * np.float32(factor), np.sin(angle) * np.float32(factor)
    if layout == "half":
        x1, x2 = np.split(x[..., :d], 2, axis=-1)
        out = np.concatenate((x1 * cos - x2 * sin, x2 * cos + x1 * sin), axis=-1)
    else:
        x1, x2 = x[..., 0:d:2], x[..., 1:d:2]
        out = np.stack((x1 * cos - x2 * sin, x2 * cos + x1 * sin), axis=-1).reshape(*x.shape[:-1], d)
    return np.concatenate((out, x[..., d:]), axis=-1)
