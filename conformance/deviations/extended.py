"""Deviations of the further context extensions of RoPE."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posref.rotary import yarn
from posref.scaling import DynamicYaRN, LongRoPE, NTKAlpha, NTKFixed, NTKMixed, Proportional, Scaling, YaRN, YaRNByTurns

from .compose import Deviation, Function, Real, Wrap


def _records(kind: type, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes a record of one kind, and the length with it: `change` gives both."""

    def wrap(function: Function) -> Function:
        def deviating(dim: int, /, *, scaling: Any = None, length: Any = None, **options: Any) -> Any:
            if isinstance(scaling, kind):
                scaling, length = change(scaling, length)
            return function(dim, scaling=scaling, length=length, **options)

        return deviating

    return {"rope_frequencies": wrap}


def _results(kind: type, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes frequencies and factor under a record of one kind."""

    def wrap(function: Function) -> Function:
        def deviating(dim: int, /, *, base: float, scaling: Any = None, length: Any = None, **options: Any) -> Any:
            found = function(dim, base=base, scaling=scaling, length=length, **options)
            return change(*found, dim, base, scaling, length) if isinstance(scaling, kind) else found

        return deviating

    return {"rope_frequencies": wrap}


def _short(s: LongRoPE, length: Any) -> Any:
    return replace(s, long_factor=s.short_factor, long_mscale=s.short_mscale), length


def _long(s: LongRoPE, length: Any) -> Any:
    return replace(s, short_factor=s.long_factor, short_mscale=s.long_mscale), length


def _early(s: LongRoPE, length: Any) -> Any:
    return s, length + 1 if length == s.original_length else length


def _without_mscales(s: LongRoPE, length: Any) -> Any:
    if s.factor is None and s.max_length is None:
        return s, length
    return replace(s, short_mscale=None, long_mscale=None), length


def _one_mscale(s: LongRoPE, length: Any) -> Any:
    return (s if s.short_mscale is None else replace(s, long_mscale=s.short_mscale)), length


def _by_lengths(s: LongRoPE, length: Any) -> Any:
    return (s if s.max_length is None else replace(s, factor=None)), length


def _in_base_alone(f: Real, m: Any, dim: int, base: float, s: NTKFixed, length: Any) -> Any:
    return (base * s.factor) ** -(2 * np.arange(dim // 2) / dim), m


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


def _all_turn(s: Proportional, length: Any) -> Any:
    return replace(s, rotated=1.0), length


def _last_turn(f: Real, m: Any, dim: int, base: float, s: Proportional, length: Any) -> Any:
    return np.roll(f, dim // 2 - int(s.rotated * dim // 2)), m


def _always_dynamic(s: DynamicYaRN, length: Any) -> Any:
    shorter = min(length, s.original_length)
    return YaRN(max(length, 1) / s.original_length, s.original_length, s.beta_fast, s.beta_slow, s.truncate,
                attention_factor=1.0 if shorter == length else None), length  # fmt: skip


def _fraction(f: Real, m: Any, dim: int, base: float, s: Proportional, length: Any) -> Any:
    turning = int(s.rotated * dim // 2)
    out = np.zeros(dim // 2)
    out[:turning] = base ** -(2 * np.arange(turning) / max(s.rotated * dim, 1.0)) / s.factor
    return out, m


def _extended_length(s: YaRN, length: Any) -> Any:
    return replace(s, original_length=max(1, round(s.original_length * s.factor))), length


def _other(kind: type[YaRN | YaRNByTurns], s: YaRN | YaRNByTurns) -> Any:
    given = {} if isinstance(s, YaRNByTurns) else {"attention_factor": yarn.attention_factor(s, None, np)}
    shared = {n: getattr(s, n) for n in ("factor", "original_length", "beta_fast", "beta_slow", "attention_factor")}
    return kind(**{**shared, **given})


def _unscaled(s: Scaling, length: Any) -> Any:
    return None, length


DEVIATIONS = (
    Deviation("ntk-alpha-ignored", "alpha is ignored", _records(NTKAlpha, _unscaled)),
    Deviation("ntk-alpha-plain", "the base is multiplied by alpha, not by alpha^(d/(d-2))",
              _results(NTKAlpha, lambda f, m, dim, base, s, n: ((base * s.alpha) ** -(2 * np.arange(dim // 2) / dim), m))),
    Deviation("ntk-fixed-base-alone", "fixed NTK's division by s^(2/d) is missing", _results(NTKFixed, _in_base_alone),
              hint="Divide by s^(2/d) as well."),
    Deviation("ntk-mixed-from-zero", "mixed NTK counts pairs from 0", _results(NTKMixed, _mixed(0, None)),
              hint="Pairs are counted from 1 in mixed NTK's exponent."),
    Deviation("ntk-mixed-exponent", "mixed NTK's exponent is always 1", _results(NTKMixed, _mixed(1, 1.0))),
    Deviation("yarn-turns-by-index", "YaRN's ramp runs over the pair's index where full rotations are asked for",
              _records(YaRNByTurns, lambda s, n: (_other(YaRN, s), n))),
    Deviation("yarn-index-by-turns", "YaRN's ramp runs over full rotations where the pair's index is asked for",
              _records(YaRN, lambda s, n: (_other(YaRNByTurns, s), n))),
    Deviation("yarn-extended-length", "YaRN's original length is the extended one: original_length times factor",
              _records(YaRN, _extended_length), "max_position_embeddings is taken for original_max_position_embeddings."),
    Deviation("yarn-dynamic-below", "dynamic YaRN speeds frequencies up below the original length",
              _records(DynamicYaRN, _always_dynamic)),
    Deviation("yarn-dynamic-ignored", "dynamic YaRN is ignored", _records(DynamicYaRN, _unscaled)),
    Deviation("yarn-dynamic-no-gain", "dynamic YaRN's factor on cos and sin is 1",
              _results(DynamicYaRN, lambda f, m, *rest: (f, 1.0))),
    Deviation("longrope-always-short", "LongRoPE uses the short list at every length", _records(LongRoPE, _short), "",
              "TVM#18422"),
    Deviation("longrope-always-long", "LongRoPE uses the long list at every length", _records(LongRoPE, _long), "",
              "mlx-lm#660, mlxcel#1358"),
    Deviation("longrope-early", "LongRoPE switches at the original length itself", _records(LongRoPE, _early),
              "At exactly the original length the short list is in use."),
    Deviation("longrope-no-gain", "LongRoPE's factor on cos and sin is 1", _results(LongRoPE, lambda f, m, *rest: (f, 1.0))),
    Deviation("longrope-mscales-ignored", "LongRoPE's overrides of the factor on cos and sin are ignored",
              _records(LongRoPE, _without_mscales), "", "mlx-lm#660, mlxcel#1358"),
    Deviation("longrope-short-mscale", "LongRoPE's override for the short list is used for both",
              _records(LongRoPE, _one_mscale), hint="Each list has an override of its own."),
    Deviation("longrope-factor-by-lengths", "LongRoPE's factor comes from the lengths though it is given",
              _records(LongRoPE, _by_lengths), hint="A factor that is given is used before the quotient of lengths."),
    Deviation("proportional-own-denominator", "the exponent's denominator is the rotated part, not the head",
              _results(Proportional, _own_denominator), "", "neuronx-distributed-inference#106"),
    Deviation("proportional-fraction", "the exponent's denominator is the fraction of the head, not rounded to whole pairs",
              _results(Proportional, _fraction)),
    Deviation("proportional-all", "all pairs rotate, also those that should not", _records(Proportional, _all_turn)),
    Deviation("proportional-last", "the last pairs rotate in place of the first", _results(Proportional, _last_turn)),
    Deviation("proportional-factor-ignored", "proportional RoPE's factor is ignored",
              _records(Proportional, lambda s, n: (replace(s, factor=1.0), n))),
)  # fmt: skip
