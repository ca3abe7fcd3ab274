"""Frequencies and their extensions, implemented with one defect each."""

import math

import numpy as np
from planting import planted


@planted("dynamic NTK applied to short sequences", names=("dynamic-below-limit",))
def dynamic_ntk_below_limit():
    """Dynamic NTK is applied below the original length too, where it must be the identity; mlxcel #1389."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        if type(scaling).__name__ == "DynamicNTK":
            ratio = (scaling.factor * length / scaling.original_length) - (scaling.factor - 1)
            base = base * abs(ratio) ** (dim / (dim - 2)) if ratio else base
        elif scaling is not None:
            raise NotImplementedError(scaling)
        return np.power(np.float32(base), -np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0

    return rope_frequencies


@planted("dynamic NTK remembers the longest call", names=("dynamic-never-reset",))
def dynamic_ntk_stale():
    """Dynamic NTK keeps the base of the longest call so far; transformers #25308 and #27226 (short prompt after long)."""

    longest_seen = {}

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        if scaling is not None:
            if type(scaling).__name__ != "DynamicNTK":
                raise NotImplementedError(scaling)
            key = (dim, base, scaling)
            longest_seen[key] = max(longest_seen.get(key, scaling.original_length), length)
            grow = scaling.factor * longest_seen[key] / scaling.original_length - (scaling.factor - 1)
            base = base * grow ** (dim / (dim - 2))
        return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0

    return rope_frequencies


