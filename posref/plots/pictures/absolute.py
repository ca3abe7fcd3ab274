"""Pictures of absolute encodings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from posref.analysis import inner_products
from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map, Numbers

from .made import beside, call, heat, lines, of_kind, picture, same, sines

SIDE = 24


def _turns(column: Numbers) -> int:
    """Return how often a wave changes its sign."""
    signs = np.sign(column[np.abs(column) > 1e-12])
    return int(np.sum(signs[1:] != signs[:-1]))


@picture(lambda chart: [_turns(y) for _, y in chart.series.values()] == [1, 6, 15])
def affine_waves(asked: Asked) -> Chart:
    """Each channel is one wave of time, with a frequency and a phase of its own."""
    times = np.linspace(0, 12, 240)
    result = call(asked, {"wave": "sin"}, x=times, weight=np.asarray([0.5, 1.5, 4.0]), bias=np.asarray([0.0, 1.0, 2.0]))[0]
    return lines(asked, "time", "value", {f"channel {n}": (times, result[:, n]) for n in range(3)})


def _rows_of_table(chart: Map) -> bool:
    table, texts = chart.values[11:, :8], chart.values[:, 9:]
    return same(texts[:10], table[:10]) and same(texts[11:], table) and not same(table[:9], table[1:10])


@picture(_rows_of_table)
def learned(asked: Asked) -> Chart:
    """Left a table of 14 rows, right what two packed texts of 10 and 14 tokens get: each text begins again at row 0."""
    rows = sines(np.arange(14), 8, 30.0)
    result = call(asked, {}, positions=np.r_[0:10, 0:14], table=rows)[0]
    both = np.full((25, 17), np.nan)
    both[11:, :8], both[:10, 9:], both[11:, 9:] = rows, result[:10], result[10:]
    return heat(asked, "channel (left the table, right the result)", "row", both, "value", columns=(8, 8), rows=(10, 14))


def _two_parts(chart: Map) -> bool:
    cells = chart.values.reshape(6, 6, 16)
    return same(cells[:, :, :8], cells[:, :1, :8]) and same(cells[:, :, 8:], cells[:1, :, 8:])


@picture(_two_parts)
def axial_learned(asked: Asked) -> Chart:
    """The first half of the channels depends on the row of a cell only, the second half on its column only."""
    rows, columns = np.divmod(np.arange(36), 6)
    first, second = sines(np.arange(6), 8, 10.0), sines(np.arange(6) + 3, 8, 10.0)
    result = call(asked, {"combine": "concat"}, positions=np.stack([rows, columns]), first=first, second=second)[0]
    return heat(asked, "channel", "cell of a 6 x 6 grid, row by row", result, "value")


@picture(lambda chart: all(np.flatnonzero(row).size == min(8, t + 4, 36 - t) for t, row in enumerate(chart.values)))
def conv_positions(asked: Asked) -> Chart:
    """A token's result depends on as many neighbours as the kernel is wide, 8 here, and on no other token."""
    tokens, width = 32, 8
    weight = np.tile(np.linspace(1.0, 2.0, width), (1, 1, 1))
    x = np.concatenate([np.eye(tokens), np.zeros((1, tokens))])[..., None]  # each token alone, and none
    result = call(asked, {"groups": 1}, x=x, weight=weight, bias=np.zeros(1))[0][..., 0]
    seen = (result[:-1] - result[-1]).T
    return heat(asked, "input token that is 1, all others 0", "result at token", seen, "result", square=True)


def _doubles(chart: Map) -> bool:
    turns = [_turns(chart.values[:, k]) for k in range(5)]
    return all(abs(b - 2 * a) <= 2 for a, b in pairwise(turns)) and turns[0] < turns[-1]


@picture(_doubles)
def fourier(asked: Asked) -> Chart:
    """Each band has twice the frequency of the band before: coarse place on the left, fine place on the right."""
    x = (np.arange(128) + 0.5) / 128
    bands = 2 * np.pi * 2.0 ** np.arange(5)
    result = call(
        asked, {"unit": "radians", "arrangement": "wave band coordinate", "include": "none"}, x=x[:, None], bands=bands
    )[0]
    return heat(asked, "channel: sines of 5 bands, then cosines", "coordinate (1/128 of the range)", result, "value")


def _gauss(chart: Map) -> bool:
    rows, columns = np.indices(chart.values.shape) - SIDE // 2
    ideal = np.exp(-(rows**2 + columns**2) * (2 * np.pi) ** 2 * 0.02**2 / 2)
    return bool(np.abs(chart.values - ideal).max() < 5 / np.sqrt(2 * 2048))  # five standard errors of the mean of 2048


