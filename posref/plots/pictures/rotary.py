"""Pictures of rotations."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from posref.analysis import inner_products
from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map, Numbers

from .made import beside, call, heat, lines, of_kind, picture, same, sines, toeplitz

SIDE = 24
ROW, COLUMN = np.divmod(np.arange(SIDE * SIDE), SIDE)
GRID = np.stack([ROW, COLUMN]).astype(np.float64)


def _random(*shape: int, seed: int = 0) -> Numbers:
    return np.random.default_rng(seed).standard_normal(shape)


KEYS = (0, 1, 2, 3, 20, 100)  # positions of a key; the query is always 2 tokens later
CENTRES = np.asarray([(2.4 * (n % 3), -2.4 * (n // 3)) for n in range(len(KEYS))])  # of the frames, row by row


def _same_angle(chart: Lines) -> bool:
    """Return whether query and key rotate from frame to frame, and the angle between them is the same in each frame."""
    ends = [np.stack([x[1::3], y[1::3]]) - np.stack([x[::3], y[::3]]) for x, y in list(chart.series.values())[1:]]
    query, key = (np.arctan2(y, x) for x, y in ends)
    turn = np.angle(np.exp(1j * (query - key)))
    return len(query) == len(KEYS) and same(turn, turn[0], 64) and not same(query, query[0], 64)


@picture(_same_angle)
def rope(asked: Asked) -> Chart:
    """A query 2 tokens after its key, at 0, 1, 2, 3, 20, 100: both rotate, and the angle between them stays the same."""
    half = {"layout": "half", "base": 10000.0}
    arc = np.linspace(0, 2 * np.pi, 65)
    frames = {"circle": [np.stack([np.cos(arc), np.sin(arc)])] * len(KEYS)}
    for name, vector, later in (("query", (-0.33, -0.84), 2), ("key", (0.5, -0.7), 0)):
        ends = call(asked, half, x=np.tile(np.asarray(vector), (len(KEYS), 1)), positions=np.asarray(KEYS) + later)[0]
        frames[name] = [np.stack([np.zeros(2), end], axis=-1) for end in ends]
    series = {}
    for name, curves in frames.items():
        placed = [curve + centre[:, None] for curve, centre in zip(curves, CENTRES, strict=True)]
        whole = np.concatenate([np.pad(curve, ((0, 0), (0, 1)), constant_values=np.nan) for curve in placed], axis=1)
        series[name] = (whole[0], whole[1])
    return lines(asked, "first channel of the pair", "second channel", series, equal=True)


def _circles(chart: Lines) -> bool:
    radii = [np.hypot(x, y) for x, y in chart.series.values()]
    arcs = [abs(np.unwrap(np.arctan2(y, x))[-1]) for x, y in chart.series.values()]
    return all(same(r, r[0], 4) for r in radii) and all(a > b for a, b in pairwise(arcs))


@picture(_circles)
def apply_rope(asked: Asked) -> Chart:
    """Each pair of channels moves on a circle, so its length stays; later pairs move less in the same 5 tokens."""
    places = np.linspace(0, 5, 51)
    angles = places[:, None] * np.asarray([1.0, 0.4, 0.16])
    x = np.tile(np.asarray([1.0, 0.75, 0.5, 0.0, 0.0, 0.0]), (51, 1))
    result = call(asked, {"layout": "half"}, x=x, cos=np.cos(angles), sin=np.sin(angles))[0]
    series = {f"pair {n}": (result[:, n], result[:, n + 3]) for n in range(3)}
    return lines(asked, "first channel of the pair", "second channel", series, equal=True)


@picture(lambda chart: all(same(y[1:] / y[:-1], y[1] / y[0], 64) for _, y in chart.series.values()) and len(chart.series) == 3)
def rope_frequencies(asked: Asked) -> Chart:
    """Each pair rotates more slowly than the pair before by the same factor, so each base is a straight line here."""
    series = {}
    for base in (100.0, 10000.0, 500000.0):
        result = call(asked, {"dim": 128, "base": base})[0]
        series[f"base {base:g}"] = (np.arange(64), result)
    return lines(asked, "channel pair", "frequency (radians per token)", series, log_y=True)


def _unit(chart: Map) -> bool:
    cos, sin = chart.values[:, :32], chart.values[:, 33:]
    return same(cos**2 + sin**2, 1.0) and same(cos[0], 1.0)


@picture(_unit)
def rope_table(asked: Asked) -> Chart:
    """Left the cosines, right the sines of every pair at every position: position 0 has cosine 1 and sine 0."""
    places = np.arange(asked.tokens, dtype=np.float64)
    cos, sin = call(asked, {}, positions=places, inv_freq=10000.0 ** -(np.arange(32) / 32))
    label = "channel pair (left cosines, right sines)"
    return heat(asked, label, "position (tokens)", beside(cos, sin), "value", columns=(32, 32))


@of_kind("error")
def rope_cos_sin(chart: Lines) -> bool:
    """Angles in bfloat16 or float16 are wrong within a few thousand tokens; float32 angles last for a million."""
    single, half, brain = (y for _, y in chart.series.values())
    x = next(iter(chart.series.values()))[0]
    at = np.searchsorted(x, 4096.0)
    growing = all((np.diff(y) >= 0).all() for y in (single, half, brain))
    return growing and bool(single[at] < 1e-2 < half[at] and brain[at] > 1)


def _sections(chart: Lines) -> bool:
    return all((np.diff(y) > 0).all() for _, y in chart.series.values()) and len(chart.series) in (2, 3)


@of_kind("axes")
def mrope(chart: Lines) -> bool:
    """Three axes share one ladder of wavelengths. In chunks, as here, time has the fast pairs, height and width slower ones."""
    return _sections(chart)


@of_kind("axes")
def axial_rope(chart: Lines) -> bool:
    """Each axis has a ladder of wavelengths of its own, from the shortest to the longest."""
    return bool(_sections(chart) and len({y[0] for _, y in chart.series.values()}) == 1)


def _by_axis(chart: Map) -> bool:
    cells = chart.values.reshape(6, 6, 16)
    by_row, by_column = same(cells[:, :, :8], cells[:, :1, :8]), same(cells[:, :, 8:], cells[:1, :, 8:])
    return by_row and by_column and bool(np.ptp(cells[:, 0, 0]) > 0)


@picture(_by_axis)
def axial_table(asked: Asked) -> Chart:
    """The cosines of the first section follow a cell's row only, those of the second its column only."""
    places = np.stack(np.divmod(np.arange(36), 6)).astype(np.float64)
    options = {"sections": (8, 8), "arrangement": "chunked"}
    cos = call(asked, options, positions=places, inv_freq=np.tile(10.0 ** -(np.arange(8) / 8), 2))[0]
    return heat(asked, "channel pair", "cell of a 6 x 6 grid, row by row", cos, "cosine")