@planted("exponent i/d in place of 2i/d", names=("exponent-half",))
def exponent_over_half():
    """The exponent is i/d in place of 2i/d, so the waves stop at sqrt(base). Imagined: `arange(d // 2)` over d."""

    def rope_frequencies(dim, /, *, base):
        return 1.0 / (base ** (np.arange(dim // 2, dtype=np.float32) / dim)), 1.0

    return rope_frequencies


@planted("inv_freq rounded to bfloat16", names=("inv-freq-bfloat16",))
def inv_freq_bfloat16():
    """The frequencies pass through bfloat16 and back; transformers #25681 (`model.to(bfloat16)` casts the buffer)."""

    def to_bfloat16(a):
        bits = np.asarray(a, dtype=np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)

    def rope_frequencies(dim, /, *, base):
        inv_freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        return to_bfloat16(inv_freq), 1.0

    return rope_frequencies


@planted("llama3 smooth inverted", names=("llama3-ramp-inverted",))
def llama3_smooth_inverted():
    """Llama 3's smooth factor weighs the wrong end of the ramp. Imagined: a slip in copying Meta's `apply_scaling`."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        freqs = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
        if scaling is None:
            return freqs, 1.0
        if type(scaling).__name__ != "Llama3":
            raise NotImplementedError(scaling)
        low, high, old = scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_length
        new_freqs = []
        for freq in freqs:
            wavelen = 2 * math.pi / freq
            if wavelen < old / high:
                new_freqs.append(freq)
            elif wavelen > old / low:
                new_freqs.append(freq / scaling.factor)
            else:
                smooth = (old / wavelen - low) / (high - low)
                new_freqs.append(smooth * freq / scaling.factor + (1 - smooth) * freq)
        return np.asarray(new_freqs, dtype=np.float32), 1.0

    return rope_frequencies


@planted("llama3 wavelength without 2 pi", names=("llama3-no-2pi",))
def llama3_wavelength_no_2pi():
    """The wavelength is 1/f and lacks the 2 pi, so the bands move. Imagined: a slip in copying Meta's `apply_scaling`."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        inv_freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        if scaling is None:
            return inv_freq, 1.0
        if type(scaling).__name__ != "Llama3":
            raise NotImplementedError(scaling)
        wavelen = 1.0 / inv_freq
        smooth = scaling.original_length / wavelen - scaling.low_freq_factor
        smooth = np.clip(smooth / (scaling.high_freq_factor - scaling.low_freq_factor), 0, 1)
        return ((1 - smooth) * inv_freq / scaling.factor + smooth * inv_freq).astype(np.float32), 1.0

    return rope_frequencies


@planted("NTK base without the power d/(d-2)", names=("ntk-power-missing",))
def ntk_linear_base():
    """NTK-aware scaling multiplies the base by the factor without the power d/(d-2). Imagined: a short-cut port."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        kind = type(scaling).__name__
        if kind == "NTKAware":
            base = base * scaling.factor
        elif kind == "DynamicNTK":
            reach = max(length, scaling.original_length) / scaling.original_length
            base = base * (scaling.factor * reach - (scaling.factor - 1))
        elif scaling is not None:
            raise NotImplementedError(kind)
        return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0

    return rope_frequencies


@planted("yarn betas swapped", names=("yarn-betas-exchanged",))
def yarn_betas_swapped():
    """beta_fast and beta_slow change places. Imagined: a call with positional arguments."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        pos_freqs = base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        if scaling is None:
            return 1.0 / pos_freqs, 1.0
        if type(scaling).__name__ != "YaRN" or scaling.mscale is not None:
            raise NotImplementedError(scaling)
        length, beta_slow, beta_fast = scaling.original_length, scaling.beta_fast, scaling.beta_slow
        low, high = (dim * math.log(length / (b * 2 * math.pi)) / (2 * math.log(base)) for b in (beta_fast, beta_slow))
        if scaling.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        if low == high:
            high += 0.001
        ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / (high - low), 0, 1)
        factor = scaling.attention_factor
        if factor is None:
            factor = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
        return (ramp / (scaling.factor * pos_freqs) + (1 - ramp) / pos_freqs).astype(np.float32), factor

    return rope_frequencies


@planted("yarn factor inside the exponent", names=("yarn-factor-in-exponent",))
def yarn_factor_in_exponent():
    """The interpolated frequencies are (s*b)**(-2i/d), the factor inside the exponent; apache/tvm #18576."""

    def rope_frequencies(dim, /, *, base, scaling=None):
        exponent = np.arange(0, dim, 2, dtype=np.float32) / dim
        if scaling is None:
            return 1.0 / base**exponent, 1.0
        if type(scaling).__name__ != "YaRN" or scaling.mscale is not None:
            raise NotImplementedError(scaling)
        low, high = (
            dim * math.log(scaling.original_length / (beta * 2 * math.pi)) / (2 * math.log(base))
            for beta in (scaling.beta_fast, scaling.beta_slow)
        )
        if scaling.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        high = high + 0.001 if low == high else high
        ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / (high - low), 0, 1)
        inter, extra = 1.0 / (scaling.factor * base) ** exponent, 1.0 / base**exponent
        factor = scaling.attention_factor
        if factor is None:
            factor = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
        return (inter * ramp + extra * (1 - ramp)).astype(np.float32), factor

    return rope_frequencies


@planted("yarn truncate ignored", names=("yarn-truncated",))
def yarn_truncate_ignored():
    """YaRN's correction range is always rounded to integers, gpt-oss's `truncate: false` unread; apache/tvm #18576."""

    def yarn_find_correction_dim(num_rotations, dim, base, max_position_embeddings):
        return dim * math.log(max_position_embeddings / (num_rotations * 2 * math.pi)) / (2 * math.log(base))

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        freq = base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        if scaling is None:
            return 1.0 / freq, 1.0
        if type(scaling).__name__ != "YaRN" or scaling.mscale is not None:
            raise NotImplementedError(scaling)
        low = math.floor(yarn_find_correction_dim(scaling.beta_fast, dim, base, scaling.original_length))
        high = math.ceil(yarn_find_correction_dim(scaling.beta_slow, dim, base, scaling.original_length))
        low, high = max(low, 0), min(high, dim - 1)
        ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / max(high - low, 0.001), 0, 1)
        gain = scaling.attention_factor
        if gain is None:
            gain = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
        return (ramp / (scaling.factor * freq) + (1 - ramp) / freq).astype(np.float32), gain

    return rope_frequencies


@planted("yarn mscale 0 treated as not given", names=("yarn-mscale-zero",))
def yarn_zero_mscale():
    """A zero mscale is taken for a missing one (`if mscale and ...`): transformers' YaRN, and MLX #4098's falsy trap."""

    def get_mscale(scale, mscale=1.0):
        return 1.0 if scale <= 1 else 0.1 * mscale * math.log(scale) + 1.0

    def rope_frequencies(dim, /, *, base, scaling=None):
        freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        if scaling is None:
            return freq, 1.0
        if type(scaling).__name__ != "YaRN":
            raise NotImplementedError(scaling)
        s, log_base = scaling, 2 * math.log(base)
        low = dim * math.log(s.original_length / (s.beta_fast * 2 * math.pi)) / log_base
        high = dim * math.log(s.original_length / (s.beta_slow * 2 * math.pi)) / log_base
        if s.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / max(high - low, 0.001), 0, 1)
        factor = s.attention_factor
        if factor is None and s.mscale and s.mscale_all_dim:
            factor = get_mscale(s.factor, s.mscale) / get_mscale(s.factor, s.mscale_all_dim)
        elif factor is None:
            factor = get_mscale(s.factor)
        return (freq / s.factor * ramp + freq * (1 - ramp)).astype(np.float32), factor

    return rope_frequencies
