"""
Rotary frequencies and their context extensions.

None        theta_i = 10000^(-2(i-1)/d), i = 1 .. d/2         RoFormer, arXiv:2104.09864, equation (15)
Linear      f'(x, m) = f(x, m L/L')                           Chen et al., arXiv:2306.15595, equation (4)
NTKAware    b' = b s^(d/(d-2))                                bloc97, 2023; YaRN, arXiv:2309.00071, section 3.1
DynamicNTK  b' = b (s l/L - (s-1))^(d/(d-2)), l = max(l, L)   emozilla, 2023; transformers' "dynamic"; YaRN, section 3.3
Llama3      wavelengths against L/low and L/high              Meta's llama-models, models/llama3, apply_scaling
YaRN        NTK by parts over the dimension index             Peng et al., arXiv:2309.00071, sections 3.2 and 3.4
NTKAlpha    b' = b alpha^(d/(d-2))                            HunYuan's modeling code, "dynamic" with alpha
NTKFixed    (s b)^(-2i/d) / s^(2/d)                           Su, kexue.fm/archives/9706, "NTK-RoPE-fixed"
NTKMixed    theta_i exp(-a (i+1)^beta), a (d/2)^beta = ln s   the same, "NTK-RoPE-mixed"
YaRNByTurns NTK by parts over turns                          the same, equations of section 3.2
DynamicYaRN YaRN with s = l/L                                 the authors' code, LlamaDynamicYaRNScaledRotaryEmbedding
LongRoPE    theta_i / lambda_i; sqrt(1 + ln s / ln L)         Ding et al., arXiv:2402.13753, equation (1); Phi-3's code
Proportional theta_i for i < int(p * d // 2), else 0          transformers' "proportional" (Gemma 4), p d in binary64
Clipped     0.5 (1 + cos(linspace(0, pi, n))) on the last n   the authors' code, hrlics/CoPE, modeling_cope.py

YaRN is as in the authors' scaled_rope/LlamaYaRNScaledRotaryEmbedding.py (find_correction_range, linear_ramp_mask); its
mscale and mscale_all_dim as in DeepSeek-V2's yarn_get_mscale; without `truncate` as in gpt-oss.
"""

from typing import Any

from mpmath import mp, mpf

DEFAULTS: dict[str, dict[str, Any]] = {  # Llama 3.1's configuration; YaRN's paper, section 3.4, and code
    "Llama3": {"low_freq_factor": 1, "high_freq_factor": 4},
    "YaRN": {
        "beta_fast": 32, "beta_slow": 1, "truncate": True, "attention_factor": None, "mscale": None, "mscale_all_dim": None,
    },
    "YaRNByTurns": {"beta_fast": 32, "beta_slow": 1, "attention_factor": None, "mscale": None, "mscale_all_dim": None},
    "DynamicYaRN": {"beta_fast": 32, "beta_slow": 1, "truncate": True},
    "LongRoPE": {"max_length": None, "factor": None, "attention_factor": None, "short_mscale": None, "long_mscale": None},
    "Proportional": {"factor": 1},
    "NTKMixed": {"mix": 0.75},
    "Clipped": {"pairs": 20, "hard": False},
}  # fmt: skip


