"""Deviations of length extensions: of their maps of relative positions, and of the products that these rotate."""

from collections.abc import Callable
from typing import Any

import numpy as np

import posref
from posref.spec import REGISTRY

from .compose import Deviation, Function, Real, Wrap, after, always, argument, before, narrowed, option


def _maps(wrap: Wrap, *ops: str) -> dict[str, Wrap]:
    """Return a wrap for the maps of some methods, or of all."""
    maps = [name for name, record in REGISTRY.items() if record.noun == "relative"]
    plainest = sorted(maps, key=lambda name: len(REGISTRY[name].domains))
    return dict.fromkeys([f"{op}_distances" for op in ops] or plainest, wrap)


def _map(op: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a map with another formula: of positions of queries and of keys, and options."""

    def wrap(function: Function) -> Function:
        def deviating(q: Any, k: Any, /, *, dtype: Any = None, **options: Any) -> Any:
            return change(q[..., :, None], k[..., None, :], **options)

        return deviating

    return _maps(wrap, op)


def _far(op: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a map with another formula for what is beyond the window alone."""

    def formula(m: Any, n: Any, *, window: int, **options: Any) -> Any:
        near = (m - n >= 0) & (m - n < window) if op == "self_extend" else np.abs(m - n) < window
        return np.where(near, m - n, change(m, n, window, **options))

    return _map(op, formula)


def _after_query(op: str, change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a map with other distances of keys after the query."""

    def wrap(function: Function) -> Function:
        def deviating(q: Any, k: Any, /, **options: Any) -> Any:
            apart = q[..., :, None] - k[..., None, :]
            return np.where(apart < 0, change(apart, **options), function(q, k, **options))

        return deviating

    return _maps(wrap, op)


def _taken(group: int, window: int, shift: str) -> float:
    return window / group if shift == "exact" else window // group


def _grouped(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return Self-Extend's map with other groups: `change` takes positions and G; the window is shifted as it should be."""
    return _far("self_extend", lambda m, n, w, *, group, shift: change(m, n, group) + w - _taken(group, w, shift))


def _inclusive(m: Any, n: Any, *, group: int, window: int, shift: str) -> Any:
    far = m // group - n // group + window - _taken(group, window, shift)
    return np.where((m >= n) & (m - n <= window), m - n, far)


def _chunked(
    *, size: Callable[[int, int], int] = int.__sub__, limit: Callable[[int], int] = int,
    successive: Callable[..., Any] | None = None, inter: Callable[..., Any] | None = None, late: int = 0,
) -> dict[str, Wrap]:  # fmt: skip
    """Return dual chunk attention with chunks of another size, another limit, or other queries of one kind."""

    def formula(m: Any, n: Any, *, chunk_size: int, local_size: int) -> Any:
        s, most = size(chunk_size, local_size), limit(chunk_size)
        own, behind = m % s, (m - late) // s - (n - late) // s
        next_to = np.minimum(own + s, most) if successive is None else successive(own, s, most)
        later = 0 * own + min(2 * s - 1, most) if inter is None else inter(own, s, most)
        return np.where(behind <= 0, own, np.where(behind == 1, next_to, later)) - n % s

    return _map("dual_chunk", formula)


def _streamed(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return StreamingLLM's map with another formula: `change` takes positions, g and r."""

    def formula(m: Any, n: Any, *, sinks: int, window: int, counting: str) -> Any:
        return change(m, n, sinks, window - (counting == "with_query"))

    return _map("streaming_llm", formula)


def _counted(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape)


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape)


def _both(change: Callable[[Any], Any]) -> Wrap:
    return before(lambda q, k, *args, **options: ((change(q), change(k), *args), options))


def _turned(change: Callable[..., Any]) -> dict[str, Wrap]:
    """Return a wrap of the products: `change` takes the function, its arrays and its options."""
    return {"rotated_products": lambda function: lambda q, k, apart, /, **options: change(function, q, k, apart, options)}


def _rotating_all(function: Function, q: Real, k: Real, apart: Any, options: Any) -> Real:
    width = q.shape[-1] - q.shape[-1] % 2
    return function(q, k, apart, **(options | {"rotary_dim": width}))


def _factor_once(function: Function, q: Real, k: Real, apart: Any, options: Any) -> Real:
    width = options.get("rotary_dim") or q.shape[-1]
    asked = {name: options[name] for name in ("base", "scaling", "length") if name in options}
    _, factor = posref.rope_frequencies(width, **asked)
    return function(q * np.where(np.arange(q.shape[-1]) < width, 1 / factor, 1.0), k, apart, **options)


def _tiled(function: Function, q: Real, k: Real, apart: Any, options: Any) -> Real:
    if q.ndim > 2 and 0 < k.shape[-3] < q.shape[-3]:
        k = np.concatenate([k] * (q.shape[-3] // k.shape[-3]), axis=-3)
    return function(q, k, apart, **options)


def _given(**options: Any) -> dict[str, Wrap]:
    return _turned(lambda function, q, k, apart, given: function(q, k, apart, **(given | options)))


DEVIATIONS = (
    Deviation("extension-plain", "distances are RoPE's: nothing is extended", _maps(
        lambda f: lambda q, k, /, **o: q[..., :, None] - k[..., None, :]),
        hint="Far keys need the second pass: look for the condition that chooses it."),
    Deviation("extension-sign", "distances have the wrong sign", _maps(after(lambda out, *a, **o: -out))),
    Deviation("extension-query-plus-1", "queries are one token too late", _maps(argument(0, lambda q: q + 1))),
    Deviation("extension-from-1", "positions are counted from 1", _maps(_both(lambda p: p + 1), "self_extend", "dual_chunk",
              "streaming_llm"), "Groups and chunks then end one token early, and there is one sink fewer."),
    Deviation("extension-query-arange", "queries are at 0, 1, 2, ..., not at their positions", _maps(argument(0, _counted))),
    Deviation("extension-key-arange", "keys are at 0, 1, 2, ..., not at their positions", _maps(argument(1, _counted))),
    Deviation("extension-first-row", "row 0's positions are used for every row", _maps(
        _both(lambda p: _first_row(p) if p.ndim > 1 else p))),
    Deviation("extension-positions-bfloat16", "positions are held in bfloat16", _maps(
        _both(lambda p: narrowed("bfloat16")(p).astype(np.int64)))),
    Deviation("extension-window-plus-1", "the window is one token longer", _maps(
        option(window=lambda w: w + 1), "rerope", "leaky_rerope", "self_extend", "streaming_llm")),
    Deviation("extension-window-minus-1", "the window is one token shorter", _maps(
        option(window=lambda w: max(w - 1, 1)), "rerope", "leaky_rerope", "self_extend", "streaming_llm")),
    Deviation("rerope-clipped", "keys after the query keep their distance, even beyond the window", _after_query("rerope", lambda r, **o: r),
              "", "rerope's decode path"),
    Deviation("rerope-both-sides", "distances are clipped on both sides: keys far after the query are at -w", _after_query(
        "rerope", lambda r, *, window: np.maximum(r, -window))),
    Deviation("rerope-key-turned", "keys are rotated in the second pass too: w - n", _far("rerope", lambda m, n, w: w - n + 0 * m)),
    Deviation("rerope-query-at-m", "the window is added to the query's position in the second pass: m + w", _far(
        "rerope", lambda m, n, w: m + w + 0 * n)),
    Deviation("rerope-unturned", "nothing is rotated in the second pass", _far("rerope", lambda m, n, w: 0 * (m - n))),
    Deviation("leaky-stops", "distances stop at the window, as in ReRoPE", _far(
        "leaky_rerope", lambda m, n, w, *, factor: w + 0 * (m - n)),
        hint="Beyond the window distances go on, divided by the factor."),
    Deviation("leaky-no-offset", "distances beyond the window are (m - n)/k", _far(
        "leaky_rerope", lambda m, n, w, *, factor: (m - n) / factor), "The window's w(k - 1) is not added to the query's position."),
    Deviation("leaky-offset-wk", "distances beyond the window are w + (m - n)/k", _far(
        "leaky_rerope", lambda m, n, w, *, factor: w + (m - n) / factor), "The query's offset is wk rather than w(k - 1)."),
    Deviation("leaky-whole", "distances beyond the window are rounded down", _far(
        "leaky_rerope", lambda m, n, w, *, factor: w + (m - n - w) // factor),
        hint="Distances beyond the window are fractions: look for a floor."),
    Deviation("leaky-after-query", "keys after the query keep their distance, even beyond the window", _after_query(
        "leaky_rerope", lambda r, **o: r)),
    Deviation("self-extend-floor", "W // G is always subtracted from the window", _maps(
        option(shift=always("floor")), "self_extend"), "", "LongLM's decode paths"),
    Deviation("self-extend-exact", "W / G is always subtracted from the window", _maps(
        option(shift=always("exact")), "self_extend"), "", "LongLM's prefill paths, except 715c1e3"),
    Deviation("self-extend-difference", "the difference is grouped, rather than both positions", _grouped(lambda m, n, g: (m - n) // g)),
    Deviation("self-extend-unfloored", "positions are divided by G and not rounded", _grouped(lambda m, n, g: (m - n) / g)),
    Deviation("self-extend-key-alone", "only keys are grouped", _grouped(lambda m, n, g: m - n // g)),
    Deviation("self-extend-query-alone", "only queries are grouped", _grouped(lambda m, n, g: m // g - n)),
    Deviation("self-extend-no-shift", "the window is not added to grouped queries", _far(
        "self_extend", lambda m, n, w, *, group, shift: m // group - n // group)),
    Deviation("self-extend-window-added", "the whole window is added to grouped queries: nothing is subtracted from it", _far(
        "self_extend", lambda m, n, w, *, group, shift: m // group - n // group + w)),
    Deviation("self-extend-no-window", "neighbours are grouped too", _map(
        "self_extend", lambda m, n, *, group, window, shift: m // group - n // group + window - _taken(group, window, shift)),
        hint="Keys nearer than the window keep exact distances: the first pass is missing."),
    Deviation("self-extend-inclusive", "a key W tokens back counts as a neighbour", _map("self_extend", _inclusive)),
    Deviation("self-extend-after-query", "keys after the query keep their distance", _after_query("self_extend", lambda r, **o: r)),
    Deviation("dual-chunk-paper-limit", "the largest position is chunk_size - 1", _chunked(limit=lambda c: c - 1),
              "The authors' code has positions to chunk_size, the paper to chunk_size - 1.",
              "arXiv:2402.17463's c - 1, with its code's sizes"),
    Deviation("dual-chunk-local-ignored", "chunks have chunk_size tokens", _chunked(size=lambda c, local: c),
              "They have chunk_size - local_size."),
    Deviation("dual-chunk-no-successive", "the chunk before counts like any earlier one", _chunked(
        successive=lambda own, s, most: 0 * own + min(2 * s - 1, most))),
    Deviation("dual-chunk-unlimited", "queries for the chunk before are not limited", _chunked(
        successive=lambda own, s, most: own + s), "", "vLLM's critical queries"),
    Deviation("dual-chunk-inter-unlimited", "queries for earlier chunks go on from chunk_size", _chunked(
        inter=lambda own, s, most: own + most), "", "vLLM's critical queries"),
    Deviation("dual-chunk-inter-successive", "queries for earlier chunks have the places of those for the chunk before", _chunked(
        inter=lambda own, s, most: np.minimum(own + s, most))),
    Deviation("dual-chunk-inter-chunk-size", "queries for earlier chunks are at chunk_size, also where chunks are shorter", _chunked(
        inter=lambda own, s, most: 0 * own + most), "They have the place of the last query for the chunk before."),
    Deviation("dual-chunk-intra", "all keys are placed like those of the query's own chunk", _chunked(
        successive=lambda own, s, most: own, inter=lambda own, s, most: own),
        hint="Keys of other chunks need the other two queries."),
    Deviation("dual-chunk-late-border", "chunks end one token late, but positions in them do not", _chunked(late=1),
              hint="A chunk has s = chunk_size - local_size tokens: m // s and m % s go together."),
    Deviation("streaming-with-query", "the window always counts the query", _maps(
        option(counting=always("with_query")), "streaming_llm")),
    Deviation("streaming-without-query", "the window never counts the query", _maps(
        option(counting=always("without_query")), "streaming_llm")),
    Deviation("streaming-sinks-plus-1", "one key too many counts as a sink", _streamed(lambda m, n, g, r: np.where(
        n <= g, np.minimum(m, g + r) - n, m - n))),
    Deviation("streaming-window-alone", "the cache has as many keys as the window: the sinks are among them", _streamed(
        lambda m, n, g, r: np.where(n < g, np.minimum(m, r) - n, m - n)),
        "The cache has the sinks and the window: their sizes add.", "transformers' SinkCache"),
    Deviation("streaming-sinks-of-cache", "the first keys of the call are the sinks, not those at the first positions", _streamed(
        lambda m, n, g, r: np.where(np.arange(n.shape[-1]) < g, np.minimum(m, g + r) - n, m - n))),
    Deviation("streaming-query-alone", "queries get their place in the cache for all keys, but keys keep their positions", _streamed(
        lambda m, n, g, r: np.minimum(m, g + r) - n),
        hint="Only distances to sinks change: in the cache, recent keys move with the query."),
    Deviation("streaming-clamped", "distances to sinks are clamped to the window, as in LM-Infinite", _streamed(
        lambda m, n, g, r: np.where(n < g, np.minimum(m - n, r + 1), m - n)),
        "A sink is min(m, g + r) - n away, each at its own place.", "arXiv:2308.16137"),
    Deviation("extension-half", "layout is always 'half'", _given(layout="half")),
    Deviation("extension-interleaved", "layout is always 'interleaved'", _given(layout="interleaved")),
    Deviation("extension-base-10000", "the base is always 10000", _given(base=10000.0)),
    Deviation("extension-scaling-dropped", "the context extension is ignored", _given(scaling=None)),
    Deviation("extension-factor-once", "the context extension's factor is on keys alone", _turned(_factor_once),
              "It multiplies queries and keys, also those that are not rotated."),
    Deviation("extension-all-lanes", "all channels are rotated", _turned(_rotating_all)),
    Deviation("extension-scaled", "scores are divided by sqrt(D)", {"rotated_products": after(lambda s, q, *a, **o: s / q.shape[-1] ** 0.5)}),
    Deviation("extension-heads-tiled", "key heads are tiled rather than repeated in blocks", _turned(_tiled)),
    Deviation("extension-query-bfloat16", "queries are held in bfloat16", {"rotated_products": argument(0, narrowed("bfloat16"))}),
    Deviation("extension-key-bfloat16", "keys are held in bfloat16", {"rotated_products": argument(1, narrowed("bfloat16"))}),
)  # fmt: skip
