"""ALiBi slopes: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import Case, Function, Wrap, after, around, deviations_of, held
from .tools.hints import DEFAULT, KEEP_FLOAT32

USUAL = {"heads": 6}
OTHER_VALUES = {"first": 2, "count": 3}


def _case(name: str, heads: int, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any) -> Case:
    """Return a case of alibi_slopes."""
    return Case(f"alibi_slopes/{name}", {"heads": heads, **params}, {}, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("power-of-two/8", 8, "a half to 1/256", tier="smoke"),
        _case("power-of-two/32", 32, "MPT-7B"),
        _case("other/3", 3),
        _case("other/40", 40, "Baichuan-13B"),
        _case("max-bias/5", 12, max_bias=5),
        _case("max-bias/2.5", 4, max_bias=2.5),
        _case("shard/second-of-two", 16, "BLOOM-560M on two ranks", first=8, count=8),
        _case("shard/bloom", 112, "BLOOM on two ranks", first=56, count=56),
        _case("shard/both-kinds", 20, "heads of both rules", first=7, count=11),
        _case("shard/max-bias", 12, max_bias=16, first=6, count=6),
        _case("refused/no-heads", 0, "at least one head", kind="reject"),
        _case("refused/shard", 8, "heads 6 to 9 of 8", kind="reject", first=6, count=4),
        _case("refused/first", 8, "no head of the model", kind="reject", first=8),
        _case("refused/max-bias", 8, "slopes must fall", kind="reject", max_bias=0),
        *(Case(f"alibi_slopes/usual/heads-{heads}", {"heads": heads}, {}) for heads in (2, 64)),
    )


HEAD_COUNT = "If H is not a power of two: slopes of the power below, then every other one of twice as many."
SHARD = "Slopes of a shard are rows of the whole model's: pass the number of all heads, then take the rank's."
HEAD_ORDER = "Slopes keep the order of the heads: no sort, and no reversed list."

_deviation = deviations_of("alibi_slopes")


def _slopes(change: Callable[[int, float], Any]) -> Wrap:
    """Return a change that takes other slopes of the whole model."""

    def deviating(
        _: Function, heads: int, /, *, max_bias: float = 8, first: int = 0, count: int | None = None, **rest: Any
    ) -> Any:
        return np.asarray(change(heads, max_bias))[first:][:count]

    return around(deviating)


@around
def _anew(function: Function, heads: int, /, *, first: int = 0, count: int | None = None, **rest: Any) -> Any:
    return function(heads - first if count is None else count, **rest)


@around
def _first_heads(function: Function, heads: int, /, *, first: int = 0, count: int | None = None, **rest: Any) -> Any:
    return function(heads, count=heads - first if count is None else count, **rest)


def _from_zero(heads: int, max_bias: float) -> Any:
    below = 1 << (heads.bit_length() - 1)
    first, rest = np.arange(below), np.arange(heads - below)
    return np.concatenate([2.0 ** (-max_bias / below * first), 2.0 ** (-max_bias / below * rest)])


def _extra_first(heads: int, max_bias: float) -> Any:
    below, extra = _parts(heads, max_bias, 2)
    return np.concatenate([extra, below])


def _parts(heads: int, max_bias: float, step: int) -> tuple[Any, Any]:
    """Return the slopes of the power of two below, and those of the next power that are taken in steps."""
    below = 1 << (heads.bit_length() - 1)
    next_power = 2.0 ** (-max_bias * np.arange(1, 2 * below + 1) / (2 * below))
    return next_power[1::2], next_power[::step][: heads - below]


DEVIATIONS = (
    _deviation("slopes-closed-form", "slopes are 2^(-8h/H) also where H is not a power of two",
               _slopes(lambda heads, max_bias: 2.0 ** (-max_bias * np.arange(1, heads + 1) / heads)), hint=HEAD_COUNT,
               seen_in="Baichuan2#225, TensorRT-LLM#1611"),
    _deviation("slopes-next-power", "slopes are the first H of the next power of two",
               _slopes(lambda heads, max_bias: 2.0 ** (-max_bias * np.arange(1, heads + 1) / (1 << (heads - 1).bit_length()))),
               hint=HEAD_COUNT, seen_in="Baichuan2#225"),
    _deviation("slopes-off-by-one", "the first slope is 1: exponents begin at 0", _slopes(_from_zero),
               hint="Exponents are -8h/H with h from 1.", seen_in="aprender#2143"),
    _deviation("slopes-ascending", "slopes are sorted, the smallest first", after(lambda s, *a, **o: np.sort(s)),
               hint=HEAD_ORDER),
    _deviation("slopes-descending", "slopes are sorted, the largest first", after(lambda s, *a, **o: np.sort(s)[::-1]),
               hint=HEAD_ORDER),
    _deviation("slopes-reversed", "slopes are in reverse order of heads", after(lambda s, *a, **o: s[::-1]), hint=HEAD_ORDER),
    _deviation("slopes-bfloat16", "slopes are held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32,
               seen_in="transformers' Falcon"),
    _deviation("slopes-extra-first", "the slopes of heads beyond the power of two come before the others",
               _slopes(_extra_first), hint=HEAD_COUNT),
    _deviation("slopes-extra-dense", "heads beyond the power of two have the first slopes of the next power, not every other",
               _slopes(lambda heads, max_bias: np.concatenate(_parts(heads, max_bias, 1))), hint=HEAD_COUNT),
    _deviation("max-bias-8", "max_bias is always 8", lambda f: lambda heads, /, *, max_bias=8, **r: f(heads, **r),
               hint=DEFAULT),
    _deviation("slopes-of-shard", "the slopes of a shard are counted anew: those of a model of so few heads", _anew,
               hint=SHARD, seen_in="bigscience-workshop/Megatron-DeepSpeed#227, flashinfer#1606"),
    _deviation("slopes-first-heads", "every shard has the slopes of the model's first heads", _first_heads, hint=SHARD),
)  # fmt: skip
