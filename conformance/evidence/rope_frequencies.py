"""RoPE frequencies and context scaling: cases and known mistakes."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

import posref
from posref.rotary import yarn
from posref.scaling import (
    Clipped,
    DynamicNTK,
    DynamicYaRN,
    Linear,
    Llama3,
    LongRoPE,
    NTKAlpha,
    NTKAware,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRN,
    YaRNByTurns,
)

from .shared.angle_tables import changed_frequencies, plain_frequencies
from .shared.rotary import (
    BASE,
    DEEPSEEK_V2,
    EXTENDED,
    GPT_OSS,
    KIMI,
    LLAMA4,
    LONGROPE_LENGTHS,
    QWEN,
    RISING,
    SIX,
    SIX_LONG,
    SMALL,
    UNROUNDED,
    YARN_LENGTHS,
)
from .tools import Case, Deviation, Function, Real, Step, Wrap, after, always, around, deviations_of, narrowed, option, sequence
from .tools.hints import BRANCH, DEFAULT, EXPONENT, FACTOR, IGNORED, KEEP_FLOAT32

USUAL = {"dim": 6, "base": 10000.0}


def _case(
    name: str, dim: int, comment: str = "", *, base: float = BASE, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of rope_frequencies."""
    params = {"dim": dim, "base": base, **params}
    return Case(f"rope_frequencies/{name}", params, {}, comment, kind, tier)


def _frequency_lengths(dim: int, base: float, scaling: DynamicNTK, lengths: tuple[int, ...]) -> tuple[Step, ...]:
    """Return calls of rope_frequencies with these lengths."""
    return tuple(Step({"dim": dim, "base": base, "scaling": scaling, "length": n}) for n in lengths)


def _refused(name: str, dim: int, scaling: Scaling, comment: str, **options: Any) -> Case:
    params = {"dim": dim, "base": BASE, "scaling": scaling, **options}
    return Case(f"rope_frequencies/refused/{name}", params, {}, comment, "reject")