def rope_frequencies(dim: int, *, base: Any, scaling: Any = None, length: int | None = None) -> tuple[list[Any], Any]:
    """Return the dim/2 frequencies in radians per position, and the factor on cos and sin."""
    kind = None if scaling is None else scaling["type"]
    scaling = {**DEFAULTS.get(kind or "", {}), **(scaling or {})}
    base, s = mpf(base), mpf(scaling.get("factor") or 1)
    if kind == "NTKFixed":
        return [(base * s) ** (mpf(-2 * i) / dim) / s ** (mpf(2) / dim) for i in range(dim // 2)], mpf(1)
    if kind in ("NTKAware", "NTKAlpha", "DynamicNTK"):
        base = base * _ntk_factor(s, scaling, length) ** (mpf(dim) / (dim - 2))
    theta = [base ** (mpf(-2 * (i - 1)) / dim) for i in range(1, dim // 2 + 1)]
    if kind in (None, "NTKAware", "NTKAlpha", "DynamicNTK"):
        return theta, mpf(1)
    if kind == "Linear":
        return [f / s for f in theta], mpf(1)
    if kind == "Llama3":
        return [_llama3(f, s, scaling) for f in theta], mpf(1)
    if kind == "NTKMixed":
        beta = mpf(scaling["mix"])
        a = mp.log(s) / (mpf(dim) / 2) ** beta
        return [f * mp.exp(-a * mpf(i) ** beta) for i, f in enumerate(theta, 1)], mpf(1)
    if kind == "Proportional":
        with mp.workprec(53):  # a product of Python floats
            channels = mpf(scaling["rotated"]) * dim
        rope_angles = int(mp.floor(channels / 2))
        return [f / s if i < rope_angles else mpf(0) for i, f in enumerate(theta)], mpf(1)
    if kind == "Clipped":
        clip = min(scaling["pairs"], dim // 2)
        step = mp.pi / (clip - 1) if clip > 1 else mpf(0)
        mask = [mpf(0) if scaling["hard"] or 0 < j == clip - 1 else (1 + mp.cos(step * j)) / 2 for j in range(clip)]
        return theta[: dim // 2 - clip] + [f * m for f, m in zip(theta[dim // 2 - clip :], mask, strict=True)], mpf(1)
    if kind == "LongRoPE":
        return _longrope(theta, scaling, length)
    return _yarn(theta, dim, base, s, scaling, length)


def _ntk_factor(s: Any, scaling: Any, length: Any) -> Any:
    if scaling["type"] != "DynamicNTK":
        return mpf(scaling["alpha"]) if scaling["type"] == "NTKAlpha" else s
    old = scaling["original_length"]
    return s * max(length, old) / old - (s - 1)


def _yarn(theta: list[Any], dim: int, base: Any, s: Any, scaling: Any, length: Any) -> tuple[list[Any], Any]:
    if scaling["type"] == "DynamicYaRN":
        s = mpf(max(length, scaling["original_length"])) / scaling["original_length"]
        scaling = {**DEFAULTS["YaRN"], **scaling}
    if scaling["type"] == "YaRNByTurns":
        return [_by_parts(f, s, scaling) for f in theta], _attention_factor(s, scaling)
    if scaling["type"] not in ("YaRN", "DynamicYaRN"):
        raise ValueError(scaling["type"])
    low, high = _correction_range(dim, base, scaling)
    ramp = [min(max((i - low) / (high - low), mpf(0)), mpf(1)) for i in range(dim // 2)]
    mask = [1 - r for r in ramp]
    return [f / s * (1 - m) + f * m for f, m in zip(theta, mask, strict=True)], _attention_factor(s, scaling)


def _longrope(theta: list[Any], scaling: Any, length: Any) -> tuple[list[Any], Any]:
    old = scaling["original_length"]
    which = "long" if length > old else "short"
    freqs = [f / mpf(factor) for f, factor in zip(theta, scaling[f"{which}_factor"], strict=True)]
    for setting in (scaling["attention_factor"], scaling[f"{which}_mscale"]):
        if setting is not None:
            return freqs, mpf(setting)
    scale = mpf(scaling["factor"]) if scaling["factor"] is not None else mpf(scaling["max_length"]) / old
    return freqs, mpf(1) if scale <= 1 else mp.sqrt(1 + mp.log(scale) / mp.log(old))


def _by_parts(freq: Any, s: Any, scaling: Any) -> Any:
    """h(theta) of YaRN's section 3.2, gamma over r = L / wavelength between alpha and beta."""
    alpha, beta = mpf(scaling["beta_slow"]), mpf(scaling["beta_fast"])
    r = scaling["original_length"] * freq / (2 * mp.pi)
    gamma = mpf(0) if r < alpha else mpf(1) if r >= beta else (r - alpha) / (beta - alpha)
    return (1 - gamma) * freq / s + gamma * freq


def _llama3(freq: Any, s: Any, scaling: Any) -> Any:
    old = mpf(scaling["original_length"])
    low, high = mpf(scaling["low_freq_factor"]), mpf(scaling["high_freq_factor"])
    low_freq_wavelen, high_freq_wavelen = old / low, old / high
    wavelen = 2 * mp.pi / freq
    if wavelen > low_freq_wavelen:
        return freq / s
    if wavelen < high_freq_wavelen:
        return freq
    smooth = (old / wavelen - low) / (high - low)
    return (1 - smooth) * freq / s + smooth * freq


def _correction_range(dim: int, base: Any, scaling: Any) -> tuple[Any, Any]:
    def correction_dim(rotations: Any) -> Any:
        return dim * mp.log(scaling["original_length"] / (mpf(rotations) * 2 * mp.pi)) / (2 * mp.log(base))

    low, high = correction_dim(scaling["beta_fast"]), correction_dim(scaling["beta_slow"])
    if scaling["truncate"]:
        low, high = _floor(low), -_floor(-high)
    if mpf(scaling["beta_fast"]) == mpf(scaling["beta_slow"]) and not scaling["truncate"]:
        high = low  # the same number by definition: do not leave the comparison to rounding
    low, high = max(low, mpf(0)), min(high, mpf(dim - 1))
    if low == high:
        high = low + mpf(1) / 1000  # "Prevent singularity"
    return low, high


def _floor(x: Any) -> Any:
    nearest = mp.nint(x)  # a real that is exactly an integer may come out as 5.999...
    return nearest if abs(x - nearest) <= mp.ldexp(1, -(mp.prec // 2)) else mp.floor(x)


def _attention_factor(s: Any, scaling: Any) -> Any:
    def get_mscale(m: Any) -> Any:
        return mpf(1) if s <= 1 else mpf(m) * mp.log(s) / 10 + 1

    if scaling["attention_factor"] is not None:
        return mpf(scaling["attention_factor"])
    if scaling["mscale"] is not None and scaling["mscale_all_dim"] is not None:
        return get_mscale(scaling["mscale"]) / get_mscale(scaling["mscale_all_dim"])
    return get_mscale(1)