@picture(_gauss)
def random_fourier(asked: Asked) -> Chart:
    """Inner products with the middle cell fall like a Gaussian of the distance, equally in all directions."""
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    matrix = np.random.default_rng(0).standard_normal((2, 2048)) * 0.02
    result = call(asked, {"layout": "sin_cos"}, x=np.stack([rows, columns], axis=-1) * 1.0, matrix=matrix)[0]
    products = inner_products(result, middle=SIDE // 2 * SIDE + SIDE // 2).reshape(SIDE, SIDE) / 2048
    return heat(asked, "column", "row", products, "inner product / that with itself", square=True)


def _two_of_eight(chart: Map) -> bool:
    block, place = np.divmod(np.arange(64), 8)
    weights = np.zeros((8, 64))
    weights[block, np.arange(64)] += 0.4 / 0.6  # the row of the block, and that of the place within it
    weights[place, np.arange(64)] += 1.0
    return same(chart.values[1:], weights[1:], 8) and same(chart.values.sum(axis=0), 1.0, 8)


@picture(_two_of_eight)
def hierarchical_learned(asked: Asked) -> Chart:
    """8 trained rows serve 64 positions: each mixes the row of its block (stairs) with the row of its place in it (teeth)."""
    result = call(asked, {"alpha": 0.4}, positions=np.arange(64), table=np.eye(8))[0]
    return heat(asked, "position (tokens)", "trained row", result.T, "weight of the row")


def _boxes(chart: Map) -> bool:
    x0, y0, x1, y1, h, w = np.split(chart.values, 6, axis=1)
    right, down, grow = slice(0, 8), slice(8, 16), slice(16, 24)
    still = [y0[right], y1[right], h[right], w[right], x0[down], x1[down], h[down], w[down], x0[grow], y0[grow]]
    return all(same(part, part[:1]) for part in still) and not same(x0[right], x0[:1])


@picture(_boxes)
def layout_2d(asked: Asked) -> Chart:
    """A box moves right, then down, then grows: only the channels of what changed change."""
    n = np.arange(8)
    boxes = np.concatenate([
        np.stack([n, 0 * n, n + 2, 0 * n + 2], axis=-1),
        np.stack([0 * n, n, 0 * n + 2, n + 2], axis=-1),
        np.stack([0 * n, 0 * n, n + 2, n + 2], axis=-1),
    ])  # fmt: skip
    rows = sines(np.arange(16), 6, 10.0)
    tables = dict.fromkeys(("x_table", "y_table", "h_table", "w_table"), rows)
    result = call(asked, {"combine": "concat", "clip_sizes": False}, boxes=boxes, **tables)[0]
    change = np.abs(result - result[:1])
    return heat(asked, "channels of x0, y0, x1, y1, height, width (6 each)", "box: 8 right, 8 down, 8 larger", change, "change")


def _stamp(chart: Map) -> bool:
    rows, columns = np.nonzero(chart.values)
    near = (np.abs(rows - 8) <= 1) & (np.abs(columns - 8) <= 1) | (rows <= 1) & (columns <= 1)
    return bool(near.all()) and len(rows) == 9 + 4


@picture(_stamp)
def peg(asked: Asked) -> Chart:
    """Two cells at 1 reach their neighbours through a small kernel. The border cuts part of it off and so shows its place."""
    x = np.zeros((13, 13, 1))
    x[0, 0], x[8, 8] = 1.0, 1.0
    weight = np.arange(1.0, 10.0).reshape(1, 1, 3, 3)
    result = call(asked, {"residual": False}, x=x, weight=weight, bias=np.zeros(1))[0]
    return heat(asked, "column", "row", result[..., 0], "result", square=True)


def _returns(chart: Map) -> bool:
    six, five, path = chart.values[:6], chart.values[7:12], chart.values[13:]
    odd, equal = np.arange(12) % 2 == 0, [bool((part == part[0]).all()) for part in (six, five, path)]
    even_only = bool((six[:, odd] == 0).all() and (path[:, odd] == 0).all())
    return even_only and bool((five[:, 4:] > 0).all()) and equal == [True, True, False]


@picture(_returns)
def random_walk_diagonals(asked: Asked) -> Chart:
    """Chance of being back: on a ring of 6 after even steps only, on a ring of 5 also after 5, 7; on a path nodes differ."""
    adjacency = np.zeros((17, 17))
    edges = (
        [(n, (n + 1) % 6) for n in range(6)]
        + [(6 + n, 6 + (n + 1) % 5) for n in range(5)]
        + [(n, n + 1) for n in range(11, 16)]
    )
    for a, b in edges:
        adjacency[a, b] = adjacency[b, a] = 1.0
    result = call(asked, {"steps": 12}, adjacency=adjacency)[0]
    blank = np.full((1, 12), np.nan)
    apart = np.concatenate([result[:6], blank, result[6:11], blank, result[11:]])
    label = "node (path, ring of 5, ring of 6)"
    chart = heat(asked, "steps of the walk", label, apart, "probability of return", rows=(6, 5, 6))
    return replace(chart, first=(1.0, 0.0))


def _enlarged(chart: Map) -> bool:
    old, new = chart.values[:, :24][1::3, 1::3], chart.values[:, 25:]
    return same(new[1::3, 1::3], old, 4) and len(np.unique(new.round(12))) > 2 * len(np.unique(old))


@picture(_enlarged)
def resample(asked: Asked) -> Chart:
    """Left a table of 8 x 8 cells, right the same table for 24 x 24 cells: the same picture, with values in between."""
    rows, columns = np.indices((8, 8)) / 7
    old = np.exp(-8 * ((rows - 0.3) ** 2 + (columns - 0.35) ** 2)) + 0.7 * np.exp(
        -20 * ((rows - 0.8) ** 2 + (columns - 0.75) ** 2)
    )
    options = {
        "size": (24, 24),
        "old_size": (8, 8),
        "prefix": 0,
        "method": "linear",
        "align_corners": False,
        "antialias": False,
    }
    result = call(asked, options, table=old.reshape(64, 1))[0]
    both = beside(old.repeat(3, axis=0).repeat(3, axis=1), result.reshape(24, 24))
    label = "column (left before, right after; 1/24 of the width)"
    return heat(asked, label, "row (1/24 of the height)", both, "one channel", square=True, columns=(24, 24))


@of_kind("table")
def sinusoidal(chart: Map) -> bool:
    """Each pair of channels is a sine and a cosine that is slower than the pair before."""
    turns = [_turns(chart.values[:, k]) for k in range(0, chart.values.shape[1], 2)]
    return turns[0] > turns[-1] and all(a >= b for a, b in pairwise(turns))


def _padded(chart: Map) -> Any:
    values = chart.values
    return np.ptp(values[:, 18:]) == 0 and values[12, 9] == values.max() and np.ptp(values[:, 17]) > 1


@picture(_padded)
def sine_2d(asked: Asked) -> Chart:
    """Products with the middle of the valid cells fall along rows and columns; all padded cells are alike."""
    mask = np.ones((SIDE, SIDE), dtype=bool)
    mask[:, 18:] = False
    result = call(asked, {"dim": 64, "normalize": True, "centered": False}, mask=mask)[0].reshape(SIDE * SIDE, -1)
    products = inner_products(result, middle=12 * SIDE + 9).reshape(SIDE, SIDE)
    return heat(asked, "column (18 valid, then padding)", "row", products, "inner product", square=True)


@of_kind("grid")
def sinusoidal_nd(chart: Map) -> bool:
    """The product of two cells is a term of their rows plus a term of their columns: a cross, not a disc."""
    return same(chart.values - chart.values[:1], (chart.values - chart.values[:1])[:, :1], 64)


def _shifts(chart: Map) -> bool:
    matrix = chart.values
    inside = np.kron(np.eye(8), np.ones((2, 2))) == 1
    moved = all(same(matrix @ sines(p, 16, 10.0), sines(p + 3, 16, 10.0), 16) for p in (0, 5, 90))
    return bool((matrix[~inside] == 0).all()) and moved


@picture(_shifts)
def sinusoidal_shift(asked: Asked) -> Chart:
    """One matrix moves every position by 3 tokens: 2 x 2 rotations on the diagonal, and nothing elsewhere."""
    result = call(asked, {"dim": 16, "layout": "interleaved", "base": 10.0}, offsets=np.asarray(3.0))[0]
    return heat(asked, "channel of position p", "channel of position p + 3", result, "factor", square=True)


@picture(lambda chart: same(chart.values[0], np.r_[np.zeros(32), np.ones(32)]) and chart.values.shape == (200, 64))
def timestep(asked: Asked) -> Chart:
    """Sines fill the first half of the channels and cosines the second; a step of 1000 still differs from 995."""
    steps = np.arange(200.0) * 5
    result = call(asked, {"dim": 64, "flip": False, "freq_shift": 1, "scale": 1.0}, timesteps=steps)[0]
    return heat(asked, "channel", "timestep / 5", result, "value")


def _normed(chart: Lines) -> bool:
    (gains, before), (_, after) = chart.series.values()
    return same(after, gains, 8) and not same(before, gains, 8)


@picture(_normed)
def weight_norm(asked: Asked) -> Chart:
    """Whatever the norm of each slice of v was, the result has the norm g: its points lie on the diagonal."""
    v = np.random.default_rng(1).standard_normal((4, 3, 16)) * np.geomspace(0.3, 1.2, 16)
    gains = 0.4 + 4.0 * np.random.default_rng(2).permutation(16) / 15
    result = call(asked, {"axis": 2}, v=v, g=gains.reshape(1, 1, 16))[0]
    norms: Any = [np.sqrt((x**2).sum(axis=(0, 1))) for x in (v, result)]
    series = {"v": (gains, norms[0]), "the result": (gains, norms[1])}
    return lines(asked, "g", "norm of a slice", series, points=True)
