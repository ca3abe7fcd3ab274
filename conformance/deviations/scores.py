"""Deviations of masks, of factors on queries, and of learned sinks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, after, always, argument, before, narrowed, option

MASKS = ("sliding_window", "chunked_window", "lambda_window")
FACTORS = ("logn_scale", "attention_temperature")
ALL_FACTORS = (*FACTORS, "learned_logn_scale")


def _all(ops: tuple[str, ...], wrap: Wrap) -> dict[str, Wrap]:
    return dict.fromkeys(ops, wrap)


def _both(change: Callable[[Any], Any]) -> Wrap:
    """Return a wrap that changes the positions of queries and of keys alike."""
    return before(lambda q, k, /, **options: ((change(q), change(k)), options))


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape) if p.ndim > 1 and p.shape[0] else p


def _arange(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape) if p.ndim else 0 * p


def _held_in(dtype: str) -> Callable[[Any], Any]:
    return lambda p: narrowed(dtype)(p).astype(np.int64)


def _apart(q: Any, k: Any) -> Any:
    return q[..., :, None] - k[..., None, :]


def _future(out: Any, q: Any, k: Any, /, *, sides: str = "causal", **rest: Any) -> Any:
    return out | (_apart(q, k) < 0) if sides == "causal" else out


def _no_window(q: Any, k: Any, /, *, sides: str = "causal", **rest: Any) -> Any:
    return _apart(q, k) >= (0 if sides == "causal" else -np.inf)


def _option_of(op: str, **changes: Callable[[Any], Any]) -> dict[str, Wrap]:
    return {op: option(**changes)}


def _as_window(q: Any, k: Any, /, *, chunk: int, sides: str) -> Any:
    apart = _apart(q, k)
    return (apart < chunk) & (apart >= 0 if sides == "causal" else apart > -chunk)


def _truncated(q: Any, k: Any, /, *, chunk: int, sides: str) -> Any:
    same = _apart(*(np.trunc(np.asarray(p) / chunk) for p in (q, k))) == 0
    return same & (_apart(q, k) >= 0) if sides == "causal" else same


def _cache_sinks(function: Function) -> Function:
    """The first keys that are given are the sinks, whatever their positions."""

    def deviating(q: Any, k: Any, /, *, sinks: int, **options: Any) -> Any:
        return function(q, k, sinks=0, **options) | ((_apart(q, k) >= 0) & (np.arange(k.shape[-1]) < sinks))

    return deviating


def _sinks_counted(function: Function) -> Function:
    def deviating(q: Any, k: Any, /, *, sinks: int, window: int, counting: str) -> Any:
        return function(q, k, sinks=sinks, window=max(window - sinks, int(counting == "with_query")), counting=counting)

    return deviating


def _of_logn(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that changes log-n's factors: `change` takes the number of keys and the length in training."""

    def deviating(p: Any, /, *, length: int, offset: int, at_least_one: bool, **rest: Any) -> Any:
        scale = change(np.maximum(p + offset, 1), length)
        return np.maximum(scale, 1.0) if at_least_one else scale

    return {"logn_scale": lambda _: deviating}


def _of_temperature(change: Callable[[Any, int, str], Any]) -> dict[str, Wrap]:
    """Return a wrap that changes the growth: `change` takes the number of keys, the length and the form, and gives it."""

    def deviating(p: Any, /, *, form: str, beta: float, length: int, offset: int, **rest: Any) -> Any:
        return 1 + beta * change(np.maximum(p + offset, 0), length, form)

    return {"attention_temperature": lambda _: deviating}


def _steps_as(steps: Callable[[Any], Any]) -> dict[str, Wrap]:
    """Return a wrap that decides the steps in another way."""

    def change(n: Any, length: int, form: str) -> Any:
        return np.log(np.maximum(n / length, 1)) if form == "smooth" else np.log(np.maximum(1 + steps(n / length), 1))

    return _of_temperature(change)