def _rising_frequencies(scaling: Scaling, lengths: tuple[int, ...]) -> Case:
    """Return a sequence in which the length rises, falls and meets the original one."""
    steps = tuple(Step({"dim": 12, "base": BASE, "scaling": scaling, "length": n}) for n in lengths)
    return sequence(f"rope_frequencies/sequence/{type(scaling).__name__.lower()}", RISING, steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", 8, tier="smoke"),
        _case("plain/one-pair", 2, "the one frequency is 1", base=500.0),
        _case("linear/4", 20, scaling=Linear(4)),
        _case("linear/2.5", 48, base=5e5, scaling=Linear(2.5)),
        _case("dynamic/below", 20, scaling=DynamicNTK(2, 16), length=7),
        _case("dynamic/at", 20, scaling=DynamicNTK(2, 16), length=16),
        _case("dynamic/one-above", 20, scaling=DynamicNTK(2, 16), length=17),
        _case("dynamic/above", 96, base=5e5, scaling=DynamicNTK(4, 2048), length=5000),
        _case("dynamic/none", 12, "no token yet", base=5e5, scaling=DynamicNTK(4, 600), length=0),
        _case("llama3/limits", 20, base=2e4, scaling=Llama3(6, 500, 2, 9)),
        _case("llama3/llama-4", 128, base=5e5, scaling=LLAMA4),
        _case("llama3/step", 20, scaling=Llama3(4, 700, 2, 2)),
        _case("yarn/qwen-2.5", 128, base=1e6, scaling=QWEN),
        _case("yarn/gpt-oss", 64, base=150000.0, scaling=GPT_OSS),
        _case("yarn/deepseek-v2-lite", 64, scaling=DEEPSEEK_V2),
        _case("yarn/kimi-k2", 64, base=50000.0, scaling=KIMI),
        _case("yarn/mscale-all-dim-alone", 14, "nor the reverse", scaling=YaRN(6, 512, mscale_all_dim=0.5)),
        _case("yarn/mscale-all-dim-only", 10, "mscale is not 1 where it is not given",
              scaling=YaRN(12, 700, mscale_all_dim=1.25)),
        _case("yarn/zero-mscale", 12, scaling=YaRN(9, 800, mscale=0.0, mscale_all_dim=0.8)),
        _case("yarn/zero-mscale-all-dim", 14, scaling=YaRN(9, 800, mscale=0.5, mscale_all_dim=0.0)),
        _case("yarn/given-over-mscale", 20, "attention_factor wins", base=3e4,
              scaling=YaRN(5, 700, attention_factor=0.875, mscale=1.5, mscale_all_dim=0.25)),
        _case("yarn/unrounded", 24, scaling=UNROUNDED),
        _case("yarn/long-original", 64, "high is 35, above d/2 - 1 = 31", scaling=YaRN(4, 131072)),
        _case("yarn/long-original-48", 48, scaling=YaRN(6, 200000)),
        _case("yarn/high-clamped", 10, "high is d - 1", base=100.0, scaling=YaRN(4, 2000000)),
        _case("yarn/both-zero", 12, "low and high are 0: the ramp is 1/1000 wide", scaling=YaRN(4, 6)),
        _case("yarn/factor-below-one", 14, scaling=YaRN(0.75, 2000)),
        sequence("rope_frequencies/sequence/dynamic", "long, short, long, the limit, longer",
                 _frequency_lengths(12, BASE, DynamicNTK(2, 16), (40, 8, 40, 16, 41))),
        sequence("rope_frequencies/sequence/dynamic-limit", "long, then exactly the limit",
                 _frequency_lengths(20, 5e5, DynamicNTK(4, 2048), (5000, 2048, 3000))),
        _case("refused/odd", 7, "lanes rotate in pairs", kind="reject"),
        _case("refused/base", 8, "base must be above 0", base=-1.0, kind="reject"),
        _case("refused/no-length", 8, "dynamic NTK without a length", kind="reject", scaling=DynamicNTK(2, 16)),
        _case("refused/betas", 8, "fast pairs turn more often: beta_fast is at least beta_slow",
              kind="reject", scaling=YaRN(4, 2048, beta_fast=1, beta_slow=32)),
        _case("refused/ntk-pair", 2, "the power d/(d - 2) divides by zero", kind="reject", scaling=NTKAware(2)),
        *(Case(f"rope_frequencies/{case.name}", {"dim": case.dim, **case.params}, {}, case.comment) for case in EXTENDED),
        _rising_frequencies(SMALL, LONGROPE_LENGTHS),
        _rising_frequencies(DynamicYaRN(48), YARN_LENGTHS),
        _refused("longrope-length", 12, SMALL, "LongRoPE needs the length"),
        _refused("longrope-list", 10, SMALL, "a list of six entries for five pairs", length=5),
        _refused("longrope-ratio", 12, LongRoPE(SIX, SIX_LONG, 32), "nothing says the factor on cos and sin", length=5),
        _refused("longrope-zero", 12, LongRoPE((0.0, *SIX[1:]), SIX_LONG, 32, factor=2.0), "an entry of 0 divides", length=5),
        _refused("yarn-dynamic-length", 12, DynamicYaRN(64), "DynamicYaRN needs the length"),
        _refused("yarn-turns-betas", 12, YaRNByTurns(4, 2048, beta_fast=1, beta_slow=8), "fast pairs turn more often"),
        _refused("proportional-share", 12, Proportional(1.5), "more than the head"),
        _refused("clipped-pairs", 12, Clipped(-1), "pairs are counted from the last"),
        _refused("ntk-alpha-dim", 2, NTKAlpha(4.0), "the power d/(d-2) is infinite"),
        _refused("ntk-mixed-factor", 12, NTKMixed(0.0), "a factor of 0"),
    )  # fmt: skip


DIVIDED = "Divide the frequencies by the factor, or positions."
BASE_ALONE = "Only the base changes, beyond the original length: divide neither frequencies nor positions by the factor."
NTK_POWER = "NTK's power d/(d - 2) makes the last pair slow down by exactly the factor."
FAST_PAIRS = "The fast pairs stay as they are: not every pair is divided by the factor."
LENGTH = "Compare max(length, L) where the method's factor is formed: below the original length nothing changes."
RAMP = "Fast pairs stay, slow pairs are divided: compare which end of the ramp is 0 and which is 1."
EQUATION = "The paper's equation differs here from all code."
LISTS = "Compare the length with the original one, at each call: above it the long list is used."
CLIPPED = "The last n pairs are multiplied by (1 + cos(pi j/(n-1)))/2, from 1 at j = 0 to 0 at the last pair."
DENOMINATOR = "The denominator is the whole head's size."
FIRST_PAIRS = "Only the first pairs of the head rotate; the others have frequency 0."


