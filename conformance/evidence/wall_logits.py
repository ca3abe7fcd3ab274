"""Logits of Wall attention: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .every.drawn_cases import drawn_cases_of
from .tools import Case, Function, Real, Wrap, after, argument, around, deviations_of, floats, narrowed
from .tools.hints import CUMULATIVE_SUMS, EACH_HEAD, HEAD_BLOCKS, HIDDEN, IGNORED, KEEP_FLOAT32, LAST_TOKENS, ROOT_OF_SIZE, SIGN

OP = __name__.rpartition(".")[2]
KERNEL: Any = ({},)
STRONG = -4.625  # a decay of 0.01: 20 of them are more than float32 holds

_case, _deviation = drawn_cases_of(OP), deviations_of(OP)
_sums = deviations_of("decay_sums")


def _even(shape: tuple[int, ...], value: float) -> npt.NDArray[np.float64]:
    """Return equal decays, but for the first token, whose decay no logit has."""
    gates = np.full(shape, value)
    gates[:, 0] = -0.5
    return gates


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    strong = STRONG - np.abs(floats(1, 40, 3, seed=8)) / 16
    return (
        _case("small", Q=2, K=3, tier="smoke"),
        _case("24-bits", bits=24, G=2, g=2),
        _case("whole", Q=5, K=5, comment="a first token sees itself alone"),
        _case("64-channels", Q=2, K=6, D=64, g=3, comment="as a head of the released layer"),
        _case("near-one", {}, {"log_decay": _even((2, 7, 6), -11 * 2.0**-15)}, "as they are initialized", Q=2, K=7, G=1),
        _case("zero-decay", {}, {"log_decay": _even((2, 5, 6), 0.0)}, "plain attention", Q=2, K=5, G=1),
        _case("strong/40-keys", {}, {"log_decay": strong}, "a chunk decays by more than float32 holds", Q=40, K=40, G=1, g=1),
        _case("strong/33-keys", {}, {"log_decay": strong[:, :33]}, "in a decode step too", Q=3, K=33, G=1, g=1),
        _case("scale/given", {"scale": 0.125}, Q=3),
        _case("scale/one", {"scale": 1.0}, Q=3, bits=24),
        _case("heads/6-and-2", G=2, g=3, Q=2, D=4),
        _case("heads/rows", G=3, g=2, Q=2, D=4, R=(2,)),
        _case("forms/strided", form="non-contiguous", R=(2,), rows=True),
        _case("forms/one-query", Q=1),
        _case("forms/one-key", Q=1, K=1),
        _case("forms/one-key-in-rows", Q=1, K=1, R=(2,)),
        _case("small", kind="vjp", Q=2, K=3, D=3),
        _case("24-bits", kind="vjp", bits=24, Q=2, K=3, D=2, G=1, g=2),
        _case("strided", kind="vjp", form="non-contiguous", Q=2, K=2, D=2),
        _case("refused/key-heads", {}, {"log_decay": -np.ones((2, 5, 6))}, "decays belong to query heads", G=2, g=2,
              kind="reject"),
        _case("refused/more-queries", {}, {"log_decay": -np.ones((2, 3, 6))}, "a query without a token", G=1, Q=4, K=3,
              kind="reject"),
    )  # fmt: skip


def _power(exponent: Callable[[Real, Real, Real], Real], *, later: bool = False) -> Wrap:
    """Return a wrap with other exponents: of the query's sums, the sums and the logarithms, each (..., Q or K, D)."""

    def deviating(function: Function, q: Real, k: Real, log_decay: Real, /, *, scale: float | None = None) -> Real:
        queries, keys = q.shape[-2], k.shape[-2]
        sums = np.cumsum(log_decay, axis=-2)
        power = exponent(sums[..., keys - queries :, None, :], sums[..., None, :, :], log_decay)
        of_heads = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if q.ndim > 2 else k
        shown = np.tri(queries, keys, keys - queries, dtype=bool)
        decay = np.exp(power if later else np.where(shown[..., None], power, 0.0))
        logits = (q[..., :, None, :] * of_heads[..., None, :, :] * decay).sum(axis=-1)
        return (logits if later else np.where(shown, logits, 0.0)) * (q.shape[-1] ** -0.5 if scale is None else scale)

    return around(deviating)


@around
def _added(function: Function, q: Real, k: Real, log_decay: Real, /, **options: Any) -> Real:
    """Add the mean of the logarithms to the logit of plain attention."""
    queries, keys = q.shape[-2], k.shape[-2]
    sums = np.cumsum(log_decay, axis=-2).mean(axis=-1)
    bias = sums[..., keys - queries :, None] - sums[..., None, :]
    plain = function(q, k, 0 * log_decay, **options)
    return np.where(np.tri(queries, keys, keys - queries, dtype=bool), plain + bias, 0.0)