def _true_growth(n: Any, length: int, form: str) -> Any:
    return np.log(np.maximum(n / length, 1) if form == "smooth" else 1 + n // length)


def _without_one(n: Any, length: int, form: str) -> Any:
    return _true_growth(n, length, form) if form == "smooth" else np.log(np.maximum(n // length, 1))


def _sinks(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    """Return a wrap that changes the sinks."""
    return {"softmax": option(sinks=lambda s: None if s is None else change(np.asarray(s)))}


def _to_first_key(function: Function) -> Function:
    """A sink is added to the logit of the first key."""

    def deviating(logits: Real, v: Real, mask: Any, *, sinks: Any) -> Real:
        if sinks is None:
            return function(logits, v, mask, sinks=None)
        first = np.arange(logits.shape[-1]) == 0
        return function(
            logits + np.where(first, np.reshape(sinks, (-1, 1, 1) if logits.ndim > 2 else (1, 1)), 0.0), v, mask, sinks=None
        )

    return deviating


def _scaled(function: Function) -> Function:
    def deviating(q: Any, k: Any, v: Any, /, *, scale: float | None = None, sinks: Any = None, **rest: Any) -> Any:
        factor = q.shape[-1] ** -0.5 if scale is None else scale
        return function(q, k, v, scale=scale, sinks=None if sinks is None else np.asarray(sinks) * factor, **rest)

    return deviating


def _by_query_first(function: Function) -> Function:
    """Sinks of grouped heads are read as (heads in a group, groups) where they are (groups, heads in a group)."""

    def deviating(logits: Real, v: Real, mask: Any, *, sinks: Any) -> Real:
        if sinks is not None and v.ndim > 2:
            sinks = np.asarray(sinks).reshape(-1, v.shape[-3]).T.ravel()
        return function(logits, v, mask, sinks=sinks)

    return deviating


DEVIATIONS = (
    Deviation("window-with-query", "the window always counts the query's own key",
              {op: option(counting=always("with_query"), window=lambda w: max(w, 1)) for op in ("sliding_window",
              "lambda_window")}, "It sees one key too few.", "tokenspeed#578"),
    Deviation("window-without-query", "the window never counts the query's own key",
              _all(("sliding_window", "lambda_window"), option(counting=always("without_query"))), "It sees one key too many.",
              "transformers#39408, mlx-lm#390, onnxruntime#25927"),
    Deviation("window-causal", "the window is always causal",
              _all(("sliding_window", "chunked_window"), option(sides=always("causal")))),
    Deviation("window-both-sides", "the window is always on both sides",
              _all(("sliding_window", "chunked_window"), option(sides=always("both")))),
    Deviation("window-future", "keys after the query are allowed too: only the far end is tested", _all(MASKS,
              after(_future)), "Combine the window with a causal mask."),
    Deviation("window-ignored", "all keys are allowed, or all up to the query", _all(MASKS, lambda _: _no_window),
              hint="The window's comparison is missing: look at how the window and the causal mask are combined."),
    Deviation("window-after", "the window lies after the query", _all(("sliding_window",), _both(lambda p: -p))),
    Deviation("window-halved", "a window on both sides is halved, as if `window` were its whole width",
              {"sliding_window": lambda f: lambda q, k, /, *, window, sides, **o: f(q, k, window=max(window // 2,
              1) if sides == "both" else window, sides=sides, **o)},
              "`window` is the width of one side, not of both together.", "ModernBERT's local_attention"),
    Deviation("mask-of-forbidden", "True forbids", _all(MASKS, after(lambda out, *a, **o: ~out)), "",
              "torch's MultiheadAttention"),
    Deviation("mask-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)", _all(MASKS, argument(0, _arange)),
              "", "executorch#21857"),
    Deviation("mask-key-arange", "keys are at 0, 1, 2, ...: cache indices are used as positions", _all(MASKS,
              argument(1, _arange)), "", "transformers#37414"),
    Deviation("mask-first-row", "the first row's positions are used for every row", _all(MASKS, _both(_first_row)), "",
              "transformers#40324"),
    Deviation("mask-bfloat16", "positions are held in bfloat16", _all(MASKS, _both(_held_in("bfloat16")))),
    Deviation("mask-float32", "positions are held in float32", _all(MASKS, _both(_held_in("float32")))),
    Deviation("chunk-sliding", "a sliding window of as many tokens is used in place of chunks", {"chunked_window": lambda _: _as_window}),
    Deviation("chunk-from-1", "chunks begin one position early", {"chunked_window": _both(lambda p: p + 1)}, "",
              "transformers#40324"),
    Deviation("chunk-truncated", "quotients of negative positions are rounded towards 0",
              {"chunked_window": lambda _: _truncated},
              hint="Floor quotients of negative positions: C and rounding_mode='trunc' round towards 0."),
    Deviation("lambda-no-sinks", "the first keys are not kept", _option_of("lambda_window", sinks=always(0))),
    Deviation("lambda-sinks-plus-1", "one key too many is kept from the beginning", _option_of("lambda_window",
              sinks=lambda g: g + 1)),
    Deviation("lambda-sinks-counted", "the sinks count as part of the window", {"lambda_window": _sinks_counted}, "",
              "transformers' SinkCache"),
    Deviation("lambda-sinks-of-cache", "the first keys of the call are the sinks, not those at the first positions",
              {"lambda_window": _cache_sinks}),
    Deviation("lambda-sinks-before", "queries before the sinks see them", {"lambda_window": after(
        lambda out, q, k, /, *, sinks, **o: out | (k[..., None, :] < sinks))}, hint="The causal mask applies to sinks too."),
    Deviation("factor-offset-0", "the position is always taken for the number of keys", _all(FACTORS,
              option(offset=always(0))), "", "fastllm's Qwen"),
    Deviation("factor-offset-1", "one is always added to the position", _all(FACTORS, option(offset=always(1)))),
    Deviation("factor-arange", "queries are at 0, 1, 2, ..., not at their positions", _all(ALL_FACTORS, argument(0, _arange))),
    Deviation("factor-first-row", "the first row's positions are used for every row", _all(ALL_FACTORS, argument(0, _first_row))),
    Deviation("factor-of-last", "every query has the factor of the last", _all(ALL_FACTORS, argument(
        0, lambda p: np.broadcast_to(p[..., -1:], p.shape) if p.ndim else p)), "Use each query's own number of keys, not the whole text's."),
    Deviation("factor-inverse", "queries are divided by the factor", _all(FACTORS, after(lambda f, *a,
              **o: 1 / np.where(f == 0, 1.0, f))), hint="Queries are multiplied by the factor."),
    Deviation("factor-bfloat16", "the factor is held in bfloat16", _all(ALL_FACTORS, after(lambda f, *a,
              **o: narrowed("bfloat16")(f))), "", "transformers' Mistral Large 4"),
    Deviation("factor-positions-bfloat16", "positions are held in bfloat16", _all(ALL_FACTORS, argument(0, _held_in("bfloat16")))),
    Deviation("learned-logn-position", "the logarithm is taken of the position, not of the number of keys", {"learned_logn_scale":
              argument(0, lambda p: np.maximum(p - 1, 0))}, "A causal query at p sees p + 1 keys."),
    Deviation("learned-logn-no-bias", "the bias is left out", {"learned_logn_scale": argument(2, lambda c: 0 * c)},
              "Add the bias to scale times logarithm."),
    Deviation("learned-logn-no-scale", "the logarithm is not scaled", {"learned_logn_scale": argument(1, lambda a: 0 * a + 1)},
              "Every head has a scale of its own."),
    Deviation("learned-logn-first-head", "every head has the scale and bias of the first", {"learned_logn_scale":
              lambda f: lambda p, a, c, /, **o: f(p, *(np.broadcast_to(x[:1], x.shape) for x in (a, c)), **o)}),
    Deviation("learned-logn-exchanged", "scale and bias are exchanged", {"learned_logn_scale":
              lambda f: lambda p, a, c, /, **o: f(p, c, a, **o)}, "The scale multiplies the logarithm, the bias does not."),
    Deviation("learned-logn-bfloat16", "the logarithm is held in bfloat16", {"learned_logn_scale":
              lambda f: lambda p, a, c, /, **o: a[:, None] * narrowed("bfloat16")(np.log(np.maximum(p + 1, 1)))[..., None, :] + c[:, None]},
              "", "transformers' Mistral Large 4"),
    Deviation("logn-limited", "the factor is never below 1", _option_of("logn_scale",
              at_least_one=always(True))),
    Deviation("logn-free", "the factor may always fall below 1", _option_of("logn_scale",
              at_least_one=always(False))),
    Deviation("logn-not-divided", "the logarithm is not divided by the logarithm of the length", _of_logn(lambda n, length: np.log(n))),
    Deviation("logn-of-quotient", "the factor is 1 + ln(n / L) in place of ln(n) / ln(L)",
              _of_logn(lambda n, length: 1 + np.log(n / length))),
    Deviation("temperature-smooth", "the factor always grows smoothly", _option_of("attention_temperature",
              form=always("smooth"))),
    Deviation("temperature-steps", "the factor always grows in steps", _option_of("attention_temperature",
              form=always("steps"))),
    Deviation("temperature-no-floor", "the quotient of steps keeps its fraction", _steps_as(lambda x: x),
              hint="Floor the quotient in form 'steps'."),
    Deviation("temperature-rounded", "the quotient is rounded to the nearest", _steps_as(np.rint)),
    Deviation("temperature-ceil", "the quotient is rounded up", _steps_as(np.ceil)),
    Deviation("temperature-one-missing", "1 is not added to the steps", _of_temperature(_without_one)),
    Deviation("temperature-float32", "the quotient is computed from positions in float32", {"attention_temperature": argument(0,
              _held_in("float32"))}),
    Deviation("temperature-log2", "the logarithm is of base 2", _of_temperature(lambda *a: _true_growth(*a) / np.log(2))),
    Deviation("temperature-beta-0.1", "beta is always 0.1", _option_of("attention_temperature",
              beta=always(0.1))),
    Deviation("temperature-length-8192", "the length is always 8192",
              _option_of("attention_temperature", length=always(8192))),
    Deviation("sinks-dropped", "learned sinks are left out", _sinks(lambda s: None), "",
              "TransformerEngine#2541, vllm-metal#550"),
    Deviation("sinks-zero", "every sink is 0", _sinks(lambda s: 0 * s),
              "1 is added to the softmax's denominator in its place."),
    Deviation("sinks-to-first-key", "the sink is added to the logit of the first key", {"softmax": _to_first_key}),
    Deviation("sinks-scaled", "sinks are scaled like logits", {"attention": _scaled}),
    Deviation("sinks-negated", "sinks have the wrong sign", _sinks(lambda s: -s),
              "The sigmoid is taken of the denominator's logarithm minus the sink."),
    Deviation("sinks-first-head", "the first head's sink is used for all heads", _sinks(lambda s: np.broadcast_to(s[:1], s.shape))),
    Deviation("sinks-grouped", "sinks of grouped heads are reshaped with groups as the last axis", {"softmax": _by_query_first},
              hint="Query head h has sink h: compare the reshape for groups."),
    Deviation("sinks-bfloat16", "sinks are held in bfloat16", _sinks(narrowed("bfloat16"))),
)  # fmt: skip