def _rebased(plain: Real, base: float, other: float, dim: int) -> Real:
    """Return plain frequencies of another base."""
    return np.asarray(plain * (other / base) ** -(2 * np.arange(dim // 2) / dim))


def _llama3_step(plain: Real, inv_freq: Real, s: Llama3, dim: int, base: float, length: Any) -> Real:
    turns = s.original_length * plain / (2 * np.pi)
    return np.where(turns < np.sqrt(s.low_freq_factor * s.high_freq_factor), plain / s.factor, plain)


def _of(kind: type | tuple[type, ...], change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that replaces inv_freq under one kind of scaling; `change` takes plain ones, the record and options."""

    def deviating(function: Function, dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **rest: Any) -> Any:
        inv_freq, factor = function(dim, base=base, scaling=scaling, length=length)
        if not isinstance(scaling, kind):
            return inv_freq, factor
        return change(function(dim, base=base)[0], inv_freq, scaling, dim, base, length), factor

    return {"rope_frequencies": around(deviating)}


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


def _llama3_pi_multiplied(plain: Real, inv_freq: Real, s: Llama3, *rest: Any) -> Real:
    ramp = _llama3_ramp(plain, s, s.original_length / 2 * np.pi * plain)
    return plain / s.factor * (1 - ramp) + plain * ramp


def _yarn_dimensions(turns: Callable[[float, float], float], log: Callable[[float], float] = np.log) -> Callable[..., Real]:
    """Return what changes YaRN's correction range: `turns` of L and beta, whose logarithm is `log`."""

    def change(plain: Real, inv_freq: Real, s: YaRN, dim: int, base: float, length: Any) -> Real:
        low, high = (
            dim * float(log(turns(s.original_length, beta))) / (2 * np.log(base)) for beta in (s.beta_fast, s.beta_slow)
        )
        if s.truncate:
            low, high = np.floor(low), np.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        ramp = np.clip((np.arange(dim // 2) - low) / (high - low if high != low else 1e-3), 0, 1)
        return plain / s.factor * ramp + plain * (1 - ramp)

    return change


def _gain_of_log(log: Callable[[float], float]) -> dict[str, Wrap]:
    """Return wraps in which YaRN's own attention factor takes another logarithm of s; factors that are given stay."""

    def gain(s: YaRN, factor: float) -> float:
        if s.attention_factor is not None or s.factor <= 1:
            return factor
        above, below = 1.0, 0.0
        if s.mscale is not None and s.mscale_all_dim is not None:
            above, below = s.mscale, s.mscale_all_dim
        return (0.1 * above * log(s.factor) + 1) / (0.1 * below * log(s.factor) + 1)

    return _factor_of(gain)


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


def _g(m: float, factor: float) -> float:
    return m * np.log(factor) / 10 + 1 if factor > 1 else 1.0


def _dynamic(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    return _rebased(plain, base, base * s.factor ** (dim / (dim - 2)), dim)


def _dynamic_unlimited(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    scale = abs(s.factor * length / s.original_length - (s.factor - 1))
    return _rebased(plain, base, base * scale ** (dim / (dim - 2)), dim) if scale else plain


def _ntk_linear(plain: Real, inv_freq: Real, s: NTKAware, dim: int, base: float, length: Any) -> Real:
    return _rebased(plain, base, base * s.factor, dim)


def _dynamic_linear(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    scale = s.factor * max(length, s.original_length) / s.original_length - (s.factor - 1)
    return _rebased(plain, base, base * scale, dim)


def _dynamic_ratio(plain: Real, inv_freq: Real, s: DynamicNTK, dim: int, base: float, length: int) -> Real:
    """Dynamic NTK whose scale lacks the term that makes it 1 at the original length."""
    scale = s.factor * max(length, s.original_length) / s.original_length
    return _rebased(plain, base, base * scale ** (dim / (dim - 2)), dim)


def _no_power(plain: Real, inv_freq: Real, s: Any, dim: int, base: float, length: Any) -> Real:
    """Both kinds of NTK without the power d/(d-2)."""
    return (_ntk_linear if isinstance(s, NTKAware) else _dynamic_linear)(plain, inv_freq, s, dim, base, length)


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


def _mscale_one(s: YaRN, factor: float) -> float:
    if s.attention_factor is not None or s.mscale is not None or s.mscale_all_dim is None:
        return factor
    return _g(1, s.factor) / _g(s.mscale_all_dim, s.factor)


def _records(kind: type, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes a record of one kind, and the length with it: `change` gives both."""

    def deviating(function: Function, dim: int, /, *, scaling: Any = None, length: Any = None, **options: Any) -> Any:
        if isinstance(scaling, kind):
            scaling, length = change(scaling, length)
        return function(dim, scaling=scaling, length=length, **options)

    return {"rope_frequencies": around(deviating)}


def _results(kind: type, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes frequencies and factor under a record of one kind."""

    def deviating(
        function: Function, dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **options: Any
    ) -> Any:
        result = function(dim, base=base, scaling=scaling, length=length, **options)
        return change(*result, dim, base, scaling, length) if isinstance(scaling, kind) else result

    return {"rope_frequencies": around(deviating)}


def _short(s: LongRoPE, length: Any) -> Any:
    return replace(s, long_factor=s.short_factor, long_mscale=s.short_mscale), length


def _long(s: LongRoPE, length: Any) -> Any:
    return replace(s, short_factor=s.long_factor, short_mscale=s.long_mscale), length


def _inverse_lists(s: LongRoPE, length: Any) -> Any:
    short, long = (tuple(1 / entry for entry in entries) for entries in (s.short_factor, s.long_factor))
    return replace(s, short_factor=short, long_factor=long), length


def _without_mscales(s: LongRoPE, length: Any) -> Any:
    if s.factor is None and s.max_length is None:
        return s, length
    return replace(s, short_mscale=None, long_mscale=None), length


def _one_mscale(s: LongRoPE, length: Any) -> Any:
    return (s if s.short_mscale is None else replace(s, long_mscale=s.short_mscale)), length


def _mixed(first: int, mix: float | None) -> Callable[..., Any]:
    """Return frequencies of NTKMixed with pairs counted from `first`, or another exponent."""

    def change(f: Real, m: Any, dim: int, base: float, s: NTKMixed, length: Any) -> Any:
        i, beta = np.arange(dim // 2), s.mix if mix is None else mix
        plain = base ** -(2 * i / dim)
        return plain * np.exp(-np.log(s.factor) * ((i + first) / (dim // 2)) ** beta), m

    return change


def _own_denominator(f: Real, m: Any, dim: int, base: float, s: Proportional, length: Any) -> Any:
    turning = int(s.rotated * dim // 2)
    out = np.zeros(dim // 2)
    out[:turning] = base ** -(np.arange(turning) / max(turning, 1)) / s.factor
    return out, m


def _always_dynamic(s: DynamicYaRN, length: Any) -> Any:
    shorter = min(length, s.original_length)
    return YaRN(max(length, 1) / s.original_length, s.original_length, s.beta_fast, s.beta_slow, s.truncate,
                attention_factor=1.0 if shorter == length else None), length  # fmt: skip


def _fraction(f: Real, m: Any, dim: int, base: float, s: Proportional, length: Any) -> Any:
    turning = int(s.rotated * dim // 2)
    out = np.zeros(dim // 2)
    out[:turning] = base ** -(2 * np.arange(turning) / max(s.rotated * dim, 1.0)) / s.factor
    return out, m


def _clip(gain: Callable[[Real, int], Real]) -> dict[str, Wrap]:
    """Return a wrap in which clipped RoPE multiplies the last n pairs by another function of j/(n-1)."""

    def change(plain: Real, f: Real, s: Clipped, dim: int, *rest: Any) -> Real:
        n = min(s.pairs, dim // 2)
        gains = gain(np.arange(n) / max(n - 1, 1), n)
        return f if s.hard else np.concatenate([plain[: dim // 2 - n], plain[dim // 2 - n :] * gains])

    return _of(Clipped, change)


def _extended_length(s: YaRN, length: Any) -> Any:
    return replace(s, original_length=max(1, round(s.original_length * s.factor))), length


def _other(kind: type[YaRN | YaRNByTurns], s: YaRN | YaRNByTurns) -> Any:
    factors = {} if isinstance(s, YaRNByTurns) else {"attention_factor": yarn.attention_factor(s, None, np)}
    shared = {n: getattr(s, n) for n in ("factor", "original_length", "beta_fast", "beta_slow", "attention_factor")}
    return kind(**{**shared, **factors})


def _unscaled(s: Scaling, length: Any) -> Any:
    return None, length


PARENTHESIS = "Look for a missing parenthesis: / 2 * pi multiplies by pi."
ONE_LOGARITHM = "All logarithms are natural: look for log10 or log2."
_deviation = deviations_of("rope_frequencies")

DEVIATIONS = (
    Deviation("exponents-bfloat16", "the exponents of the frequencies are formed in bfloat16",
              changed_frequencies(lambda f, d, *, base, scaling=None, **o: f / plain_frequencies(base, d, d // 2)
              * base ** -narrowed("bfloat16")(2 * np.arange(d // 2) / d)), hint=KEEP_FLOAT32, seen_in="keras-hub#1508"),
    _deviation("base-10000", "the base is always 10000", option(base=always(10000.0)), hint=DEFAULT,
               seen_in="airllm#368, llama.cpp#2773, litgpt#2217"),
    _deviation("base-off-by-one", "the base is one too large", option(base=lambda b: b + 1),
               hint="Look at how the base is computed or parsed: max_period + 1, for example."),
    Deviation("exponent-minus-2", "the exponent's denominator is d - 2",
              changed_frequencies(lambda f, d, *, base, **o: f * plain_frequencies(base, max(d - 2, 1),
              d // 2) / plain_frequencies(base, d, d // 2)), hint=EXPONENT, seen_in="tensor2tensor's form"),
    Deviation("exponent-half", "the exponent is i/d rather than 2i/d",
              changed_frequencies(lambda f, d, *, base, **o: f * plain_frequencies(base, 2 * d,
              d // 2) / plain_frequencies(base, d, d // 2)), hint=EXPONENT, seen_in="labml#313", one_of="exponent"),
    Deviation("exponent-floored", "the exponent -2i/d is divided in integers: it is 0, then -1 for all pairs",
              changed_frequencies(lambda f, d, *, base,
              **o: f * base ** np.floor(-2 * np.arange(d // 2) / d) / plain_frequencies(base, d, d // 2)),
              hint="-2 * i // d is an integer.", one_of="exponent"),
    Deviation("exponent-zero", "the exponent 2i/d is divided in integers: it is 0 for all pairs",
              changed_frequencies(lambda f, d, *, base, **o: f / plain_frequencies(base, d, d // 2)), hint="2 * i // d is 0.",
              one_of="exponent"),
    Deviation("exponents-from-1", "the exponents begin at 2/d rather than 0",
              changed_frequencies(lambda f, d, *, base, **o: f * base ** (-2 / d)), hint="A loop counts from 1."),
    _deviation("scaling-dropped", "the scaling is ignored",
               lambda f: lambda dim, /, *, base, scaling=None, length=None, **o: f(dim, base=base, **o), hint=IGNORED,
               seen_in="mlx-vlm#1710, tiny-vllm#1"),
    Deviation("linear-ignored", "linear scaling is ignored", _of(Linear, lambda plain, f, s, *r: plain), hint=IGNORED,
              seen_in="mlx-vlm#1710", one_of="linear"),
    Deviation("linear-multiplied", "linear scaling multiplies rather than divides",
              _of(Linear, lambda plain, f, s, *r: plain * s.factor),
              hint=DIVIDED, seen_in="mlxcel#1324", one_of="linear"),
    Deviation("linear-on-base", "linear scaling multiplies the base by the factor",
              _of(Linear, lambda plain, f, s, dim, base, length: _rebased(plain, base, s.factor * base, dim)),
              hint=DIVIDED),
    Deviation("ntk-base-times-factor", "NTK multiplies the base by the factor, without the power d/(d-2)",
              _of(NTKAware, _ntk_linear), hint=NTK_POWER, seen_in="the convention of diffusers' Lumina"),
    Deviation("ntk-power-missing", "NTK and dynamic NTK multiply the base without the power d/(d-2)",
              _of((NTKAware, DynamicNTK), _no_power), hint=NTK_POWER),
    Deviation("ntk-as-linear", "NTK divides all frequencies alike", _of(NTKAware, lambda plain, f, s, *r: plain / s.factor),
              hint=FAST_PAIRS, seen_in="keras-hub's 'dynamic'"),
    Deviation("dynamic-ignores-length", "dynamic NTK scales by its factor at every length", _of(DynamicNTK, _dynamic),
              hint=IGNORED, seen_in="mlx-lm#1606"),
    Deviation("dynamic-scale-of-length", "dynamic NTK's scale is s n / L, without the term - (s - 1)",
              _of(DynamicNTK, _dynamic_ratio), hint="The scale of the base is s n / L - (s - 1), which is 1 at n = L."),
    Deviation("dynamic-base-times-factor", "dynamic NTK multiplies the base, without the power d/(d-2)",
              _of(DynamicNTK, _dynamic_linear), hint=NTK_POWER),
    _deviation("dynamic-stale", "dynamic NTK keeps the largest length it has seen", _stale,
               hint="Length L itself does not reset it.", seen_in="transformers#27226; transformers 5.23 at exactly the limit",
               stateful=True),
    _deviation("dynamic-never-reset", "dynamic NTK keeps the largest length it has seen forever", _never_reset,
               hint="A short prompt after a long one gets wrong values.", seen_in="transformers#25308, transformers#27226",
               stateful=True),
    Deviation("dynamic-divided", "dynamic NTK divides all frequencies by its factor too, at every length",
              _of(DynamicNTK, lambda plain, f, s, *r: f / s.factor), hint=BASE_ALONE,
              seen_in="huggingface/text-generation-inference#816"),
    Deviation("dynamic-below-limit", "dynamic NTK is applied below the original length too",
              _of(DynamicNTK, _dynamic_unlimited), hint=LENGTH, seen_in="mlxcel#1389"),
    Deviation("llama3-ramp-inverted", "Llama 3's ramp is reversed between its two bounds", _of(Llama3, _llama3_inverted),
              hint=RAMP, seen_in="TransformerLens#910", one_of="Llama 3's ramp"),
    Deviation("llama3-step", "Llama 3 has no ramp: a step stands at the geometric mean of its two bounds",
              _of(Llama3, _llama3_step), hint=RAMP),
    Deviation("llama3-bands-exchanged", "Llama 3's ramp is reversed for all pairs: fast ones are divided, slow ones are not",
              _of(Llama3, lambda plain, f, s, *r: plain + plain / s.factor - f), hint=RAMP, one_of="Llama 3's ramp"),
    Deviation("llama3-no-2pi", "Llama 3's wavelengths lack the factor 2 pi", _of(Llama3, _llama3_no_2pi),
              hint="The wavelength is 2 pi over the frequency."),
    Deviation("llama3-pi-multiplied", "Llama 3's ramp multiplies by pi: L / 2 * pi where it should be L / (2 pi)",
              _of(Llama3, _llama3_pi_multiplied), hint=PARENTHESIS, seen_in="InternLM/lmdeploy#2155"),
    Deviation("llama3-periods", "Llama 3's ramp mixes periods rather than frequencies", _of(Llama3, _llama3_periods),
              hint="Mix frequencies, not wavelengths."),
    Deviation("llama3-factor-8", "Llama 3's factor is always 8",
              _of(Llama3,
              lambda plain, f, s, *r: posref.rope_frequencies(r[0], base=r[1],
              scaling=Llama3(8, s.original_length, s.low_freq_factor, s.high_freq_factor))[0]), hint=DEFAULT,
              seen_in="swiss-ai/Megatron-LM#80"),
    _deviation("yarn-truncated", "YaRN's correction range is always rounded to integers",
               option(scaling=lambda s: YaRN(**(vars(s) | {"truncate": True})) if isinstance(s, YaRN) else s), hint=BRANCH,
               seen_in="vLLM#27722, SGLang#14270, mlx-lm#1507", one_of="YaRN's limits"),
    _deviation("yarn-not-truncated", "YaRN's correction range is never rounded",
               option(scaling=lambda s: YaRN(**(vars(s) | {"truncate": False})) if isinstance(s, YaRN) else s), hint=BRANCH,
               seen_in="keras-hub#2981", one_of="YaRN's limits"),
    Deviation("yarn-high-half", "YaRN's upper correction dimension is clamped to d/2 - 1", _of(YaRN, _yarn_top),
              hint="high is limited to d - 1, not to the number of pairs.", seen_in="keras-hub#2981, minimind#602"),
    Deviation("yarn-no-2pi", "YaRN's correction range lacks the factor 2 pi",
              _of(YaRN, _yarn_dimensions(lambda length, beta: length / beta)), hint="Full rotations are L / (2 pi) over beta."),
    Deviation("yarn-pi-multiplied", "YaRN's correction range multiplies by pi: L / 2 * pi where it should be L / (2 pi)",
              _of(YaRN, _yarn_dimensions(lambda length, beta: length / (beta * 2) * np.pi)), hint=PARENTHESIS),
    Deviation("yarn-range-log10", "YaRN's correction range divides a logarithm of base 10 by a natural one",
              _of(YaRN, _yarn_dimensions(lambda length, beta: length / (beta * 2 * np.pi), np.log10)), hint=ONE_LOGARITHM),
    Deviation("yarn-range-log2", "YaRN's correction range divides a logarithm of base 2 by a natural one",
              _of(YaRN, _yarn_dimensions(lambda length, beta: length / (beta * 2 * np.pi), np.log2)), hint=ONE_LOGARITHM),
    Deviation("yarn-betas-exchanged", "YaRN's beta_fast and beta_slow are exchanged", _of(YaRN, _yarn_betas),
              hint="beta_fast gives the lower end of the ramp, beta_slow the upper."),
    Deviation("yarn-ramp-inverted", "YaRN's ramp is reversed", _of(YaRN, lambda plain, f, s, *r: plain + plain / s.factor - f),
              hint=RAMP),
    _deviation("yarn-default-betas", "YaRN's betas are always 32 and 1",
               option(scaling=lambda s: YaRN(**(vars(s) | {"beta_fast": 32, "beta_slow": 1})) if isinstance(s, YaRN) else s),
               hint=DEFAULT),
    Deviation("yarn-factor-in-exponent", "YaRN's factor is inside the exponent", _of(YaRN, _yarn_in_exponent),
              hint="Mix 1/b^x and 1/(s b^x): the factor is outside the power.", seen_in="TVM#18576"),
    Deviation("yarn-as-linear", "YaRN divides all frequencies alike", _of(YaRN, lambda plain, f, s, *r: plain / s.factor),
              hint=FAST_PAIRS),
    Deviation("yarn-factor-missing", "YaRN's attention factor is 1", _factor_of(lambda s, f: 1.0), hint=FACTOR,
              seen_in="exllamav3#259", one_of="YaRN's factor"),
    Deviation("yarn-gain-log10", "YaRN's attention factor takes the logarithm of base 10", _gain_of_log(np.log10),
              hint=ONE_LOGARITHM),
    Deviation("yarn-gain-0.07", "YaRN's attention factor is 0.07 ln(s) + 1", _gain_of_log(lambda s: 0.7 * np.log(s)),
              hint="The paper's factor is 0.1 ln(s) + 1. TeleChat3 has 0.07.", seen_in="vLLM#56446"),
    Deviation("yarn-gain-log2", "YaRN's attention factor takes the logarithm of base 2", _gain_of_log(np.log2),
              hint=ONE_LOGARITHM),
    Deviation("yarn-factor-plain", "YaRN's attention factor is always ln(s)/10 + 1", _factor_of(lambda s, f: _g(1, s.factor)),
              hint="mscale, mscale_all_dim or attention_factor does not reach the formula.", seen_in="vLLM#56446",
              one_of="YaRN's factor"),
    Deviation("yarn-all-dim-ignored", "YaRN's attention factor is that of mscale alone, where mscale_all_dim is given too",
              _factor_of(lambda s, f: f if s.attention_factor is not None or s.mscale is None or s.mscale_all_dim is None
                         else _g(s.mscale, s.factor)), hint="Divide by the factor of mscale_all_dim."),
    Deviation("yarn-mscale-zero", "an mscale of 0 counts as not given",
              _factor_of(lambda s, f: f if s.attention_factor is not None or (s.mscale and s.mscale_all_dim) else _g(1,
              s.factor)), hint="0 is falsy.", seen_in="transformers 5.23, MLX#4098"),
    Deviation("yarn-mscale-one", "an mscale that is not given counts as 1 where mscale_all_dim is given",
              _factor_of(_mscale_one), hint="mscale_all_dim counts only where mscale is given too.", seen_in="LMDeploy 0.18.0"),
    Deviation("ntk-alpha-ignored", "alpha is ignored", _records(NTKAlpha, _unscaled), hint=IGNORED),
    Deviation("ntk-alpha-plain", "the base is multiplied by alpha, not by alpha^(d/(d-2))",
              _results(NTKAlpha, lambda f, m, dim, base, s, n: ((base * s.alpha) ** -(2 * np.arange(dim // 2) / dim), m)),
              hint=NTK_POWER),
    Deviation("ntk-fixed-base-alone", "fixed NTK's division by s^(2/d) is missing",
              _results(NTKFixed, lambda f, m, dim, base, s, length: ((base * s.factor) ** -(2 * np.arange(dim // 2) / dim), m)),
              hint="Divide by s^(2/d) as well."),
    Deviation("ntk-mixed-from-zero", "mixed NTK counts pairs from 0", _results(NTKMixed, _mixed(0, None)),
              hint="Pairs are counted from 1 in mixed NTK's exponent."),
    Deviation("ntk-mixed-exponent", "mixed NTK's exponent is always 1", _results(NTKMixed, _mixed(1, 1.0)), hint=DEFAULT),
    Deviation("yarn-turns-by-index", "YaRN's ramp runs over the pair's index where full rotations are asked for",
              _records(YaRNByTurns, lambda s, n: (_other(YaRN, s), n)), hint=EQUATION),
    Deviation("yarn-index-by-turns", "YaRN's ramp runs over full rotations where the pair's index is asked for",
              _records(YaRN, lambda s, n: (_other(YaRNByTurns, s), n)), hint=EQUATION),
    Deviation("yarn-extended-length", "YaRN's original length is the extended one: original_length times factor",
              _records(YaRN, _extended_length), hint="max_position_embeddings is taken for original_max_position_embeddings."),
    Deviation("yarn-dynamic-below", "dynamic YaRN speeds frequencies up below the original length",
              _records(DynamicYaRN, _always_dynamic), hint=LENGTH),
    Deviation("yarn-dynamic-ignored", "dynamic YaRN is ignored", _records(DynamicYaRN, _unscaled), hint=IGNORED),
    Deviation("yarn-dynamic-no-gain", "dynamic YaRN's factor on cos and sin is 1",
              _results(DynamicYaRN, lambda f, m, *rest: (f, 1.0)), hint=FACTOR),
    Deviation("longrope-always-short", "LongRoPE uses the short list at every length", _records(LongRoPE, _short), hint=LISTS,
              seen_in="TVM#18422", one_of="LongRoPE's list"),
    Deviation("longrope-always-long", "LongRoPE uses the long list at every length", _records(LongRoPE, _long), hint=LISTS,
              seen_in="mlx-lm#660, mlxcel#1358", one_of="LongRoPE's list"),
    Deviation("longrope-early", "LongRoPE switches at the original length itself",
              _records(LongRoPE, lambda s, length: (s, length + 1 if length == s.original_length else length)),
              hint="At exactly the original length the short list is in use.", one_of="LongRoPE's list"),
    Deviation("longrope-multiplied", "LongRoPE's lists multiply frequencies where they should divide them",
              _records(LongRoPE, _inverse_lists), hint="Divide the frequencies by the entries of the list."),
    Deviation("longrope-no-gain", "LongRoPE's factor on cos and sin is 1", _results(LongRoPE, lambda f, m, *rest: (f, 1.0)),
              hint=FACTOR),
    Deviation("longrope-gain-no-root", "LongRoPE's factor on cos and sin lacks the root",
              _results(LongRoPE, lambda f, m, dim, base, s, n: (f, m * m if s.attention_factor is None else m)), hint=FACTOR),
    Deviation("longrope-mscales-ignored", "LongRoPE's overrides of the factor on cos and sin are ignored",
              _records(LongRoPE, _without_mscales), hint=IGNORED, seen_in="mlx-lm#660, mlxcel#1358"),
    Deviation("longrope-short-mscale", "LongRoPE's override for the short list is used for both",
              _records(LongRoPE, _one_mscale), hint="Each list has an override of its own."),
    Deviation("longrope-factor-by-lengths", "LongRoPE's factor comes from the lengths though it is given",
              _records(LongRoPE, lambda s, length: ((s if s.max_length is None else replace(s, factor=None)), length)),
              hint="A factor that is given is used before the quotient of lengths."),
    Deviation("proportional-own-denominator", "the exponent's denominator is the rotated part, not the head",
              _results(Proportional, _own_denominator), hint=DENOMINATOR, seen_in="neuronx-distributed-inference#106"),
    Deviation("proportional-fraction", "the exponent's denominator is the fraction of the head, not rounded to whole pairs",
              _results(Proportional, _fraction), hint=DENOMINATOR),
    Deviation("proportional-all", "all pairs rotate, also those that should not",
              _records(Proportional, lambda s, length: (replace(s, rotated=1.0), length)), hint=FIRST_PAIRS),
    Deviation("proportional-last", "the last pairs rotate in place of the first",
              _results(Proportional, lambda f, m, dim, base, s, length: (np.roll(f, dim // 2 - int(s.rotated * dim // 2)), m)),
              hint=FIRST_PAIRS),
    Deviation("proportional-factor-ignored", "proportional RoPE's factor is ignored",
              _records(Proportional, lambda s, n: (replace(s, factor=1.0), n)), hint=IGNORED),
    Deviation("clipped-linear", "clipped RoPE falls along a line, not a cosine", _clip(lambda j, n: 1 - j), hint=CLIPPED),
    Deviation("clipped-not-to-zero", "clipped RoPE's cosine ends a step before 0",
              _clip(lambda j, n: (1 + np.cos(np.pi * j * (n - 1) / n)) / 2), hint=CLIPPED),
    Deviation("clipped-fast", "clipped RoPE slows the first pairs down, not the last",
              _of(Clipped, lambda plain, f, *rest: plain * (f / plain)[::-1]), hint=CLIPPED),
    Deviation("clipped-half", "clipped RoPE's cosine is not halved", _clip(lambda j, n: 1 + np.cos(np.pi * j)), hint=CLIPPED),
    Deviation("clipped-hard-ignored", "clipped RoPE is smooth where it should end at once",
              _records(Clipped, lambda s, n: (replace(s, hard=False), n)), hint=IGNORED),
    Deviation("clipped-twenty", "clipped RoPE clips 20 pairs, whatever the number",
              _records(Clipped, lambda s, n: (replace(s, pairs=20), n)), hint=IGNORED),
)  # fmt: skip