@of_kind("values")
def axial_frequencies(chart: Lines) -> bool:
    """Each axis begins again at the highest frequency."""
    ((_, y),) = chart.series.values()
    return same(y[: len(y) // 2], y[len(y) // 2 :])


def _below_half_a_turn(chart: Lines) -> bool:
    (entries, angles), (_, linear) = chart.series.values()
    return same(angles, 2 * np.arctan(entries), 8) and bool((angles < math.pi).all()) and bool(linear.max() > 2 * math.pi)


@picture(_below_half_a_turn)
def cayley(asked: Asked) -> Chart:
    """A pair of channels whose entry is s rotates by 2 atan(s), never half a turn. The exponential of 2S has no such limit."""
    entries = np.linspace(0.0, 6.0, 49)
    skew = np.zeros((98, 98))
    skew[range(0, 98, 2), range(1, 98, 2)] = entries
    result = call(asked, {}, skew=skew)[0]
    angles = np.arctan2(result[range(1, 98, 2), range(0, 98, 2)], result[range(0, 98, 2), range(0, 98, 2)])
    series = {"Cayley transform of S": (entries, angles), "exponential of 2S": (entries, 2 * entries)}
    return lines(asked, "entry s of the matrix S", "angle (radians)", series)


WAVES = np.asarray([[0.6, 0.0, 0.4, 0.3], [0.0, 0.5, 0.4, -0.3]])  # of four pairs, by axis


def _plane_waves(chart: Map) -> bool:
    tiles = [chart.values[25 * a : 25 * a + 24, 25 * b : 25 * b + 24] for a in (0, 1) for b in (0, 1)]
    return all(same(tile.ravel(), np.cos(WAVES[:, n] @ GRID), 8) for n, tile in enumerate(tiles))


@picture(_plane_waves)
def mixed_table(asked: Asked) -> Chart:
    """Each pair is a plane wave in a direction of its own: along rows, along columns, or across. Four pairs on a grid."""
    cos = call(asked, {}, positions=GRID, frequencies=WAVES)[0].T.reshape(4, SIDE, SIDE)
    upper, lower = beside(cos[0], cos[1]), beside(cos[2], cos[3])
    both = np.concatenate([upper, np.full((1, 49), math.nan), lower])
    panels = (SIDE, SIDE)
    return heat(asked, "column of the cell", "row of the cell", both, "cosine", square=True, columns=panels, rows=panels)


def _mirror(chart: Map) -> bool:
    values = chart.values[1:, 1:]  # 12 cells on both sides of the middle
    return same(values, values[::-1, ::-1], 256) and values.argmax() == values.size // 2


@picture(_mirror)
def mixed_rope(asked: Asked) -> Chart:
    """Products with the middle cell fall in all directions, since pairs also rotate along slanted axes."""
    angles, sizes = np.arange(32) * 2.4, 10.0 ** -(np.arange(32) / 32)
    frequencies = 0.8 * sizes * np.stack([np.cos(angles), np.sin(angles)])
    result = call(asked, {"layout": "half"}, x=np.ones((SIDE * SIDE, 64)), positions=GRID, frequencies=frequencies)[0]
    products = inner_products(result, middle=12 * SIDE + 12).reshape(SIDE, SIDE)
    return heat(asked, "column", "row", products, "inner product", square=True)


def _products(rotated: Numbers) -> Numbers:
    """Return the logits between all cells of a grid of 6 x 6."""
    return rotated @ rotated.T


CELLS = np.stack(np.divmod(np.arange(36), 6)).astype(np.float64)


def _by_offset(chart: Map) -> bool:
    """Return whether pairs of cells with the same offset in rows and columns have the same logit."""
    by_offset: dict[tuple[float, ...], list[float]] = {}
    for a in range(36):
        for b in range(36):
            by_offset.setdefault(tuple(CELLS[:, b] - CELLS[:, a]), []).append(float(chart.values[a, b]))
    return all(same(values, values[0], 64) for values in by_offset.values())


def _cells(asked: Asked, rotated: Numbers) -> Map:
    return heat(asked, "key cell, row by row", "query cell, row by row", _products(rotated), "logit", square=True)


QUERIES = ((2, 2), (2, 6), (6, 3))  # rows and columns of three query cells


def _moves(chart: Map) -> bool:
    """Return whether three panels of 9 x 9 keys show one pattern, which moves with the query."""
    panels = [chart.values[:, 10 * n : 10 * n + 9] for n in range(len(QUERIES))]
    by_place: dict[tuple[int, int], list[float]] = {}
    for panel, (row, column) in zip(panels, QUERIES, strict=True):
        for cell, value in np.ndenumerate(panel):
            by_place.setdefault((cell[0] - row, cell[1] - column), []).append(float(value))
    highest = [divmod(int(panel.argmax()), 9) for panel in panels]
    return all(same(values, values[0], 64) for values in by_place.values()) and highest == list(QUERIES)


def _three_queries(asked: Asked, rotated: Numbers) -> Map:
    """Return the logits of all cells of a 9 x 9 grid with three of them."""
    logits = _products(rotated)
    panels = beside(*(logits[9 * row + column].reshape(9, 9) for row, column in QUERIES))
    label = f"column of the key (queries at {', '.join(map(str, QUERIES))})"
    return heat(asked, label, "row of the key", panels, "logit", square=True, columns=(9, 9, 9))


NINE_BY_NINE = np.stack(np.divmod(np.arange(81), 9)).astype(np.float64)  # rows and columns


@picture(_moves)
def cayley_string(asked: Asked) -> Chart:
    """All keys of a grid, seen from three query cells: one pattern of logits, brightest at the query, moves with it."""
    x = np.tile(_random(1, 8, seed=3), (81, 1))
    half = np.tril(_random(8, 8, seed=1), -1) / 3
    frequencies = np.asarray([[1.0, 0.3, 0.0, 0.5], [0.0, 0.3, 0.8, -0.5]])
    result = call(asked, {"form": "conjugate"}, x=x, positions=NINE_BY_NINE, skew=half - half.T, frequencies=frequencies)[0]
    return _three_queries(asked, result)


@picture(_moves)
def circulant_string(asked: Asked) -> Chart:
    """Circulant generators commute: the logits of a grid's keys, brightest at the query, move with it and stay the same."""
    x = np.tile(_random(1, 8, seed=4), (81, 1))
    coefficients = 0.15 * np.stack([_random(1, 8, seed=5), _random(1, 8, seed=6)])
    return _three_queries(asked, call(asked, {}, x=x, positions=NINE_BY_NINE, coefficients=coefficients)[0])


def _generators(seed: int, size: int) -> Numbers:
    half = np.tril(_random(2, 1, size, size, seed=seed), -1) / 3
    return half - np.swapaxes(half, -1, -2)


@picture(lambda chart: same(np.diag(chart.values), chart.values[0, 0], 64) and not _by_offset(chart))
def liere(asked: Asked) -> Chart:
    """Lengths stay (equal values on the diagonal), but rotations of two axes do not commute: equal offsets differ."""
    x = np.tile(_random(1, 8, seed=7), (36, 1))
    return _cells(asked, call(asked, {}, x=x, positions=CELLS, generators=_generators(8, 8))[0])


def _rotations(chart: Map) -> bool:
    parts = [chart.values[row : row + 6, column : column + 6] for row in (0, 7) for column in (0, 7)]
    return same(parts[0], np.eye(6), 8) and all(same(p @ p.T, np.eye(6), 256) for p in parts) and not same(parts[1], parts[2])


@picture(_rotations)
def liere_rotations(asked: Asked) -> Chart:
    """The rotation at position 0 is the identity; it spreads over a whole block as the position grows (0, 1, 2 and 4 here)."""
    places = np.asarray([[0.0, 1.0, 2.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    result = call(asked, {}, positions=places, generators=_generators(9, 6))[0]
    first, second, third, fourth = result[:, 0]
    blocks = np.concatenate([beside(first, second), np.full((1, 13), math.nan), beside(third, fourth)])
    label = "column (positions 0 and 1, below 2 and 4)"
    return heat(asked, label, "row", blocks, "value", square=True, columns=(6, 6), rows=(6, 6))


def _contents(chart: Map) -> bool:
    values = chart.values
    return toeplitz(values[:24, :24]) and toeplitz(values[24:, :24]) and bool(values[0, 0] - values[24, 0] > 4)


@picture(_contents)
def mla_logits(asked: Asked) -> Chart:
    """Channels without positions see the kinds of the two tokens only (blocks), rotated ones the offset (diagonals)."""
    kind = np.repeat(np.eye(2), 24, axis=0) * 4
    places, ones = np.arange(48), np.ones((48, 64))
    arrays: dict[str, Any] = {"q_nope": kind[None], "q_rope": ones[None], "k_nope": kind[None], "k_rope": ones}
    arrays |= {"q_positions": places, "k_positions": places}
    result = call(asked, {"layout": "half", "base": 10000.0, "scale": 0.25}, **arrays)[0][0]
    return heat(asked, "key (24 of one kind, 24 of another)", "query", result, "logit", square=True)


def _both_layouts(chart: Map) -> bool:
    half, beside_each = chart.values[:, :16], chart.values[:, 17:]
    order = np.arange(16).reshape(2, 8).T.ravel()  # channels of half, pair by pair
    blocks = np.kron(np.eye(8), np.ones((2, 2))) == 1
    return same(half[np.ix_(order, order)], beside_each) and bool((beside_each[~blocks] == 0).all())


@picture(_both_layouts)
def rotation_matrix(asked: Asked) -> Chart:
    """The rotation at position 2 in both layouts: "half" pairs channels that are 8 apart, "interleaved" neighbours."""
    options = {"dim": 16, "base": 10.0}
    parts = [call(asked, {**options, "layout": n}, position=np.asarray(2))[0] for n in ("half", "interleaved")]
    label = "input channel (left half, right interleaved)"
    return heat(asked, label, "output channel", beside(*parts), "factor", square=True, columns=(16, 16))


def _permutes(chart: Map) -> bool:
    values = chart.values
    blocks = np.kron(np.eye(2), np.ones((8, 8))) == 1
    evens = np.argmax(values[:8], axis=1).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    return bool((values.sum(axis=0) == 1).all() and (values.sum(axis=1) == 1).all() and (values[~blocks] == 0).all()) and evens


@picture(_permutes)
def permute_qk_weights(asked: Asked) -> Chart:
    """In each head (8 rows here), rows 0, 2, 4, 6 come first and 1, 3, 5, 7 after them; no row leaves its head."""
    options = {"heads": 2, "source": "interleaved", "target": "half"}
    return heat(asked, "row before", "row after", call(asked, options, weight=np.eye(16))[0], "1 where it goes", square=True)


def _mixtures(chart: Lines) -> bool:
    (x, plain), (_, mixed), (_, still) = chart.series.values()
    return same(plain, np.cos(x * 100.0 ** (-2 / 8)), 8) and not same(mixed, plain) and np.ptp(still) == 0


@picture(_mixtures)
def fope(asked: Asked) -> Chart:
    """A pair can carry several frequencies: a plain wave, a learned mixture of three, and a pair whose frequency is cut off."""
    places = np.linspace(0, 40, 401)
    mix = np.asarray([[0.0, 0.5], [1.0, 0.6], [0.0, 0.4]])  # frequencies by pairs; pair 0 has the second one alone
    x = np.tile(np.asarray([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), (401, 1))
    result = call(asked, {"base": 100.0}, x=x, positions=places, cos_mix=mix, sin_mix=mix)[0]
    names = ("one frequency", "three frequencies", "cut off")
    series = {name: (places, result[:, k]) for k, name in enumerate(names)}
    return lines(asked, "position (tokens)", "first channel of the pair", series)


def _phases(chart: Lines) -> bool:
    (x, plain), (_, shifted), (_, small) = chart.series.values()
    height = np.log1p(np.e)
    moved = same(plain, height * np.cos(x), 8) and same(shifted, height * np.cos(x - np.pi / 2), 8)
    return moved and bool(small.max() < 0.4)


@picture(_phases)
def pope(asked: Asked) -> Chart:
    """Content sets the height of a channel's wave and never rotates it; a learned phase moves the wave."""
    places = np.linspace(0, 12, 241)
    series = {}
    for name, content, phase in (("x = 1", 1.0, 0.0), ("x = 1, phase -π/2", 1.0, -np.pi / 2), ("x = -1", -1.0, 0.0)):
        arrays: dict[str, Any] = {"x": np.full((241, 1), content), "positions": places, "phases": np.asarray([phase])}
        series[name] = (places, call(asked, {"layout": "cos_sin", "base": 10000.0}, **arrays)[0][:, 0])
    return lines(asked, "position (tokens)", "cosine part of channel 0", series)


@picture(lambda chart: toeplitz(chart.values, 48) and chart.values.min() < 0 < chart.values.max())
def rotary_linear_attention(asked: Asked) -> Chart:
    """The weights that a value gets follow the offset alone and may be negative, unlike those of a softmax."""
    tokens = 48
    places, ones = np.arange(tokens), np.zeros((tokens, 32))
    options = {"layout": "half", "base": 100.0, "causal": False}
    result = call(asked, options, q=ones, k=ones, v=np.eye(tokens), q_positions=places, k_positions=places)[0]
    return heat(asked, "key (the values are one-hot)", "query", result, "weight", square=True)


def _expected(tokens: int) -> Numbers:
    rows = sines(-np.arange(tokens), 32, 100.0)  # values of one in each pair's first channel, at offset 0 - q
    both = rows.reshape(tokens, 16, 2)
    return np.stack([both[..., 1], both[..., 0]], axis=-1).reshape(tokens, 32)


@picture(lambda chart: same(chart.values, _expected(len(chart.values)), 64))
def rotated_values(asked: Asked) -> Chart:
    """The value of key 0 reaches each query rotated by their offset: pairs of a cosine and a sine that falls at first."""
    tokens = asked.tokens
    weights = np.ones((tokens, 1))
    v = np.tile(np.asarray([1.0, 0.0]), 16)[None]
    options = {"layout": "interleaved", "base": 100.0}
    result = call(asked, options, weights=weights, v=v, q_positions=np.arange(tokens), k_positions=np.asarray([0]))[0]
    return heat(asked, "channel of the output", "query - key (tokens)", result, "value")


def _around_centre(chart: Map) -> bool:
    values = chart.values
    return same(values[64], 1.0) and bool((values[100, :-1] != 1).all()) and same(values[64 + 40] * values[64 - 40], 1.0, 8)


@picture(_around_centre)
def xpos_scales(asked: Asked) -> Chart:
    """Scales are 1 at the centre (64 here) and the inverse of each other on both sides of it; fast pairs change most."""
    result = call(asked, {"dim": 64, "role": "query", "centre": 64, "scale_base": 64.0}, positions=np.arange(128))[0]
    return heat(asked, "channel pair", "position (tokens)", result, "factor")


def _damped(chart: Lines) -> bool:
    (_, with_decay), (_, plain) = chart.series.values()
    late = slice(200, None)
    return bool(np.ptp(with_decay[late]) < np.ptp(plain[late]) / 2) and same(with_decay[0], 1.0, 64)


@picture(_damped)
def xpos(asked: Asked) -> Chart:
    """The product of query and key falls with the distance, and its ripples are damped, beside RoPE without scales."""
    far = np.arange(401)
    ones = np.ones((401, 64))
    options: dict[str, Any] = {"layout": "half", "base": 10000.0, "centre": 0, "scale_base": 128.0}
    query = call(asked, {**options, "role": "query"}, x=ones, positions=far)[0]
    key = call(asked, {**options, "role": "key"}, x=ones[:1], positions=far[:1])[0]
    plain = np.cos(far[:, None] * 10000.0 ** -(np.arange(32) / 32)).mean(axis=1)
    series = {"xPos": (far, query @ key[0] / 64), "RoPE": (far, plain)}
    return lines(asked, "query - key (tokens)", "product / that at distance 0", series)


def _one_length(chart: Lines) -> bool:
    (_, before), (_, after) = chart.series.values()
    return same(after, 1.0, 64) and bool(before.max() > 8 * before.min())


@picture(_one_length)
def rms_norm(asked: Asked) -> Chart:
    """Queries of any size leave with a root mean square of 1, so logits depend on their directions only."""
    x = _random(48, 32, seed=11) * np.geomspace(0.2, 5.0, 48)[:, None]
    result = call(asked, {"eps": 1e-30, "weight_offset": 0}, x=x, weight=np.ones(32))[0]
    places = np.arange(48)
    series = {"before": (places, np.sqrt((x**2).mean(axis=1))), "after": (places, np.sqrt((result**2).mean(axis=1)))}
    return lines(asked, "token", "root mean square", series, log_y=True, points=True)


def _circle(chart: Lines) -> bool:
    before, after = (np.hypot(x, y) for x, y in chart.series.values())
    return same(after, np.sqrt(2.0), 64) and bool(before[-1] > 3 * before[0])


@picture(_circle)
def norm_rope(asked: Asked) -> Chart:
    """Queries that grow would move on a spiral; with the norm before the rotation they move on a circle."""
    places = np.linspace(0, 6, 61)
    sizes = np.linspace(0.4, 2.0, 61)
    cos, sin = np.cos(places)[:, None], np.sin(places)[:, None]
    x = np.stack([sizes, 0 * sizes], axis=-1)
    options = {"layout": "half", "eps": 1e-30, "weight_offset": 0, "precedence": "norm_first"}
    result = call(asked, options, x=x, weight=np.ones(2), cos=cos, sin=sin)[0]
    series = {"without the norm": (sizes * cos[:, 0], sizes * sin[:, 0]), "with the norm": (result[:, 0], result[:, 1])}
    return lines(asked, "first channel of the pair", "second channel", series, equal=True)


def _in_turn(chart: Lines) -> bool:
    steps = [np.diff(angle) for _, angle in chart.series.values()]
    alone = np.repeat(np.eye(3), 12, axis=1) / 8  # what each pair turns from token to token: in its own passage alone
    return len(steps) == 3 and all(same(step, of_pair, 64) for step, of_pair in zip(steps, alone, strict=True))


@picture(_in_turn)
def norm_mrope(asked: Asked) -> Chart:
    """A walk through time, then down, then to the right: one pair rotates after another, though queries grow on the way."""
    steps = np.arange(37)
    places = np.stack([np.clip(steps - start, 0, 12) / 8 for start in (0, 12, 24)])
    x = np.concatenate([np.ones((37, 3)), np.zeros((37, 3))], axis=1) * np.geomspace(1, 4, 37)[:, None]
    options = {"sections": (1, 1, 1), "arrangement": "chunked", "layout": "half", "base": 1.0}
    options |= {"eps": 1e-30, "weight_offset": 0, "precedence": "norm_first"}
    result = call(asked, options, x=x, weight=np.ones(6), positions=places)[0]
    series = {name: (steps, np.arctan2(result[:, 3 + n], result[:, n])) for n, name in enumerate(("time", "height", "width"))}
    return lines(asked, "token", "angle of the pair (radians)", series)


STILL = slice(20, 40)  # tokens of which each says: no further


def _token_increments() -> Numbers:
    """Return increments of 60 tokens that differ, with a passage of zeros."""
    increments = 0.2 + 0.15 * np.sin(0.9 * np.arange(60.0))
    increments[STILL] = 0
    return increments


def _rests(chart: Lines) -> bool:
    (_, equal), (_, timed) = chart.series.values()
    moving = np.delete(np.diff(timed), np.arange(19, 39))
    return bool(np.ptp(timed[STILL]) == 0 and np.all(moving > 0) and np.ptp(moving) > 0.1) and same(np.diff(equal), 0.2, 64)


@picture(_rests)
def cumulative_angles(asked: Asked) -> Chart:
    """Each token says how far its angle moves; where tokens say 0 it stays, while RoPE's angle grows evenly."""
    both = np.stack([np.full(60, 0.2), _token_increments()], axis=-1)
    result = call(asked, {}, increments=both, start=np.zeros(2))[0]
    series = {"equal increments (RoPE)": (np.arange(60), result[:, 0]), "increments of the text": (np.arange(60), result[:, 1])}
    return lines(asked, "token", "angle (radians)", series)


def _same_in_a_pause(chart: Lines) -> bool:
    (_, equal), (_, timed) = chart.series.values()
    return same(timed[STILL], timed[19], 64) and bool(np.ptp(equal[STILL]) > 0.5 and np.ptp(timed[:19]) > 0.5)


@picture(_same_in_a_pause)
def cumulative_rope(asked: Asked) -> Chart:
    """The product with the first token follows the sum of what the tokens said; tokens that say 0 are at no distance."""
    series = {}
    for name, increments in (("equal increments (RoPE)", np.full(60, 0.2)), ("increments of the text", _token_increments())):
        x = np.tile(np.asarray([1.0, 0.0]), (60, 1))
        result = call(asked, {"layout": "half"}, x=x, increments=increments[:, None], start=np.zeros(1))[0]
        series[name] = (np.arange(60), result @ result[0])
    return lines(asked, "token", "product with the first token", series)


def _falls_then_rises(chart: Lines) -> bool:
    (x, near), (_, far) = chart.series.values()
    same_camera = int(np.argmin(np.abs(x - 30)))
    return bool(np.argmax(near) == np.argmax(far) == same_camera) and same(near, far, 1 << 12) and bool(np.ptp(near) > 0.5)


@picture(_falls_then_rises)
def camera_transform(asked: Asked) -> Chart:
    """The product of a query and a key depends on one camera relative to the other: if both move alike, it stays the same."""
    turns = np.arange(-90.0, 151.0, 2.0)
    x = np.asarray([1.0, 0.0, 0.5, 0.0])
    series = {}
    for world in (0.0, 40.0):
        cameras = _turned(turns + world)
        key = call(asked, {"role": "key_value", "blocks": 1}, x=np.tile(x, (len(turns), 1)), **cameras)[0]
        query = call(asked, {"role": "query", "blocks": 1}, x=x[None], **_turned(np.asarray([30.0 + world])))[0]
        series[f"turned by {world:g} degrees"] = (turns, key @ query[0])
    return lines(asked, "camera of the key (degrees; the query's is at 30)", "product", series)


def _turned(degrees: Numbers) -> dict[str, Numbers]:
    """Return the matrices of cameras at one place that are turned about their upright axis, and the inverses."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    matrices = np.tile(np.eye(4), (len(degrees), 1, 1))
    matrices[:, 0, 0], matrices[:, 0, 2], matrices[:, 2, 0], matrices[:, 2, 2] = c, s, -s, c
    return {"matrices": matrices, "inverses": np.swapaxes(matrices, -1, -2)}


def _flat(chart: Lines) -> bool:
    before, after = (y for _, y in chart.series.values())
    return bool(before.max() - before.min() > 2) and same(after, np.full(len(after), 0.5), 64)


@picture(_flat)
def layer_norm_rope(asked: Asked) -> Chart:
    """However far the mean of a key wanders from token to token, LayerNorm brings it back to the mean of the bias."""
    places = np.arange(41)
    x = _random(41, 8, seed=5) + 2 * np.sin(places / 6)[:, None]
    options = {"layout": "half", "eps": 1e-30, "precedence": "norm_first"}
    none = {"cos": np.ones((41, 4)), "sin": np.zeros((41, 4))}
    result = call(asked, options, x=x, weight=np.ones(8), bias=np.full(8, 0.5), **none)[0]
    series = {"before": (places, x.mean(axis=1)), "after": (places, result.mean(axis=1))}
    return lines(asked, "token", "mean over the channels", series, points=True)
