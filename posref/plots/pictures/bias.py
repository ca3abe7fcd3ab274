"""Pictures of biases."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map

from .made import call, heat, lines, of_kind, picture, same, toeplitz

TOKENS = 48


@of_kind("values")
def alibi_slopes(chart: Lines) -> bool:
    """Slopes fall by the same factor from head to head: near-sighted heads first, far-sighted heads last."""
    ((_, y),) = chart.series.values()
    return len(y) == 8 and same(y[1:] / y[:-1], 0.5)


@of_kind("bias")
def alibi(chart: Lines) -> bool:
    """Each head's bias falls in a straight line with the distance, at a slope of its own."""
    slopes = [np.diff(y) for _, y in chart.series.values()]
    return all(same(s, s[0], 128) for s in slopes) and len({s[0] for s in slopes}) == len(slopes)


def _from_one_to_two(chart: Lines) -> bool:
    (_, opened), (_, closed) = chart.series.values()
    return bool((np.diff(opened) > 0).all() and (np.diff(closed) < 0).all()) and min(closed) > 1 and max(opened) < 2.5


@picture(_from_one_to_two)
def bias_gate(asked: Asked) -> Chart:
    """As a state opens the first gate, the bias counts more in a head with a large constant, less where that is small."""
    state = np.linspace(-6, 6, 61)
    x = np.stack([state, state])[..., None]
    weight, offset = np.repeat([0.25, 0.0], 4)[:, None], np.zeros(8)
    large, small = call(asked, {}, x=x, weight=weight, offset=offset, constant=np.asarray([2.5, 1.0]))[0]
    return lines(asked, "state", "factor of the bias", {"constant 2.5": (state, large), "constant 1": (state, small)})


GATES = (8, 16, 24, 40)  # keys whose gate is open


def _counts_gates(chart: Map) -> bool:
    row = chart.values[-1]
    jumps = np.flatnonzero(np.abs(np.diff(row)) > 0.5)
    return jumps.tolist() == list(GATES)


@picture(_counts_gates)
def cope(asked: Asked) -> Chart:
    """Positions count only keys whose gate is open (keys 8, 16, 24 and 40 here), such as the starts of sentences."""
    gates = np.full(TOKENS, -9.0)
    gates[list(GATES)] = 9.0
    mask = np.tri(TOKENS, dtype=bool)
    logits = np.broadcast_to(gates, (TOKENS, TOKENS))
    result = call(asked, {}, q=np.ones((TOKENS, 1)), logits=logits, table=np.arange(8.0)[:, None], mask=mask)[0]
    shown = np.where(mask, result, math.nan)
    return heat(asked, "key", "query", shown, "contextual position", square=True)


