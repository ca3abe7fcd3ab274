"""Deviations of sinusoids, tables, biases, relative encodings and attention."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, after, always, argument, before, narrowed, option


def _pairs_swapped(out: Real, *args: Any, layout: str, **options: Any) -> Real:
    half = out.shape[-1] // 2
    if layout == "interleaved":
        return out.reshape(*out.shape[:-1], half, 2)[..., ::-1].reshape(out.shape)
    return np.concatenate([out[..., half:], out[..., :half]], axis=-1)


def _cos_exponent(function: Function) -> Function:
    """Every column has its own exponent."""

    def deviating(p: Any, dim: int, /, *, layout: str, base: float = 10_000.0, endpoint: bool = False, **rest: Any) -> Any:
        half, step = dim // 2, 1 / (dim // 2 - 1) if endpoint else 2 / dim
        options = {"layout": "sin_cos", "base": base, "endpoint": endpoint, "dtype": np.float64}
        sin, cos = function(p, dim, **options)[..., :half], function(p * base ** (-step / 2), dim, **options)[..., half:]
        if layout == "interleaved":
            return np.stack([sin, cos], axis=-1).reshape(*sin.shape[:-1], dim)
        return np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)

    return deviating


def _slopes(change: Callable[[int, float], Any]) -> dict[str, Wrap]:
    return {"alibi_slopes": lambda _: lambda heads, /, *, max_bias=8, **rest: np.asarray(change(heads, max_bias))}


def _closed_form(heads: int, max_bias: float) -> Any:
    return 2.0 ** (-max_bias * np.arange(1, heads + 1) / heads)


def _next_power(heads: int, max_bias: float) -> Any:
    return 2.0 ** (-max_bias * np.arange(1, heads + 1) / (1 << (heads - 1).bit_length()))


def _from_zero(heads: int, max_bias: float) -> Any:
    below = 1 << (heads.bit_length() - 1)
    first, rest = np.arange(below), np.arange(heads - below)
    return np.concatenate([2.0 ** (-max_bias / below * first), 2.0 ** (-max_bias / below * rest)])


def _form(function: Function, given: str, used: str) -> Function:
    return lambda q, k, s, /, *, form, **rest: function(q, k, s, form=used if form == given else form, **rest)


def _future_zero(out: Real, q: Any, k: Any, s: Any, /, *, form: str, **rest: Any) -> Real:
    return out if form != "distance" else np.where((q[..., :, None] < k[..., None, :])[..., None, :, :], 0.0, out)


def _bf16_product(function: Function) -> Function:
    return lambda *args, **options: narrowed("bfloat16")(function(*args, **options))


def _bf16_all(function: Function) -> Function:
    narrow = narrowed("bfloat16")

    def deviating(q: Any, k: Any, s: Any, /, *, form: str, **rest: Any) -> Any:
        apart = k[..., None, None, :] if form == "key" else (k[..., None, :] - q[..., :, None])[..., None, :, :]
        return narrow(narrow(s)[:, None, None] * narrow(-np.abs(apart) if form == "distance" else apart))

    return deviating


def _bf16_positions(q: Any, k: Any, s: Any, **options: Any) -> Any:
    return (narrowed("bfloat16")(q), narrowed("bfloat16")(k), s), options


def _sided(relative: Any, bidirectional: bool, num_buckets: int) -> tuple[Any, int, Any]:
    sided = num_buckets // 2 if bidirectional else num_buckets
    n = np.abs(relative) if bidirectional else np.maximum(-relative, 0)
    return n, sided, (sided * (relative > 0) if bidirectional else 0)


def _log_buckets(n: Any, sided: int, max_distance: float, rounding: Callable[[Any], Any], limit: bool = True) -> Any:
    exact = sided // 2
    log = np.log(np.maximum(n, exact) / exact) / np.log(max_distance / exact) * (sided - exact)
    far = exact + rounding(log + 1e-12).astype(np.int64)
    return np.where(n < exact, n, np.minimum(far, sided - 1) if limit else far)


def _buckets(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap that computes buckets in another way, from distances."""

    def deviating(relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Any:
        n, sided, after_query = _sided(relative, bidirectional, num_buckets)
        return change(n, sided, max_distance) + after_query

    return {"t5_buckets": lambda _: deviating}


def _wrong_half(buckets: Any, relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Any:
    return np.where(relative != 0, (buckets + num_buckets // 2) % num_buckets, buckets) if bidirectional else buckets


def _zero_is_after(
    buckets: Any, relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> Any:
    return np.where(relative == 0, num_buckets // 2, buckets) if bidirectional else buckets


def _heads_mixed(function: Function) -> Function:
    def deviating(table: Real, buckets: Any, /) -> Real:
        rows = table[buckets]
        return rows.reshape(*rows.shape[:-3], rows.shape[-1], *rows.shape[-3:-1])

    return deviating


def _shaw(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> dict[str, Wrap]:
    return {"shaw_scores": before(change), "shaw_values": before(change)}


def _other_order(*args: Any, **options: Any) -> Any:
    other = {"key_minus_query": "query_minus_key", "query_minus_key": "key_minus_query"}
    return args, options | {"order": other[options["order"]]}


def _order(order: str) -> Callable[..., Any]:
    return lambda *args, **options: (args, options | {"order": order})


def _clip_exchanged(a: Any, b: Any, table: Any, q: Any, k: Any, /, *, left: int, right: int, order: str) -> Any:
    """Clip to (-right, left), adding right."""
    apart = k[..., None, :] - q[..., :, None] if order == "key_minus_query" else q[..., :, None] - k[..., None, :]
    return np.clip(apart, -right, left) + right


def _shaw_rows(index: Callable[..., Any]) -> dict[str, Wrap]:
    """Return wraps that look up other rows of the table."""

    def scores(q: Real, k: Real, table: Real, qp: Any, kp: Any, /, **options: Any) -> Real:
        rows = table[index(q, k, table, qp, kp, **options)]
        return q @ np.swapaxes(k, -1, -2) + np.sum(q[..., :, None, :] * rows, axis=-1)

    def values(w: Real, v: Real, table: Real, qp: Any, kp: Any, /, **options: Any) -> Real:
        rows = table[index(w, v, table, qp, kp, **options)]
        return w @ v + np.sum(w[..., :, :, None] * rows, axis=-2)

    return {"shaw_scores": lambda _: scores, "shaw_values": lambda _: values}


def _one_row_up(a: Any, b: Any, table: Any, *rest: Any, **options: Any) -> Any:
    return (a, b, np.concatenate([table[1:], table[-1:]]), *rest), options


def _logits(change: Callable[..., Any]) -> Wrap:
    return lambda function: lambda q, k, /, *, bias=None, scale=None: change(function, q, k, bias, scale)


def _tiled(x: Any, heads: int) -> Any:
    return x if x.ndim < 3 or x.shape[-3] == heads else np.concatenate([x] * (heads // x.shape[-3]), axis=-3)


def _mask_constant(value: float) -> dict[str, Wrap]:
    def wrap(function: Function) -> Function:
        return lambda logits, v, mask, /, **sinks: function(
            logits if mask is None else np.where(mask, logits, value), v, None, **sinks
        )

    return {"softmax": wrap}


def _wrong_axis(logits: Real, v: Real, mask: Any, **sinks: Any) -> Real:
    logits = np.where(mask, logits, -np.inf) if mask is not None else logits
    top = np.max(logits, axis=-2, keepdims=True)
    exps = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = np.sum(exps, axis=-2, keepdims=True)
    return (exps / np.where(total == 0, 1.0, total)) @ (np.repeat(v, logits.shape[-3] // v.shape[-3], -3) if v.ndim > 2 else v)


def _mean_of_row(function: Function) -> Function:
    """A row with nothing allowed is the mean of all values."""

    def deviating(logits: Real, v: Real, mask: Any, /, **sinks: Any) -> Real:
        if mask is None:
            return function(logits, v, mask, **sinks)
        nothing = ~np.any(mask, axis=-1, keepdims=True)
        return function(np.where(nothing, 0.0, logits), v, mask | nothing, **sinks)

    return deviating


def _plus_one(function: Function) -> Function:
    """A key of logit 0 and value 0 besides those there are."""

    def deviating(logits: Real, v: Real, mask: Any, /, **sinks: Any) -> Real:
        allowed = np.broadcast_to(True if mask is None else mask, logits.shape)
        logits, allowed = (
            np.concatenate([x, np.full((*x.shape[:-1], 1), new)], axis=-1) for x, new in ((logits, 0.0), (allowed, True))
        )
        return function(logits, np.concatenate([v, np.zeros((*v.shape[:-2], 1, v.shape[-1]))], axis=-2), allowed, **sinks)

    return deviating


DEVIATIONS = (
    Deviation("sin-cos-exchanged", "sines and cosines are in the other order", {"sinusoidal": after(_pairs_swapped)}, "",
              "flashinfer#3819, diffusers#1369"),
    Deviation("sinusoid-interleaved", "sines and cosines are interleaved whatever is asked for",
              {"sinusoidal": option(layout=always("interleaved"))}, "", "multidim-positional-encoding#20"),
    Deviation("sinusoid-concatenated", "sines come first, then cosines, whatever is asked for",
              {"sinusoidal": option(layout=always("sin_cos"))}, "", "tensor2tensor#1423"),
    Deviation("sinusoid-cos-exponent", "the cosine of a pair has the exponent (2i + 1)/d", {"sinusoidal": _cos_exponent},
              "2 * (i // 2) is forgotten.", "the TensorFlow tutorial's slip"),
    Deviation("endpoint-always", "the exponent is i/(d/2 - 1) whatever is asked for",
              {"sinusoidal": lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"endpoint": dim > 2}))}, "", "hojonathanho/diffusion#15"),
    Deviation("endpoint-never", "the exponent is 2i/d whatever is asked for",
              {"sinusoidal": lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"endpoint": False}))}),
    Deviation("sinusoid-base-10000", "the base is 10000 whatever is asked for",
              {"sinusoidal": lambda f: lambda p, dim, /, **o: f(p, dim, **(o | {"base": 10000.0}))}, "", "croco#44"),
    Deviation("sinusoid-bfloat16", "the table is held in bfloat16", {"sinusoidal": after(lambda t, *a, **o: narrowed("bfloat16")(t))}, "",
              "keras-hub's compute_dtype"),
    Deviation("offset-ignored", "the offset into the table is ignored",
              {"learned": lambda f: lambda p, t, /, *, offset=0: f(p, t)}, "", "transformers#1761, sentence-transformers#3879"),
    Deviation("offset-plus-1", "rows are taken one further on", {"learned": lambda f: lambda p, t, /, *, offset=0: f(
        p, np.concatenate([t[1:], t[-1:]]), offset=offset)}, "", "lightseq#144"),
    Deviation("table-through-bfloat16", "the learned table is held in bfloat16", {"learned": argument(1, narrowed("bfloat16")),
              "t5_rows": argument(0, narrowed("bfloat16"))}),
    Deviation("rows-arange", "rows 0, 1, 2, ... are taken whatever the positions", {"learned": argument(
        0, lambda p: np.broadcast_to(np.arange(p.shape[-1]), p.shape) if p.ndim else 0 * p)}, "", "keras-hub#1544"),
    Deviation("slopes-closed-form", "slopes are 2^(-8h/H) also where H is not a power of two", _slopes(_closed_form), "",
              "Baichuan2#225, TensorRT-LLM#1611"),
    Deviation("slopes-next-power", "slopes are the first H of the next power of two", _slopes(_next_power), "", "Baichuan2#225"),
    Deviation("slopes-off-by-one", "the first slope is 1: exponents begin at 0", _slopes(_from_zero), "", "aprender#2143"),
    Deviation("slopes-ascending", "slopes are sorted, the smallest first", {"alibi_slopes": after(lambda s, *a, **o: np.sort(s))}),
    Deviation("slopes-descending", "slopes are sorted, the largest first", {"alibi_slopes": after(lambda s, *a, **o: np.sort(s)[::-1])}),
    Deviation("slopes-reversed", "slopes are in reverse order of heads", {"alibi_slopes": after(lambda s, *a, **o: s[::-1])}),
    Deviation("slopes-bfloat16", "slopes are held in bfloat16", {"alibi_slopes": after(lambda s, *a, **o: narrowed("bfloat16")(s))}, "",
              "transformers' Falcon"),
    Deviation("max-bias-8", "max_bias is 8 whatever is asked for",
              {"alibi_slopes": lambda f: lambda heads, /, *, max_bias=8, **r: f(heads)}),
    Deviation("alibi-sign", "the bias has the other sign", {"alibi_product": after(lambda b, *a, **o: -b)}),
    Deviation("alibi-abs-missing", "form 'distance' has no absolute value",
              {"alibi_product": lambda f: _form(f, "distance", "causal")}, "", "x-transformers@4ed4d0a"),
    Deviation("alibi-abs-added", "form 'causal' has an absolute value", {"alibi_product": lambda f: _form(f, "causal", "distance")}),
    Deviation("alibi-future-zero", "keys after the query have no bias in form 'distance'", {"alibi_product": after(_future_zero)}),
    Deviation("alibi-off-by-one", "distances are one too large", {"alibi_product": argument(0, lambda q: q + 1)}, "", "vLLM#945"),
    Deviation("alibi-key-off-by-one", "keys' positions are one too large", {"alibi_product": argument(1, lambda k: k + 1)}),
    Deviation("alibi-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)", {"alibi_product": argument(
        0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape))}, "", "x-transformers@74f241d"),
    Deviation("alibi-key-arange", "keys are at 0, 1, 2, ... whatever their positions", {"alibi_product": argument(
        1, lambda k: np.broadcast_to(np.arange(k.shape[-1]), k.shape))}, "", "PaddleNLP#6495"),
    Deviation("alibi-bfloat16", "the product of slope and distance is held in bfloat16", {"alibi_product": _bf16_product}, "",
              "TensorRT-Model-Connect#667, Habana vllm-fork#503"),
    Deviation("alibi-all-bfloat16", "slopes, distances and their product are held in bfloat16", {"alibi_product": _bf16_all}, "",
              "TensorRT-Model-Connect#667, Habana vllm-fork#503"),
    Deviation("alibi-positions-bfloat16", "positions are held in bfloat16", {"alibi_product": before(_bf16_positions)}, "",
              "Habana vllm-fork#503"),
    Deviation("t5-sign", "the relative position is query minus key", {"t5_buckets": argument(0, lambda r: -r)}, "", "aprender#2143 class"),
    Deviation("t5-causal", "buckets are causal whatever is asked for", {"t5_buckets": option(bidirectional=always(False))}),
    Deviation("t5-bidirectional", "buckets are bidirectional whatever is asked for", {"t5_buckets": option(bidirectional=always(True))}),
    Deviation("t5-max-distance-128", "max_distance is 128 whatever is asked for", {"t5_buckets": lambda f: lambda r, /, **o: f(
        r, **(o | {"max_distance": 128}))}, "", "llama.cpp"),
    Deviation("t5-no-log", "buckets stay one token wide", _buckets(lambda n, sided, far: np.minimum(n, sided - 1))),
    Deviation("t5-rounded", "the logarithm is rounded to the nearest", _buckets(lambda n, s, d: _log_buckets(n, s, d, np.rint))),
    Deviation("t5-ceil", "the logarithm is rounded up", _buckets(lambda n, s, d: _log_buckets(n, s, d, lambda x: np.ceil(x - 2e-12)))),
    Deviation("t5-not-limited", "distances beyond the last bucket are not brought back", _buckets(
        lambda n, s, d: _log_buckets(n, s, d, np.floor, limit=False))),
    Deviation("t5-halves-exchanged", "keys before the query use the second half of the buckets", {"t5_buckets": after(_wrong_half)}),
    Deviation("t5-zero-after", "the query's own position uses the second half of the buckets", {"t5_buckets": after(_zero_is_after)}),
    Deviation("t5-num-buckets-32", "num_buckets is 32 whatever is asked for", {"t5_buckets": lambda f: lambda r, /, **o: f(
        r, **(o | {"num_buckets": 32}))}),
    Deviation("t5-table-reshaped", "the table is reshaped to (heads, buckets) where it should be transposed", {"t5_rows": argument(
        0, lambda t: t.reshape(t.shape[::-1]).T)}, "A weight converter."),
    Deviation("t5-heads-mixed", "the bias is reshaped where its axes should be moved", {"t5_rows": _heads_mixed}),
    Deviation("shaw-other-order", "the difference of positions is taken the other way", _shaw(_other_order), "", "SpeechT5's convention"),
    Deviation("shaw-key-minus-query", "the difference is key minus query whatever the order asked for", _shaw(_order("key_minus_query"))),
    Deviation("shaw-query-minus-key", "the difference is query minus key whatever the order asked for", _shaw(_order("query_minus_key"))),
    Deviation("shaw-clip-exchanged", "left and right are exchanged: rows are clip(difference, -right, left) + right",
              _shaw_rows(_clip_exchanged), "", "wav2vec2-BERT's 64 and 8"),
    Deviation("shaw-row-plus-1", "rows are taken one further on", _shaw(_one_row_up)),
    Deviation("shaw-row-minus-1", "rows are taken one before", _shaw(
        lambda a, b, t, *r, **o: ((a, b, np.concatenate([t[:1], t[:-1]]), *r), o))),
    Deviation("shaw-term-dropped", "the relative term is missing", _shaw(lambda a, b, t, *r, **o: ((a, b, 0 * t, *r), o)), "",
              "transformers#11725 class"),
    Deviation("shaw-scaled", "scores are divided by sqrt(D)", {"shaw_scores": after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5)}),
    Deviation("shaw-table-bfloat16", "the table is held in bfloat16", _shaw(lambda a, b, t, *r, **o: ((a, b, narrowed("bfloat16")(t), *r), o))),
    Deviation("shaw-input-bfloat16", "the input is held in bfloat16", _shaw(lambda a, b, *r, **o: ((narrowed("bfloat16")(a), b, *r), o))),
    Deviation("scale-missing", "logits are not scaled by default", {"attention_logits": _logits(
        lambda f, q, k, b, s: f(q, k, bias=b, scale=1.0 if s is None else s))}, "", "T5's convention"),
    Deviation("scale-always-1", "logits are never scaled", {"attention_logits": _logits(lambda f, q, k, b, s: f(q, k, bias=b, scale=1.0))}),
    Deviation("scale-ignored", "an explicit scale is ignored", {"attention_logits": _logits(lambda f, q, k, b, s: f(q, k, bias=b))}),
    Deviation("scale-by-dim", "logits are divided by D rather than its root", {"attention_logits": _logits(
        lambda f, q, k, b, s: f(q, k, bias=b, scale=1 / q.shape[-1] if s is None else s))}),
    Deviation("bias-before-scale", "the bias is added before the scale", {"attention_logits": _logits(
        lambda f, q, k, b, s: f(q, k, bias=None if b is None else b * (q.shape[-1] ** -0.5 if s is None else s), scale=s))}, "",
        "the convention of Falcon"),
    Deviation("bias-dropped", "the bias is not added", {"attention_logits": _logits(lambda f, q, k, b, s: f(q, k, scale=s))}),
    Deviation("heads-tiled", "key heads are tiled rather than repeated in blocks", {
        "attention_logits": _logits(lambda f, q, k, b, s: f(q, _tiled(k, q.shape[-3]) if q.ndim > 2 else k, bias=b, scale=s)),
        "softmax": lambda f: lambda logits, v, mask, **sinks: f(logits, _tiled(v, logits.shape[-3]) if v.ndim > 2 else v, mask, **sinks)},
        "", "TinyLlama#24"),
    Deviation("query-bfloat16", "queries are held in bfloat16", {"attention_logits": argument(0, narrowed("bfloat16"))}),
    Deviation("mask-constant-1e4", "masked logits are -10000 rather than excluded", _mask_constant(-1e4), "", "transformers' older models"),
    Deviation("mask-constant-1e5", "masked logits are -100000 rather than excluded", _mask_constant(-1e5)),
    Deviation("mask-inverted", "the mask is inverted", {"softmax": lambda f: lambda x, v, m, **s: f(x, v, None if m is None else ~m, **s)}),
    Deviation("mask-ignored", "the mask is ignored", {"softmax": lambda f: lambda x, v, m, **s: f(x, v, None, **s)}),
    Deviation("masked-row-mean", "a row with nothing allowed is the mean of all values", {"softmax": _mean_of_row}),
    Deviation("softmax-plus-one", "one is added to the softmax's denominator", {"softmax": _plus_one},
              "A key of logit 0 and value 0 is attended to as well.", "PyTorch's add_zero_attn"),
    Deviation("softmax-over-queries", "the softmax runs over queries rather than keys", {"softmax": lambda _: _wrong_axis}),
)  # fmt: skip
