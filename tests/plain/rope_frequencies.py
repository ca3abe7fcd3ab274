"""As transformers 5.23.0 computes them: modeling_rope_utils.py, lines 184-191 (linear), 247-267 (proportional), 337-343
(dynamic), 430-484 (YaRN), 563-578 (LongRoPE) and 642-663 (Llama 3), and models/llama/modeling_llama.py, lines 100-106."""

import math

import torch

backend = "torch"
scalings = ("Linear", "Proportional", "DynamicNTK", "YaRN", "LongRoPE", "Llama3")


def default(dim, base, pairs=None):
    lanes = dim if pairs is None else 2 * pairs
    return 1.0 / (base ** (torch.arange(0, lanes, 2, dtype=torch.float) / dim))


def proportional(dim, base, s):
    rotated = int(s.rotated * dim // 2)
    inv_freq = torch.cat((default(dim, base, rotated), torch.zeros(dim // 2 - rotated)))
    inv_freq /= s.factor
    return inv_freq


def dynamic(dim, base, s, length):
    length = max(length, s.original_length)
    return default(dim, base * ((s.factor * length / s.original_length) - (s.factor - 1)) ** (dim / (dim - 2)))


def yarn(dim, base, s):
    def get_mscale(scale, mscale=1):
        return 1.0 if scale <= 1 else 0.1 * mscale * math.log(scale) + 1.0

    def correction_dim(rotations):
        return (dim * math.log(s.original_length / (rotations * 2 * math.pi))) / (2 * math.log(base))

    if 0.0 in (s.mscale, s.mscale_all_dim):
        raise NotImplementedError(s)
    factor = s.attention_factor
    if factor is None:
        both = s.mscale and s.mscale_all_dim
        factor = get_mscale(s.factor, s.mscale) / get_mscale(s.factor, s.mscale_all_dim) if both else get_mscale(s.factor)
    low, high = correction_dim(s.beta_fast), correction_dim(s.beta_slow)
    if s.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    ramp = torch.clamp((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low), 0, 1)
    kept = 1 - ramp
    pos_freqs = base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim)
    return (1.0 / (s.factor * pos_freqs)) * (1 - kept) + (1.0 / pos_freqs) * kept, factor


def longrope(dim, base, s, length):
    if s.short_mscale is not None or s.long_mscale is not None:
        raise NotImplementedError(s)
    factor = s.max_length / s.original_length if s.factor is None else s.factor
    attention_factor = s.attention_factor
    if attention_factor is None:
        attention_factor = 1.0 if factor <= 1.0 else math.sqrt(1 + math.log(factor) / math.log(s.original_length))
    chosen = s.long_factor if length and length > s.original_length else s.short_factor
    exponent = torch.arange(0, dim, 2, dtype=torch.int64).float() / dim
    return 1.0 / (torch.tensor(chosen, dtype=torch.float32) * base**exponent), attention_factor


def llama3(dim, base, s):
    inv_freq = default(dim, base)
    low_wavelen, high_wavelen = s.original_length / s.low_freq_factor, s.original_length / s.high_freq_factor
    wavelen = 2 * math.pi / inv_freq
    scaled = torch.where(wavelen > low_wavelen, inv_freq / s.factor, inv_freq)
    smooth = (s.original_length / wavelen - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    smoothed = (1 - smooth) * scaled / s.factor + smooth * scaled
    medium = ~(wavelen < high_wavelen) * ~(wavelen > low_wavelen)
    return torch.where(medium, smoothed, scaled)


def rope_frequencies(dim, /, *, base, scaling=None, length=None):
    match type(scaling).__name__:
        case "NoneType":
            return default(dim, base), 1.0
        case "Linear":
            return default(dim, base) / scaling.factor, 1.0
        case "Proportional":
            return proportional(dim, base, scaling), 1.0
        case "DynamicNTK":
            return dynamic(dim, base, scaling, length), 1.0
        case "YaRN":
            return yarn(dim, base, scaling)
        case "LongRoPE":
            return longrope(dim, base, scaling, length)
        case "Llama3":
            return llama3(dim, base, scaling), 1.0
        case other:
            raise NotImplementedError(other)