def _sides(chart: Lines) -> bool:
    both, before = (y for _, y in chart.series.values())
    past, future = before[len(before) // 2 + 8 :], before[: len(before) // 2 - 8]
    falls = bool((np.diff(both[len(both) // 2 :]) < 0).all() and (np.diff(past) < 0).all())
    return falls and same(both, both[::-1], 64) and bool((np.abs(future) < np.abs(past).min() / 100).all())


@picture(_sides)
def dynamic_position_bias(asked: Asked) -> Chart:
    """Two hidden units are enough for a head whose bias falls on both sides, and for one that spares later keys."""
    keys = np.arange(-24, 25)
    net = {"w_in": np.asarray([1.0, -1.0]), "b_in": np.zeros(2), "w_hidden": np.zeros((0, 2, 2)), "b_hidden": np.zeros((0, 2))}
    heads = {"w_out": np.asarray([[-0.1, -0.1], [-0.2, 0.0]]), "b_out": np.zeros(2)}
    result = call(asked, {"distance": "linear"}, q_positions=np.asarray([0]), k_positions=-keys, **net, **heads)[0]
    series = {name: (keys, result[h, 0]) for h, name in enumerate(("both sides", "keys before the query"))}
    return lines(asked, "query - key (tokens)", "bias (logits)", series)


def _ends(chart: Lines) -> bool:
    ends = [y[-1] for _, y in chart.series.values()]
    return same(ends, ends[0], 64) and len({len(y) for _, y in chart.series.values()}) == 3


@picture(_ends)
def fire(asked: Asked) -> Chart:
    """The bias depends on the distance as a share of the query's position: the first key has the same bias at any length."""
    net = {"w1": np.asarray([1.0, -1.0, 2.0]), "b1": np.asarray([0.0, 0.5, -1.0]), "w2": np.asarray([[-2.0, 1.0, -0.5]])}
    rest = {"b2": np.zeros(1), "c": np.asarray([0.1]), "threshold": np.asarray([1.0])}
    series = {}
    for query in (64, 128, 256):
        keys = np.arange(query, -1, -1)
        result = call(asked, {"eps": 1e-30}, q_positions=np.asarray([query]), k_positions=keys, **net, **rest)[0][0, 0]
        series[f"query {query}"] = (query - keys, result)
    return lines(asked, "query - key (tokens)", "bias (logits, made up)", series)


def _forgets(chart: Map) -> bool:
    row = chart.values[-1]
    return np.flatnonzero(np.diff(row) > 1).tolist() == [11, 29]


@picture(_forgets)
def forgetting_bias(asked: Asked) -> Chart:
    """A token with a nearly closed gate (12 and 30 here) makes all later queries forget what came before it."""
    gates = np.full(TOKENS, -0.02)
    gates[[12, 30]] = -3.0
    result = call(asked, {"queries": TOKENS}, log_gates=gates[None, :])[0][0]
    shown = np.where(np.tri(TOKENS, dtype=bool), result, math.nan)
    return heat(asked, "key", "query", shown, "bias (logits)", square=True)


def _by_length(chart: Map) -> bool:
    values = chart.values
    ring = [{float(values[i, (i + n) % 12]) for i in range(12)} for n in range(12)]
    return all(len(numbers) == 1 for numbers in ring) and len({*np.unique(values)}) == 7 and bool((values == values.T).all())


@picture(_by_length)
def graph_bias(asked: Asked) -> Chart:
    """On a ring of 12 nodes the bias falls with the length of the shortest path, whichever way it leads."""
    apart = np.abs(np.arange(12)[:, None] - np.arange(12))
    table = np.r_[0.0, 2.0 ** -np.arange(7.0)][:, None]
    arrays = {"distances": np.minimum(apart, 12 - apart), "table": table}
    result = call(asked, {}, **arrays, edges=np.zeros((12, 12, 1, 1)), weights=np.ones((1, 1, 1)))[0]
    return heat(asked, "node", "node", result[0], "bias (logits)", square=True)


def _rings(chart: Map) -> bool:
    values, middle = chart.values, chart.values.shape[0] // 2
    ray = values[middle, middle:]
    mirrored = (values == values[::-1]).all() and (values == values[:, ::-1]).all() and (values == values.T).all()
    runs = np.diff(np.flatnonzero(np.diff(ray)))
    return bool(mirrored and (np.diff(ray) >= 0).all() and (np.diff(runs) >= 0).all() and runs[0] == 1 and runs[-1] > 2)


@picture(_rings)
def irpe_buckets(asked: Asked) -> Chart:
    """Cells at like distances from the middle share a bucket: rings, one cell wide near the middle and wider far from it."""
    side = np.arange(-24, 25)
    keys = np.stack([axis.reshape(-1) for axis in np.meshgrid(side, side, indexing="ij")])
    options = {"method": "euclidean", "alpha": 4.0, "beta": 8.0, "gamma": 32.0}
    result = call(asked, options, q_positions=np.zeros((2, 1), dtype=np.int64), k_positions=keys)[0]
    return heat(
        asked,
        "column (key - query)",
        "row (key - query)",
        result.reshape(len(side), -1),
        "bucket",
        square=True,
        first=(-24, -24),
    )


def _levels_off(chart: Lines) -> bool:
    logs, powers = ([np.abs(np.diff(y)) for name, (_, y) in chart.series.items() if kind in name] for kind in ("log", "power"))
    return all(d[-1] < d[0] / 10 for d in logs) and all(same(d, d[0], 128) for d in powers)


@picture(_levels_off)
def kerple(asked: Asked) -> Chart:
    """The logarithm falls fast at first, then hardly at all: far keys stay in reach. A power of 1 is ALiBi's line."""
    places = np.arange(asked.tokens)
    series: dict[str, Any] = {}
    for form, r1, r2 in (("log", (1.0, 2.0), (1.0, 1.0)), ("power", (0.02, 0.05), (1.0, 1.0))):
        learned = {"r1": np.asarray(r1), "r2": np.asarray(r2)}
        result = call(asked, {"form": form}, q_positions=places[-1:], k_positions=places, **learned)[0]
        series |= {f"{form}, r1 = {r1[n]:g}": (places, result[n, 0, ::-1]) for n in range(2)}
    return lines(asked, "query - key (tokens)", "bias (logits)", series)


def _chains(chart: Map) -> bool:
    values = chart.values
    apart = values[:24, 24:]
    inside = values[:24, :24]
    return bool((apart == 17).all()) and toeplitz(inside) and set(np.unique(inside)) == set(range(17))


@picture(_chains)
def residue_bins(asked: Asked) -> Chart:
    """Offsets up to 8 have bins of their own and farther ones share the ends; pairs of two chains have the last bin."""
    residues = np.r_[0:24, 0:24]
    same_chain = np.kron(np.eye(2), np.ones((24, 24))) == 1
    options = {"left": 8, "right": 8, "order": "query_minus_key", "outside": "last"}
    result = call(asked, options, q_residues=residues, k_residues=residues, same=same_chain)[0]
    return heat(asked, "residue (two chains of 24)", "residue", result, "bin", square=True)


def _logarithmic(chart: Lines) -> bool:
    curves = list(chart.series.values())
    straight = [np.corrcoef(np.log(x), y)[0, 1] < -0.97 for x, y in curves]
    return all(straight) and all((a[1][8:] < b[1][8:]).all() for a, b in pairwise(curves))


@picture(_logarithmic)
def sandwich(asked: Asked) -> Chart:
    """Against the logarithm of the distance the bias is roughly a falling line with ripples; later heads fall less."""
    far = np.unique(np.geomspace(1, 4096, 160).round())
    result = call(asked, {"heads": 4, "dim": 128}, q_positions=np.zeros(1), k_positions=-far)[0]
    series = {f"head {n}": (far, result[n, 0]) for n in range(result.shape[0])}
    return lines(asked, "query - key (tokens)", "bias (logits)", series, log_x=True)


@of_kind("buckets")
def t5_buckets(chart: Lines) -> bool:
    """Near offsets have buckets of their own, far offsets share ever wider ones, and from 91 on all share the last."""
    ((x, y),) = chart.series.values()
    before = y[x <= 0][::-1]
    runs = np.diff(np.flatnonzero(np.diff(before)))
    return bool((np.diff(runs) >= 0).all() and runs[0] == 1 and runs[-1] > 8)


def _stairs(chart: Lines) -> bool:
    return all(np.ptp(y[113:]) == 0 and np.ptp(y[112:]) > 0 and np.ptp(y[:8]) > 0 for _, y in chart.series.values())


@picture(_stairs)
def t5_bias(asked: Asked) -> Chart:
    """Each head has one learned number for each bucket: far keys share wide steps, and all from 113 on share the last."""
    places = np.arange(max(asked.tokens, 192))
    row = np.arange(32)
    rows = np.stack([-0.15 * row, -0.05 * row, 0.5 * np.cos(row / 4), -1 + 0.04 * row], axis=-1)
    options = {"bidirectional": False, "max_distance": 128}
    result = call(asked, options, q_positions=places[-1:], k_positions=places, table=rows)[0]
    series = {f"head {n}": (places, result[n, 0, ::-1]) for n in range(4)}
    return lines(asked, "query - key (tokens)", "bias (logits, made up)", series)


def _offsets(chart: Map) -> bool:
    rows, columns = np.divmod(np.arange(16), 4)
    far = np.hypot(rows[:, None] - rows, columns[:, None] - columns)
    return same(chart.values, -far, 4)


@picture(_offsets)
def window_bias(asked: Asked) -> Chart:
    """In a window of 4 x 4 cells, pairs with the same offset in rows and columns share one learned number."""
    rows, columns = np.indices((7, 7)) - 3
    table = -np.hypot(rows, columns).reshape(49, 1)
    options = {"height": 4, "width": 4, "depth": 1, "order": "query_minus_key", "class_token": False}
    result = call(asked, options, table=table)[0][0]
    return heat(asked, "key cell, row by row", "query cell, row by row", result, "bias (logits)", square=True)


def _nearer_together(chart: Lines) -> bool:
    curves = [np.diff(y[x > 0]) for x, y in chart.series.values()]
    odd = [y + y[::-1] for _, y in chart.series.values()]
    return all((np.diff(steps) < 0).all() for steps in curves) and all(same(total, 0.0, 4) for total in odd)


@picture(_nearer_together)
def log_spaced_coordinates(asked: Asked) -> Chart:
    """Far offsets lie ever closer together, so a window of 16 is hardly wider than the window of 8 of training."""
    places = np.arange(-15, 16)
    series = {
        "window 8 in training": (places, call(asked, {"window": 8}, offsets=places)[0]),
        "logarithm of the offset": (places, call(asked, {"window": None}, offsets=places)[0]),
    }
    return lines(asked, "offset (cells)", "coordinate", series)


def _saturates(chart: Map) -> bool:
    values = chart.values
    inside = (values > 0).all() and (values < 16).all() and np.ptp(values) > 14
    return bool(inside) and same(values[4, 4], 8.0, 4) and bool((np.diff(values, axis=0) <= 0).all())


@picture(_saturates)
def continuous_position_bias(asked: Asked) -> Chart:
    """A network of the offset gives the query in the middle a bias for every key, within 0 to 16: here more above and left."""
    net = {"w1": np.asarray([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0]]), "b1": np.zeros(3), "w2": np.asarray([[1.0, -1.0, 1.0]])}
    result = call(asked, {"height": 9, "width": 9, "form": "swin"}, **net)[0][0]
    return heat(asked, "column of the key", "row of the key", result[40].reshape(9, 9), "bias (logits)", square=True)


def _both_sides_alike(chart: Map) -> bool:
    values = chart.values.reshape(5, 5)
    return same(values, values[::-1], 4) and same(values, values[:, ::-1], 4) and float(values[2, 2]) == values.max()


@picture(_both_sides_alike)
def levit_bias(asked: Asked) -> Chart:
    """The query in the middle of a grid of 5 x 5 has the same bias for keys as far above as below, left as right."""
    rows, columns = np.divmod(np.arange(25), 5)
    table = -np.hypot(rows, 2.0 * columns)[None, :]
    result = call(asked, {"height": 5, "width": 5, "stride": 1}, table=table)[0][0]
    return heat(asked, "column of the key", "row of the key", result[12].reshape(5, 5), "bias (logits)", square=True)


def _each_row_forgets(chart: Map) -> bool:
    last = [np.flatnonzero(np.diff(row[: query + 1]) > 1).tolist() for query, row in enumerate(chart.values)]
    return all(steps == [query // 2 - 1] for query, steps in enumerate(last) if query >= 4)


@picture(_each_row_forgets)
def row_forgetting_bias(asked: Asked) -> Chart:
    """Each query has gates of its own: here it forgets what came before the middle of its text."""
    gates = np.full((TOKENS, TOKENS), -0.02)
    gates[np.arange(TOKENS), np.arange(TOKENS) // 2] = -3.0
    result = call(asked, {"counted": "query"}, log_gates=gates[None])[0][0]
    shown = np.where(np.tri(TOKENS, dtype=bool), result, math.nan)
    return heat(asked, "key", "query", shown, "bias (logits)", square=True)


def _class_token_apart(chart: Map) -> bool:
    values = chart.values
    return bool((values[0] == -1).all() and (values[1:, 0] == 1).all()) and toeplitz(values[1:, 1:])


@picture(_class_token_apart)
def tupe_bias(asked: Asked) -> Chart:
    """The class token has a number for its row and one for its column; for the others the bias falls with the distance."""
    angles = np.arange(TOKENS + 1)[:, None] * np.geomspace(1, 0.02, 16)
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=-1) * 2**-0.5
    queries, keys = waves.copy(), waves.copy()
    queries[:2] = keys[:2] = 0.0
    queries[:2, 0], keys[:2, 0] = (-8.0, 8.0), 1.0
    result = call(asked, {"cls": True}, p_q=queries[None], p_k=keys[None])[0][0]
    return heat(asked, "key", "query", result, "bias (logits)", square=True)
