"""Deviations of positions, frequencies, scalings and tables."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import posref
from posref.scaling import DynamicNTK, Linear, Llama3, NTKAware, YaRN

from .compose import Deviation, Function, Real, Wrap, after, always, argument, narrowed, option


def _positions(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    return {op: argument(0, change) for op in ("rope_table", "sinusoidal", "xpos_scales")}


def positions_of_tables(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return wraps that change the positions of every table and of learned rows."""
    return _positions(change) | {op: argument(0, change) for op in ("axial_table", "learned")}


def _arange(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape) if np.ndim(p) else np.zeros_like(p)


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape) if np.ndim(p) > 1 and p.shape[0] else p


def _others_at_0(p: Any) -> Any:
    return np.concatenate([p[:1], 0 * p[1:]]) if np.ndim(p) > 1 else p


def _from_first(p: Any) -> Any:
    return p - p[..., :1] if np.ndim(p) and p.shape[-1] else p


def _angles(dtype: str) -> dict[str, Wrap]:
    """Return a wrap in which angles are rounded to `dtype`."""

    def deviating(p: Any, inv_freq: Any, /, **rest: Any) -> tuple[Real, Real]:
        angle = narrowed(dtype)(np.asarray(p, dtype=np.float64)[..., None] * inv_freq)
        return np.cos(angle), np.sin(angle)

    return {"waves": lambda _: deviating}


