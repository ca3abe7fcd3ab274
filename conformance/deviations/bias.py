"""Deviations of ALiBi and of T5's buckets."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, after, always, argument, before, deviations_of, narrowed, option

_slope, _product, _bucket = deviations_of("alibi_slopes"), deviations_of("alibi_product"), deviations_of("t5_buckets")


def _slopes(change: Callable[[int, float], Any]) -> Wrap:
    return lambda _: lambda heads, /, *, max_bias=8, **rest: np.asarray(change(heads, max_bias))


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


def _buckets(change: Callable[..., Any]) -> Wrap:
    """Return a wrap that computes buckets in another way, from distances."""

    def deviating(relative: Any, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Any:
        n, sided, after_query = _sided(relative, bidirectional, num_buckets)
        return change(n, sided, max_distance) + after_query

    return lambda _: deviating


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


DEVIATIONS = (
    _slope("slopes-closed-form", "slopes are 2^(-8h/H) also where H is not a power of two", _slopes(_closed_form), "",
              "Baichuan2#225, TensorRT-LLM#1611"),
    _slope("slopes-next-power", "slopes are the first H of the next power of two", _slopes(_next_power), "", "Baichuan2#225"),
    _slope("slopes-off-by-one", "the first slope is 1: exponents begin at 0", _slopes(_from_zero),
           "Exponents are -8h/H with h from 1.", "aprender#2143"),
    _slope("slopes-ascending", "slopes are sorted, the smallest first", after(lambda s, *a, **o: np.sort(s))),
    _slope("slopes-descending", "slopes are sorted, the largest first", after(lambda s, *a, **o: np.sort(s)[::-1])),
    _slope("slopes-reversed", "slopes are in reverse order of heads", after(lambda s, *a, **o: s[::-1])),
    _slope("slopes-bfloat16", "slopes are held in bfloat16", after(lambda s, *a, **o: narrowed("bfloat16")(s)), "",
              "transformers' Falcon"),
    _slope("max-bias-8", "max_bias is always 8", lambda f: lambda heads, /, *, max_bias=8, **r: f(heads)),
    _product("alibi-sign", "the bias has the wrong sign", after(lambda b, *a, **o: -b)),
    _product("alibi-abs-missing", "form 'distance' has no absolute value", lambda f: _form(f, "distance", "causal"), "", "x-transformers@4ed4d0a"),
    _product("alibi-abs-added", "form 'causal' has an absolute value", lambda f: _form(f, "causal", "distance")),
    _product("alibi-future-zero", "keys after the query have no bias in form 'distance'", after(_future_zero),
             hint="Keys after the query have their distance too: look for a clamp or tril."),
    _product("alibi-off-by-one", "distances are one too large", argument(0, lambda q: q + 1), "", "vLLM#945"),
    _product("alibi-key-off-by-one", "keys' positions are one too large", argument(1, lambda k: k + 1)),
    _product("alibi-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)", argument(
        0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)), "", "x-transformers@74f241d"),
    _product("alibi-key-arange", "keys are at 0, 1, 2, ..., not at their positions", argument(
        1, lambda k: np.broadcast_to(np.arange(k.shape[-1]), k.shape)), "", "PaddleNLP#6495"),
    _product("alibi-bfloat16", "the product of slope and distance is held in bfloat16", _bf16_product, "",
              "TensorRT-Model-Connect#667, vllm-fork#503"),
    _product("alibi-all-bfloat16", "slopes, distances and their product are held in bfloat16", _bf16_all, "",
              "TensorRT-Model-Connect#667, vllm-fork#503"),
    _product("alibi-positions-bfloat16", "positions are held in bfloat16", before(_bf16_positions), "",
              "vllm-fork#503"),
    _bucket("t5-sign", "the relative position is query minus key", argument(0, lambda r: -r), "", "aprender#2143 class"),
    _bucket("t5-causal", "buckets are always causal", option(bidirectional=always(False))),
    _bucket("t5-bidirectional", "buckets are always bidirectional", option(bidirectional=always(True))),
    _bucket("t5-max-distance-128", "max_distance is always 128", lambda f: lambda r, /, **o: f(
        r, **(o | {"max_distance": 128})), "", "llama.cpp"),
    _bucket("t5-no-log", "buckets stay one token wide", _buckets(lambda n, sided, far: np.minimum(n, sided - 1)),
            hint="Beyond half of the buckets, their width grows with the logarithm."),
    _bucket("t5-rounded", "the logarithm is rounded to the nearest", _buckets(lambda n, s, d: _log_buckets(n, s, d, np.rint))),
    _bucket("t5-ceil", "the logarithm is rounded up", _buckets(lambda n, s, d: _log_buckets(n, s, d, lambda x: np.ceil(x - 2e-12)))),
    _bucket("t5-not-limited", "distances beyond the last bucket are not limited to it", _buckets(
        lambda n, s, d: _log_buckets(n, s, d, np.floor, limit=False)), hint="Limit the bucket to the last one."),
    _bucket("t5-halves-exchanged", "keys before the query use the second half of the buckets", after(_wrong_half)),
    _bucket("t5-zero-after", "the query's own position uses the second half of the buckets", after(_zero_is_after)),
    _bucket("t5-num-buckets-32", "num_buckets is always 32", lambda f: lambda r, /, **o: f(
        r, **(o | {"num_buckets": 32}))),
    Deviation("t5-table-reshaped", "the table is reshaped to (heads, buckets) where it should be transposed", {"t5_rows": argument(
        0, lambda t: t.reshape(t.shape[::-1]).T)}, "A weight converter."),
    Deviation("t5-heads-mixed", "the bias is reshaped where its axes should be moved", {"t5_rows": _heads_mixed},
              hint="Move the head axis with a transpose, not with a reshape."),
)  # fmt: skip
