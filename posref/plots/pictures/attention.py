"""Pictures of attention itself."""

from __future__ import annotations

import numpy as np

from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map

from .made import call, heat, lines, picture, same, sines, toeplitz

TOKENS = 48


@picture(lambda chart: toeplitz(chart.values) and np.argmax(chart.values[20]) == 20)
def attention_logits(asked: Asked) -> Chart:
    """The logit is the scaled product of query and key: here both are sinusoids, so it falls with the distance."""
    rows = sines(np.arange(TOKENS), 64)
    return heat(asked, "key", "query", call(asked, {}, q=rows, k=rows)[0], "logit", square=True)


def _weights(chart: Lines) -> bool:
    return all(same(y.sum(), 1.0, TOKENS) and not y[int(name.split()[1]) + 1 :].any() for name, (_, y) in chart.series.items())


@picture(_weights)
def attention(asked: Asked) -> Chart:
    """The weights of a query's keys add up to 1. The mask leaves no weight for keys after the query."""
    rows = 1.2 * sines(np.arange(TOKENS), 32)
    result = call(asked, {}, q=rows, k=rows, v=np.eye(TOKENS), mask=np.tri(TOKENS, dtype=bool))[0]
    series = {f"query {query}": (np.arange(TOKENS), result[query]) for query in (8, 24, 40)}
    return lines(asked, "key (the values are one-hot)", "weight", series)


def _halves(chart: Lines) -> bool:
    ratios = [y[1:] / y[:-1] for _, y in chart.series.values()]
    return all(same(ratio, ratio[0], 64) for ratio in ratios) and same(ratios[1][0], 0.5)


@picture(_halves)
def stick_breaking(asked: Asked) -> Chart:
    """With equal logits each key takes the same share of what later keys left, so weights fall geometrically with distance."""
    tokens = 24
    mask = np.tri(tokens, k=-1, dtype=bool)
    series = {}
    for logit in (-2.0, 0.0, 1.0):
        weights = call(asked, {}, logits=np.full((tokens, tokens), logit), mask=mask)[0][-1, :-1][::-1]
        series[f"logit {logit:g}"] = (np.arange(1, tokens), weights)
    return lines(asked, "query - key (tokens)", "weight", series, log_y=True)


SLOTS = (16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, -1)  # page 2, then page 0, then padding


def _written(chart: Map) -> bool:
    values = chart.values
    placed = all((values[slot] == token + 1).all() for token, slot in enumerate(SLOTS) if slot >= 0)
    return placed and bool((values[sorted(set(range(32)) - set(SLOTS))] == 0).all())


@picture(_written)
def write_cache(asked: Asked) -> Chart:
    """Tokens 1 to 11 are written into page 2 and then page 0, of 8 slots each; all other slots keep their zeros."""
    rows = np.broadcast_to(np.arange(1.0, 13.0)[:, None, None], (12, 1, 8))
    result = call(asked, {}, cache=np.zeros((4, 8, 1, 8)), rows=rows, slots=np.asarray(SLOTS))[0]
    return heat(asked, "channel", "slot (pages of 8)", result.reshape(32, 8), "token")


def _narrow(chart: Lines) -> bool:
    (x, few), (_, more) = chart.series.values()
    inside = (x >= 16) & (x <= 448)
    errors = [np.abs(y - x)[inside] / x[inside] for y in (few, more)]
    ends = bool((few[x >= 448] == 448).all()) and bool(more[-1] > 448)
    return ends and 2**-5 < errors[0].max() <= 2**-4 < errors[1].max() <= 2**-3


@picture(_narrow)
def to_float8(asked: Asked) -> Chart:
    """Steps grow with the number: e4m3fn is off by 1/16 at most and ends at 448, e5m2 is off by 1/8 at most and goes on."""
    x = np.arange(0.0, 561.0, 0.5)
    series = {}
    for name in ("e4m3fn", "e5m2"):
        options = {"format": name, "direction": "divide"}
        series[name] = (x, call(asked, options, x=x[:, None, None], scale=np.ones(1))[0][:, 0, 0])
    return lines(asked, "x / scale", "stored", series)


def _falls_geometrically(chart: Lines) -> bool:
    decays = [y[1:] / y[:-1] for _, y in chart.series.values()]
    return all(same(decay, value, 23) for decay, value in zip(decays, (0.95, 0.8, 0.5), strict=True))


@picture(_falls_geometrically)
def wall_logits(asked: Asked) -> Chart:
    """With a constant decay the logit of equal queries and keys falls by that factor for every token between them."""
    ones = np.ones((24, 4))
    series = {}
    for decay in (0.95, 0.8, 0.5):
        logits = call(asked, {"scale": 0.25}, q=ones[:1], k=ones, log_decay=np.log(decay) * ones)[0]
        series[f"decay {decay:g}"] = (np.arange(24), logits[0, ::-1])
    return lines(asked, "query - key (tokens)", "logit", series, log_y=True)


def _as_a_rotation(chart: Lines) -> bool:
    (distance, reflected), (_, rotated) = chart.series.values()
    return bool(distance[-1] == 46) and same(reflected, rotated, 64) and same(rotated[0], 1.0)


@picture(_as_a_rotation)
def path_logits(asked: Asked) -> Chart:
    """Reflections along two directions in turn rotate by twice their angle for every two tokens, as RoPE rotates."""
    angle, last = 0.1, TOKENS - 1
    directions = np.asarray([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])[np.arange(TOKENS) % 2]
    key = np.broadcast_to([1.0, 0.0], (TOKENS, 2))
    result = call(asked, {"scale": 1.0}, q=key[:1], k=key, w=directions, betas=np.full(TOKENS, 2.0))[0]
    distance = np.arange(0, TOKENS, 2)
    return lines(asked, "query - key (tokens)", "logit", {
        "reflections": (distance, result[0, last - distance]),
        "a rotation": (distance, np.cos(distance * angle)),
    })  # fmt: skip