def _inv_freq(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes inv_freq, knowing the options."""
    return {"rope_frequencies": after(lambda result, dim, **options: (change(result[0], dim, **options), result[1]))}


def _rebased(plain: Real, base: float, other: float, dim: int) -> Real:
    """Return plain frequencies of another base."""
    return np.asarray(plain * (other / base) ** -(2 * np.arange(dim // 2) / dim))


def _powers(base: float, dim: float, count: int) -> Real:
    return np.asarray(base ** -(2 * np.arange(count) / dim))


def _of(kind: type | tuple[type, ...], change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that replaces inv_freq under one kind of scaling; `change` takes plain frequencies, the record and options."""

    def wrap(function: Function) -> Function:
        def deviating(dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **rest: Any) -> Any:
            inv_freq, factor = function(dim, base=base, scaling=scaling, length=length)
            if not isinstance(scaling, kind):
                return inv_freq, factor
            return change(function(dim, base=base)[0], inv_freq, scaling, dim, base, length), factor

        return deviating

    return {"rope_frequencies": wrap}


def _factor_of(change: Callable[[Any, float], float]) -> dict[str, Wrap]:
    """Return wraps that change YaRN's factor: where it is computed and where it is applied."""

    def computed(result: Any, dim: int, *, scaling: Any = None, **options: Any) -> Any:
        return (result[0], change(scaling, result[1])) if isinstance(scaling, YaRN) else result

    return {"rope_frequencies": after(computed)}


def _llama3_ramp(plain: Real, scaling: Llama3, turns: Real) -> Real:
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    return np.clip((turns - low) / (high - low), 0, 1) if high > low else (turns >= low) * 1.0


def _llama3_inverted(plain: Real, inv_freq: Real, s: Llama3, *rest: Any) -> Real:
    ramp = _llama3_ramp(plain, s, s.original_length * plain / (2 * np.pi))
    between = (ramp > 0) & (ramp < 1)
    return np.where(between, plain / s.factor * ramp + plain * (1 - ramp), inv_freq)


def _llama3_no_2pi(plain: Real, inv_freq: Real, s: Llama3, *rest: Any) -> Real:
    ramp = _llama3_ramp(plain, s, s.original_length * plain)
    return plain / s.factor * (1 - ramp) + plain * ramp


def _llama3_periods(plain: Real, inv_freq: Real, s: Llama3, *rest: Any) -> Real:
    ramp = _llama3_ramp(plain, s, s.original_length * plain / (2 * np.pi))
    return 1 / (s.factor / plain * (1 - ramp) + 1 / plain * ramp)


def _yarn_ramp(s: Any, dim: int, base: float, top: int) -> Real:
    low, high = (
        dim * np.log(s.original_length / (beta * 2 * np.pi)) / (2 * np.log(base)) for beta in (s.beta_fast, s.beta_slow)
    )
    if s.truncate:
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, top)
    return np.clip((np.arange(dim // 2) - low) / (high - low if high != low else 1e-3), 0, 1)


def _yarn_top(plain: Real, inv_freq: Real, s: YaRN, dim: int, base: float, length: Any) -> Real:
    ramp = _yarn_ramp(s, dim, base, dim // 2 - 1)
    return plain / s.factor * ramp + plain * (1 - ramp)


def _yarn_betas(plain: Real, inv_freq: Real, s: YaRN, dim: int, base: float, length: Any) -> Real:
    exchanged = SimpleNamespace(**(vars(s) | {"beta_fast": s.beta_slow, "beta_slow": s.beta_fast}))  # YaRN refuses it
    ramp = _yarn_ramp(exchanged, dim, base, dim - 1)
    return plain / s.factor * ramp + plain * (1 - ramp)


def _yarn_in_exponent(plain: Real, inv_freq: Real, s: YaRN, dim: int, base: float, length: Any) -> Real:
    ramp = _yarn_ramp(s, dim, base, dim - 1)
    return _rebased(plain, base, s.factor * base, dim) * ramp + plain * (1 - ramp)


def _truncated(s: Any) -> Any:
    return YaRN(**(vars(s) | {"truncate": True})) if isinstance(s, YaRN) else s


def _not_truncated(s: Any) -> Any:
    return YaRN(**(vars(s) | {"truncate": False})) if isinstance(s, YaRN) else s


def _default_betas(s: Any) -> Any:
    return YaRN(**(vars(s) | {"beta_fast": 32, "beta_slow": 1})) if isinstance(s, YaRN) else s


def _g(m: float, factor: float) -> float:
    return m * np.log(factor) / 10 + 1 if factor > 1 else 1.0


def _dynamic(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    return _rebased(plain, base, base * s.factor ** (dim / (dim - 2)), dim)


def _dynamic_unlimited(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    scale = abs(s.factor * length / s.original_length - (s.factor - 1))
    return _rebased(plain, base, base * scale ** (dim / (dim - 2)), dim) if scale else plain


def _no_power(plain: Real, inv_freq: Real, s: Any, dim: int, base: float, length: Any) -> Real:
    """Both kinds of NTK without the power d/(d-2)."""
    return (_ntk_linear if isinstance(s, NTKAware) else _dynamic_linear)(plain, inv_freq, s, dim, base, length)


def _ntk_linear(plain: Real, inv_freq: Real, s: NTKAware, dim: int, base: float, length: Any) -> Real:
    return _rebased(plain, base, base * s.factor, dim)


def _dynamic_linear(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    scale = s.factor * max(length, s.original_length) / s.original_length - (s.factor - 1)
    return _rebased(plain, base, base * scale, dim)


def _stale(function: Function) -> Function:
    """Dynamic NTK that remembers the longest length, and forgets it only below the original one."""
    longest: dict[Any, int] = {}

    def deviating(dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **options: Any) -> Any:
        if isinstance(scaling, DynamicNTK):
            key = (dim, base, scaling)
            forgets = length < scaling.original_length
            length = longest[key] = length if forgets else max(longest.get(key, 0), length)
        return function(dim, base=base, scaling=scaling, length=length, **options)

    return deviating


def _never_reset(function: Function) -> Function:
    """Dynamic NTK that remembers the longest length for good."""
    longest: dict[Any, int] = {}

    def deviating(dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **options: Any) -> Any:
        if isinstance(scaling, DynamicNTK):
            key = (dim, base, scaling)
            length = longest[key] = max(longest.get(key, 0), length)
        return function(dim, base=base, scaling=scaling, length=length, **options)

    return deviating


def _cached(key: Callable[[Any, Any], Any]) -> Wrap:
    """Return a wrap that keeps tables by a part of what they depend on."""

    def wrap(function: Function) -> Function:
        kept: dict[Any, Any] = {}

        def deviating(p: Any, inv_freq: Any, /, **options: Any) -> Any:
            name = key(p, inv_freq)
            if name not in kept:
                kept[name] = function(p, inv_freq, **options)
            return kept[name]

        return deviating

    return wrap


def _doubled(function: Function) -> Function:
    def deviating(p: Any, dim: int, /, *, base: float = 10_000.0, **options: Any) -> Any:
        return function(p, dim, base=base * base, **options)

    return deviating


def _exponents(dim: int, dtype: str, base: float) -> Real:
    return np.asarray(base ** -narrowed(dtype)(2 * np.arange(dim // 2) / dim))


def _mscale_one(s: YaRN, factor: float) -> float:
    if s.attention_factor is not None or s.mscale is not None or s.mscale_all_dim is None:
        return factor
    return _g(1, s.factor) / _g(s.mscale_all_dim, s.factor)


DEVIATIONS = (
    Deviation("positions-plus-1", "positions are one too large", _positions(lambda p: p + 1), "A length is read after an append.",
              "mlx-vlm#1983, fla#766"),
    Deviation("positions-minus-1", "positions are one too small", _positions(lambda p: p - 1),
              "1 is subtracted twice: cumsum(mask) - 1 already counts from 0.", "vLLM#945"),
    Deviation("positions-negated", "positions are negated in the table", _positions(lambda p: -p), "", "lalamo#268"),
    Deviation("positions-absolute", "negative positions lose their sign", _positions(abs), "Positions are unsigned."),
    Deviation("positions-bfloat16", "positions are held in bfloat16", _positions(narrowed("bfloat16")), "", "candle#3520, InternLM#237"),
    Deviation("positions-float16", "positions are held in float16",
              _positions(narrowed("float16")), "", "Modalities#462"),
    Deviation("positions-int16", "positions overflow int16",
              _positions(lambda p: (np.trunc(p) + 2**15) % 2**16 - 2**15), "Fractions are lost as well."),
    Deviation("positions-truncated", "fractional positions are truncated to integers", _positions(np.trunc)),
    Deviation("positions-clamped-4095", "positions beyond 4095 are clamped", _positions(lambda p: np.minimum(p, 4095)),
              "", "vllm-ascend#1266, pegainfer#220"),
    Deviation("positions-table-4096", "positions are rows of a table of 4096: truncated, and clamped to 0 and 4095",
              _positions(lambda p: np.clip(np.trunc(p), 0, 4095)), "", "pegainfer#220"),
    Deviation("positions-wrapped-4096", "positions wrap at 4096", _positions(lambda p: np.trunc(p) % 4096)),
    Deviation("positions-wrapped-8192", "positions wrap at 8192", _positions(lambda p: np.trunc(p) % 8192)),
    Deviation("positions-arange", "0, 1, 2, ... is used in place of the positions", _positions(_arange), "", "keras-hub#1544"),
    Deviation("positions-arange-of-x", "0, 1, 2, ... along the second-last axis of x is used in place of the positions",
              {"rope": lambda f: lambda x, p, /, **o: f(x, np.arange(x.shape[-2]) if x.ndim > 1 else np.zeros(()), **o)}, "",
              "keras-hub#1544"),
    Deviation("positions-from-first", "positions count from the first of the call", _positions(_from_first),
              "Positions are absolute: do not subtract the first position of the call.", "transformers#43082"),
    Deviation("positions-first-row", "row 0's positions are used for all rows", _positions(_first_row), "", "Liger-Kernel#477"),
    Deviation("positions-rows-at-0", "rows after the first are all at position 0", _positions(_others_at_0),
              "Only the first row's offset is filled in."),
    Deviation("positions-4096-at-0", "position 4096 reads row 0", _positions(lambda p: np.where(np.abs(p) == 4096, 0 * p, p)),
              "The token at the boundary of a table of 4096 rows."),
    Deviation("positions-reversed", "positions are in reverse order", _positions(lambda p: p[..., ::-1] if np.ndim(p) else p),
              hint="Look for a flip, or a range that counts down."),
    Deviation("angles-bfloat16", "angles are formed in bfloat16", _angles("bfloat16"), "", "MLX#2791"),
    Deviation("angles-float16", "angles are formed in float16", _angles("float16"), "", "keras-hub#1508"),
    Deviation("cos-of-sine", "the cosine is taken of the sine", {"rope_table": after(
        lambda t, *a, attention_factor=1.0, **o: (np.cos(t[1] / attention_factor) * attention_factor, t[1]))},
        "The angle is overwritten by its sine.", "transformers#11725"),
    Deviation("cos-sin-exchanged", "cosine and sine are exchanged", {"rope_table": after(lambda t, *a, **o: (t[1], t[0]))}, "",
              "flashinfer#3819"),
    Deviation("table-cached-by-shape", "a second call of the same shape gets the first call's table",
              {"rope_table": _cached(lambda p, f: (p.shape, f.shape))},
              "The cache's key needs the positions, not only the shape.", "rotary-embedding-torch#11", stateful=True),
    Deviation("table-cached-by-length", "a later call of the same shape and frequencies gets the first call's table",
              {"rope_table": _cached(lambda p, f: (p.shape, f.tobytes()))}, "Offsets are not part of the cache's key.",
              "rotary-embedding-torch#11", stateful=True),
    Deviation("factor-dropped", "the attention factor is not applied", {"rope_table": option(attention_factor=always(1.0))}, "",
              "exllamav3#259"),
    Deviation("factor-squared", "the attention factor is applied twice", {"rope_table": option(attention_factor=lambda f: f * f)},
              "The factor is in the table and applied again later.",
              "sglang#33558"),
    Deviation("factor-root", "the square root of the attention factor is applied",
              {"rope_table": option(attention_factor=lambda f: f**0.5)},
              "The factor multiplies cos and sin of queries and of keys, so logits grow by its square."),
    Deviation("factor-on-cos-only", "the attention factor is applied to the cosine alone", {"rope_table": after(
        lambda t, *a, attention_factor=1.0, **o: (t[0], t[1] / attention_factor))}),
    Deviation("factor-on-sin-only", "the attention factor is applied to the sine alone", {"rope_table": after(
        lambda t, *a, attention_factor=1.0, **o: (t[0] / attention_factor, t[1]))}),
    Deviation("inv-freq-bfloat16", "frequencies are held in bfloat16", _inv_freq(lambda f, d, **o: narrowed("bfloat16")(f))
              | {"rope_table": argument(1, narrowed("bfloat16"))}, "", "transformers#25681, tt-metal#54516"),
    Deviation("inv-freq-float16", "frequencies are held in float16", _inv_freq(lambda f, d, **o: narrowed("float16")(f))
              | {"rope_table": argument(1, narrowed("float16"))}, "", "transformers#29285"),
    Deviation("exponents-bfloat16", "the exponents of the frequencies are formed in bfloat16",
              _inv_freq(lambda f, d, *, base, scaling=None, **o: f * _exponents(d, "bfloat16", base) / _powers(base, d, d // 2)), "",
              "keras-hub#1508"),
    Deviation("base-10000", "the base is always 10000", {"rope_frequencies": option(base=always(10000.0))}, "",
              "airllm#368, llama.cpp#2773, litgpt#2217"),
    Deviation("base-off-by-one", "the base is one too large", {"rope_frequencies": option(base=lambda b: b + 1)},
              hint="Look at how the base is computed or parsed: max_period + 1, for example."),
    Deviation("exponent-minus-2", "the exponent's denominator is d - 2", _inv_freq(
        lambda f, d, *, base, **o: f * _powers(base, max(d - 2, 1), d // 2) / _powers(base, d, d // 2)), "", "tensor2tensor's form"),
    Deviation("exponent-half", "the exponent is i/d rather than 2i/d", _inv_freq(
        lambda f, d, *, base, **o: f * _powers(base, 2 * d, d // 2) / _powers(base, d, d // 2)), "", "labml#313"),
    Deviation("exponent-floored", "the exponent -2i/d is divided in integers: it is 0, then -1 for all pairs", _inv_freq(
        lambda f, d, *, base, **o: f * base ** np.floor(-2 * np.arange(d // 2) / d) / _powers(base, d, d // 2)),
              "-2 * i // d is an integer."),
    Deviation("exponent-zero", "the exponent 2i/d is divided in integers: it is 0 for all pairs", _inv_freq(
        lambda f, d, *, base, **o: f / _powers(base, d, d // 2)), "2 * i // d is 0."),
    Deviation("exponents-from-1", "the exponents begin at 2/d rather than 0", _inv_freq(
        lambda f, d, *, base, **o: f * base ** (-2 / d)), "A loop counts from 1."),
    Deviation("exponent-doubled", "the exponent is 4i/d rather than 2i/d", _inv_freq(
        lambda f, d, *, base, **o: f * _powers(base, d / 2, d // 2) / _powers(base, d, d // 2)) | {"sinusoidal": _doubled}, "",
        "a much copied tutorial"),
    Deviation("scaling-dropped", "the scaling is ignored",
              {"rope_frequencies": lambda f: lambda dim, /, *, base, scaling=None, length=None, **o: f(dim, base=base, **o)}, "",
              "mlx-vlm#1710, tiny-vllm#1"),
    Deviation("linear-ignored", "linear scaling is ignored", _of(Linear, lambda plain, f, s, *r: plain), "", "mlx-vlm#1710"),
    Deviation("linear-multiplied", "linear scaling multiplies rather than divides",
              _of(Linear, lambda plain, f, s, *r: plain * s.factor),
              "Divide the frequencies by the factor, or positions.", "mlxcel#1324"),
    Deviation("ntk-base-times-factor", "NTK multiplies the base by the factor, without the power d/(d-2)",
              _of(NTKAware, _ntk_linear), "", "the convention of diffusers' Lumina"),
    Deviation("ntk-power-missing", "NTK and dynamic NTK multiply the base without the power d/(d-2)", _of((NTKAware, DynamicNTK), _no_power)),
    Deviation("ntk-as-linear", "NTK divides all frequencies alike", _of(NTKAware, lambda plain, f, s, *r: plain / s.factor), "",
              "keras-hub's 'dynamic'"),
    Deviation("dynamic-ignores-length", "dynamic NTK scales by its factor at every length", _of(DynamicNTK, _dynamic), "",
              "mlx-lm#1606"),
    Deviation("dynamic-base-times-factor", "dynamic NTK multiplies the base, without the power d/(d-2)", _of(DynamicNTK, _dynamic_linear)),
    Deviation("dynamic-stale", "dynamic NTK keeps the largest length it has seen", {"rope_frequencies": _stale},
              "Length L itself does not reset it.", "transformers#27226; transformers 5.23 at exactly the limit", stateful=True),
    Deviation("dynamic-never-reset", "dynamic NTK keeps the largest length it has seen forever", {"rope_frequencies": _never_reset},
              "A short prompt after a long one gets wrong values.", "transformers#25308, transformers#27226", stateful=True),
    Deviation("dynamic-below-limit", "dynamic NTK is applied below the original length too", _of(DynamicNTK, _dynamic_unlimited), "",
              "mlxcel#1389"),
    Deviation("llama3-ramp-inverted", "Llama 3's ramp is reversed between its two bounds", _of(Llama3, _llama3_inverted), "", "TransformerLens#910"),
    Deviation("llama3-bands-exchanged", "Llama 3's ramp is reversed for all pairs: fast ones are divided, slow ones are not",
              _of(Llama3, lambda plain, f, s, *r: plain + plain / s.factor - f)),
    Deviation("llama3-no-2pi", "Llama 3's wavelengths lack the factor 2 pi", _of(Llama3, _llama3_no_2pi),
              hint="The wavelength is 2 pi over the frequency."),
    Deviation("llama3-periods", "Llama 3's ramp mixes periods rather than frequencies", _of(Llama3, _llama3_periods),
              hint="Mix frequencies, not wavelengths."),
    Deviation("llama3-factor-8", "Llama 3's factor is always 8", _of(Llama3, lambda plain, f, s, *r: posref.rope_frequencies(
        r[0], base=r[1], scaling=Llama3(8, s.original_length, s.low_freq_factor, s.high_freq_factor))[0]), "", "swiss-ai/Megatron-LM#80"),
    Deviation("yarn-truncated", "YaRN's correction range is always rounded to integers",
              {"rope_frequencies": option(scaling=_truncated)}, "", "vLLM#27722, SGLang#14270, mlx-lm#1507"),
    Deviation("yarn-not-truncated", "YaRN's correction range is never rounded",
              {"rope_frequencies": option(scaling=_not_truncated)}, "", "keras-hub#2981"),
    Deviation("yarn-high-half", "YaRN's upper correction dimension is clamped to d/2 - 1", _of(YaRN, _yarn_top),
              "high is limited to d - 1, not to the number of pairs.",
              "keras-hub#2981, minimind#602"),
    Deviation("yarn-betas-exchanged", "YaRN's beta_fast and beta_slow are exchanged", _of(YaRN, _yarn_betas),
              hint="beta_fast gives the lower end of the ramp, beta_slow the upper."),
    Deviation("yarn-ramp-inverted", "YaRN's ramp is reversed",
              _of(YaRN, lambda plain, f, s, *r: plain + plain / s.factor - f)),
    Deviation("yarn-default-betas", "YaRN's betas are always 32 and 1", {"rope_frequencies": option(scaling=_default_betas)}),
    Deviation("yarn-factor-in-exponent", "YaRN's factor is inside the exponent", _of(YaRN, _yarn_in_exponent),
              "Mix 1/b^x and 1/(s b^x): the factor is outside the power.", "TVM#18576"),
    Deviation("yarn-as-linear", "YaRN divides all frequencies alike", _of(YaRN, lambda plain, f, s, *r: plain / s.factor)),
    Deviation("yarn-factor-missing", "YaRN's attention factor is 1", _factor_of(lambda s, f: 1.0), "", "exllamav3#259"),
    Deviation("yarn-factor-plain", "YaRN's attention factor is always ln(s)/10 + 1", _factor_of(lambda s, f: _g(1, s.factor)),
              "mscale, mscale_all_dim or attention_factor does not reach the formula.", "vLLM#56446"),
    Deviation("yarn-mscale-zero", "an mscale of 0 counts as not given", _factor_of(
        lambda s, f: f if s.attention_factor is not None or (s.mscale and s.mscale_all_dim) else _g(1, s.factor)),
        "0 is falsy.", "transformers 5.23, MLX#4098"),
    Deviation("yarn-mscale-one", "an mscale that is not given counts as 1 where mscale_all_dim is given", _factor_of(_mscale_one),
              "mscale_all_dim counts only where mscale is given too.", "LMDeploy 0.18.0"),
)  # fmt: skip