def _exclusive(of_query: Real, sums: Real, log_decay: Real) -> Real:
    of_query_itself = log_decay[..., sums.shape[-2] - of_query.shape[-3] :, None, :]
    return of_query - of_query_itself - sums + log_decay[..., None, :, :]


def _clipped(of_query: Real, sums: Real, log_decay: Real) -> Real:
    """Limit the exponent of the keys, which counts from the first token of a block of 64."""
    keys = sums.shape[-2]
    anchor = np.take(sums, np.arange(keys) // 64 * 64, axis=-2)
    return np.minimum(anchor - sums, 110 * np.log(2)) + of_query - anchor


@around
def _first_of_group(function: Function, q: Real, k: Real, log_decay: Real, /, **options: Any) -> Real:
    """Give all query heads of a key head the decays of the first of them."""
    group = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    shared = np.repeat(log_decay[..., ::group, :, :], group, axis=-3) if group > 1 else log_decay
    return function(q, k, shared, **options)


@around
def _tiled(function: Function, q: Real, k: Real, log_decay: Real, /, **options: Any) -> Real:
    heads = np.arange(q.shape[-3]) % k.shape[-3] if q.ndim > 2 else 0
    return function(q, k[..., heads, :, :] if q.ndim > 2 else k, log_decay, **options)


def _scale(value: Callable[[int], float]) -> Wrap:
    return lambda f: lambda q, k, g, /, *, scale=None: f(q, k, g, scale=value(q.shape[-1]))


BETWEEN = "The decays of the tokens after the key count, the query's own included, the key's not."
NATURAL = "The decays are natural logarithms: use exp, or multiply them by 1/ln 2 for exp2."
PAIRS = "Exponentiate the difference of the sums, or begin a new anchor before float32 ends."

DEVIATIONS = (
    _deviation("wall-sign", "channels grow with the distance: the exponent has the wrong sign",
               _power(lambda query, sums, _: sums - query), hint=SIGN),
    _deviation("wall-key-decay", "the key's own decay counts too",
               _power(lambda query, sums, g: query - sums + g[..., None, :, :]), hint=BETWEEN),
    _deviation("wall-exclusive", "the key's own decay counts, and the query's does not", _power(_exclusive), hint=BETWEEN),
    _deviation("wall-query-arange", "queries are the first tokens, not the last",
               _power(lambda query, sums, _: np.swapaxes(sums, -2, -3)[..., : query.shape[-3], :, :] - sums), hint=LAST_TOKENS),
    _deviation("wall-base-2", "natural logarithms are taken as powers of 2",
               _power(lambda query, sums, _: (query - sums) * np.log(2)), hint=NATURAL),
    _deviation("wall-channel-mean", "all channels have the mean of the decays",
               _power(lambda query, sums, _: np.broadcast_to((query - sums).mean(-1, keepdims=True), (query - sums).shape)),
               hint="Each channel has a decay of its own: multiply before the sum over channels."),
    _deviation("wall-added", "decays are added to the logit, as forgetting attention adds its gates", _added,
               hint="The decays multiply the channels of the product."),
    _deviation("wall-key-clipped", "the exponent of keys is limited to 110 bits within blocks of 64 tokens", _power(_clipped),
               hint=PAIRS, seen_in="fla-core 0.6.0, its training kernel"),
    _deviation("wall-future-grows", "keys after the query are multiplied by the inverse of the decays",
               _power(lambda query, sums, _: query - sums, later=True), hint=HIDDEN),
    _deviation("wall-first-head", "every head has the decays of the first",
               argument(2, lambda g: np.broadcast_to(g[..., :1, :, :], g.shape) if g.ndim > 2 else g), hint=EACH_HEAD),
    _deviation("wall-first-of-group", "query heads that share a key head share its decays", _first_of_group, hint=EACH_HEAD),
    _deviation("wall-heads-tiled", "query head h uses key head h modulo G", _tiled, hint=HEAD_BLOCKS),
    _deviation("wall-scale-ignored", "an explicit scale is ignored", _scale(lambda width: width**-0.5), hint=IGNORED),
    _deviation("wall-scale-always-1", "logits are never scaled", _scale(lambda width: 1.0), hint=ROOT_OF_SIZE),
    _deviation("wall-decay-bfloat16", "decays are held in bfloat16", argument(2, narrowed("bfloat16")), hint=KEEP_FLOAT32),
    _sums("wall-sums-bfloat16", "cumulative sums are held in bfloat16", after(lambda out, *a: narrowed("bfloat16")(out)),
          hint=CUMULATIVE_SUMS),
    _sums("wall-not-summed", "the decays are not summed", lambda f: lambda g, /: g, hint=BETWEEN),
)  # fmt: skip
