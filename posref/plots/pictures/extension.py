"""Pictures of masks, distances and scales for longer texts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map, Numbers

from .made import call, heat, lines, of_kind, picture, same

ROWS, KEYS = np.indices((64, 64))
APART = ROWS - KEYS
BEHIND = APART >= 0


def _follows(chart: Map, rule: Any, *, behind: bool = False) -> bool:
    """Return whether the drawn cells follow a rule, all of them or those up to the query."""
    cells = BEHIND if behind else np.ones_like(BEHIND)
    return chart.values.shape == BEHIND.shape and same(chart.values[cells], rule[cells])


@picture(lambda chart: all(y[0] == 1 and (np.diff(y) >= 0).all() and y[-1] > 1.2 for _, y in chart.series.values()))
def attention_temperature(asked: Asked) -> Chart:
    """Queries far into the text are multiplied by a factor that grows with the logarithm of the position, in steps or not."""
    places = np.arange(0, 8192 * 8, 64)
    series = {}
    for form in ("steps", "smooth"):
        result = call(asked, {"form": form, "beta": 0.1, "original_length": 8192, "offset": 1}, positions=places)[0]
        series[form] = (places, result)
    return lines(asked, "position (tokens)", "factor of the query", series)


@of_kind("mask")
def sliding_window(chart: Map) -> bool:
    """A query sees itself and the 15 keys before it: a band along the diagonal."""
    return _follows(chart, 1.0 * ((APART >= 0) & (APART < 16)))


@of_kind("mask")
def chunked_window(chart: Map) -> bool:
    """A query sees the keys of its own chunk only: the first token of a chunk sees nothing before it."""
    return _follows(chart, 1.0 * ((APART >= 0) & (ROWS // 24 == KEYS // 24)))


@of_kind("mask")
def lambda_window(chart: Map) -> bool:
    """A query sees the window before it and the first 4 tokens, the sinks: a band and a column."""
    return _follows(chart, 1.0 * ((APART >= 0) & ((APART < 16) | (KEYS < 4))))


def _regions() -> Numbers:
    region = np.where(np.arange(64) < 48, 0, np.where(np.arange(64) < 56, 1, 2))
    window = (np.arange(64)) // 16
    allowed: Numbers = 1.0 * ((window[:, None] == window) & (region[:, None] == region))
    return allowed


@picture(lambda chart: bool((chart.values == _regions()).all()))
def shifted_window_mask(asked: Asked) -> Chart:
    """Cells see their own window; in the last window, what the shift brought there from the other side is kept apart."""
    places = np.arange(64)
    result = call(asked, {"size": 64, "window": 16, "shift": 8}, q_positions=places, k_positions=places)[0]
    return heat(asked, "key (after the shift)", "query (after the shift)", result, "1 where it may attend", square=True)


@of_kind("distances")
def dual_chunk_distances(chart: Map) -> bool:
    """Distances within a chunk and to near keys are true, and no distance is larger than the chunk size, 24."""
    far = chart.values[BEHIND]
    return bool((chart.values[BEHIND & (APART < 8)] == APART[BEHIND & (APART < 8)]).all() and far.max() <= 24)


@of_kind("distances")
def rerope_distances(chart: Map) -> bool:
    """Distances are true up to the window, and constant beyond it."""
    return _follows(chart, np.minimum(APART, 16.0), behind=True)


@of_kind("distances")
def leaky_rerope_distances(chart: Map) -> bool:
    """Distances are true up to the window, and grow three times more slowly beyond it."""
    return _follows(chart, np.where(APART < 16, APART, 16 + (APART - 16) / 3), behind=True)


@of_kind("distances")
def self_extend_distances(chart: Map) -> bool:
    """Distances are true up to the window; beyond it groups of three tokens share one, so they rise in steps."""
    return _follows(chart, np.where(APART < 16, APART, ROWS // 3 - KEYS // 3 + 16 - 16 // 3), behind=True)


@of_kind("distances")
def streaming_llm_distances(chart: Map) -> bool:
    """The sinks lie just before the window, as in the cache, however far away they are in the text."""
    seen = BEHIND & ((APART < 16) | (KEYS < 4))
    return bool((chart.values[BEHIND & (APART < 16)] == APART[BEHIND & (APART < 16)]).all() and chart.values[seen].max() <= 19)


def _steady(chart: Map, beyond: Any) -> bool:
    """Return whether near logits fall with the distance, and the chosen cells follow it less."""
    near = [float(chart.values[63, 63 - n]) for n in range(4)]
    return all(a > b for a, b in pairwise(near)) and bool(np.ptp(chart.values[beyond]) < np.ptp(near))


@of_kind("logits")
def rerope(chart: Map) -> bool:
    """Beyond the window every key has the same logit, since all have the same distance."""
    return _steady(chart, APART >= 16) and same(chart.values[APART >= 16], chart.values[63, 0], 256)


@of_kind("logits")
def self_extend(chart: Map) -> bool:
    """Beyond the window three neighbouring keys share one logit: stairs, beside a smooth band."""
    far = chart.values[63, :40]
    return len(np.unique(far.round(9))) <= 15 and same(chart.values[40, 36], chart.values[63, 59], 256)


@of_kind("logits")
def leaky_rerope(chart: Map) -> bool:
    """Beyond the window the logit keeps changing with the distance, three times more slowly."""
    # logits follow the offset alone, and neighbours differ less beyond the window than inside
    row = chart.values[63, ::-1]
    steps = np.abs(np.diff(row))
    return same(row[:41], chart.values[40, 40::-1], 256) and bool(0 < steps[17:].max() < steps[:4].max())


def _products(asked: Asked, options: dict[str, Any], queries: Any, keys: Any) -> Numbers:
    """Return the products of queries and keys that are all ones, by the product at distance 0."""
    ones = np.ones((max(len(queries), len(keys)), 64))
    chosen = {"layout": "half", "base": 10000.0, **options}
    arrays: dict[str, Any] = {"q": ones[: len(queries)], "k": ones[: len(keys)]}
    return call(asked, chosen, **arrays, q_positions=queries, k_positions=keys)[0] / 64


def _rotated(distances: Any) -> Numbers:
    """Return what RoPE gives such queries and keys at these distances."""
    angles = np.asarray(distances, dtype=np.float64)[:, None] * 10000.0 ** -(np.arange(32) / 32)
    wave: Numbers = np.cos(angles).mean(axis=1)
    return wave


def _within(chart: Lines) -> bool:
    (_, dual), (_, plain) = chart.series.values()
    far = dual[: 3 * 96].reshape(3, 96)  # chunks that lie two or more before the query
    seen = _rotated(np.arange(129))
    low, high = seen.min() - 1e-9, seen.max() + 1e-9
    return same(far, far[:1], 64) and bool((dual >= low).all() and (dual <= high).all() and plain.min() < low)


@picture(_within)
def dual_chunk(asked: Asked) -> Chart:
    """The products of one query with keys far behind repeat in every chunk of 96: no distance is above 128."""
    keys = np.arange(4 * 96 + 80)
    result = _products(asked, {"chunk_size": 128, "window": 32}, keys[-1:], keys)[0]
    marks = {f"chunk {n}": 96.0 * n for n in range(1, 5)}
    series = {"dual chunk attention": (keys, result), "RoPE": (keys, _rotated(keys[-1] - keys))}
    label = "position of the key (tokens; the query is the last)"
    return lines(asked, label, "product / that at distance 0", series, marks=marks)


def _sinks(chart: Lines) -> bool:
    (x, sink), (_, plain) = chart.series.values()
    within = x < 68
    return same(sink[within], plain[within], 64) and same(sink[x >= 67], sink[-1], 64) and bool(plain.min() < sink.min() - 0.1)


@picture(_sinks)
def streaming_llm(asked: Asked) -> Chart:
    """The first token, a sink, keeps the product of a key just before the window, however long the text has become."""
    queries = np.arange(513)
    options = {"num_sinks": 4, "window": 64, "counting": "with_query"}
    result = _products(asked, options, queries, queries[:1])[:, 0]
    series = {"sink, placed as in the cache": (queries, result), "RoPE": (queries, _rotated(queries))}
    return lines(asked, "position of the query (tokens)", "product / that at distance 0", series)


def _log_lines(chart: Lines) -> bool:
    slopes = [np.diff(y) / np.diff(np.log(x)) for x, y in chart.series.values()]
    return all(same(slope, slope[0], 1024) for slope in slopes)


@picture(_log_lines)
def learned_logn_scale(asked: Asked) -> Chart:
    """Each head multiplies its queries by a line in the logarithm of the position: on this axis, straight lines."""
    places = np.arange(64) * 64
    result = call(asked, {}, positions=places, scale=np.asarray([0.05, 0.1, 0.2]), bias=np.asarray([1.0, 0.8, 0.4]))[0]
    series = {f"head {n}": (places + 1, result[n]) for n in range(3)}
    return lines(asked, "position + 1 (tokens)", "factor of the query", series, log_x=True)


def _grows(chart: Lines) -> bool:
    floor, free = (y for _, y in chart.series.values())
    return bool(floor.min() == 1 and free.min() < 1 and same(free[-1], np.log(2**16) / np.log(1024)))


@picture(_grows)
def logn_scale(asked: Asked) -> Chart:
    """From the training length L on, queries at place n are multiplied by log n / log L, so that attention stays as sharp."""
    places = np.unique(np.geomspace(2, 2**16, 200).astype(np.int64)) - 1
    series = {}
    for name, floor in (("at least 1", True), ("without this limit", False)):
        result = call(asked, {"original_length": 1024, "offset": 1, "at_least_one": floor}, positions=places)[0]
        series[name] = (places + 1, result)
    return lines(asked, "position + 1 (tokens)", "factor of the query", series, marks={"1024 tokens": 1024.0}, log_x=True)
