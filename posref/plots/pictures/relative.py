"""Pictures of relative encodings inside the scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map

from .made import beside, call, heat, lines, picture, same, toeplitz

TOKENS = 48
APART = np.subtract.outer(np.arange(TOKENS), np.arange(TOKENS))


def _near_are_exact(chart: Lines) -> bool:
    ((x, y),) = chart.series.values()
    near = np.abs(x) <= 8
    return bool((np.diff(y[near]) == 1).all() and np.ptp(y[x >= 64]) == 0 and np.isin(np.diff(y), (0, 1)).all())


@picture(_near_are_exact)
def deberta_rows(asked: Asked) -> Chart:
    """Near offsets have rows of their own; far offsets share rows, ever more of them, on both sides."""
    apart = np.arange(-80, 81)
    result = call(asked, {"num_buckets": 16, "max_distance": 64}, relative_positions=apart)[0]
    return lines(asked, "query - key (tokens)", "row of the table", {"row": (apart, result)}, steps=True)


def _two_terms(chart: Map) -> bool:
    first, second, both = (chart.values[:, (TOKENS + 1) * n : (TOKENS + 1) * n + TOKENS] for n in range(3))
    alone = all(toeplitz(part, 4) and np.ptp(part) > 1 for part in (first, second))
    return alone and same(both, first + second, 16) and not same(first, second, 16)


@picture(_two_terms)
def deberta_scores(asked: Asked) -> Chart:
    """The query's term of the offset, the key's term, and their sum: contents are equal, and far offsets share wider bands."""
    size = 8
    rows = np.arange(2.0 * size)
    ones, zeros = np.ones((1, TOKENS, 2)), np.zeros((1, 2 * size, 2))
    query = np.stack([rows - size, 0 * rows], axis=-1)[None]
    key = np.stack([0 * rows, 4 * np.cos(rows / 3)], axis=-1)[None]
    places = np.arange(TOKENS)
    options = {"num_buckets": size, "max_distance": 32, "p2c": "code"}
    result = [
        call(asked, options, q=ones, k=ones, q_positions=places, k_positions=places, rel_k=rel_k, rel_q=rel_q)[0][0] - 2
        for rel_k, rel_q in ((query, zeros), (zeros, key), (query, key))
    ]
    label = "key (query's term, key's term, both)"
    return heat(asked, label, "query", beside(*result), "score less q k", columns=(TOKENS,) * 3)


@picture(lambda chart: chart.values.shape == (16, 32) and set(np.diff(chart.values, axis=0).ravel()) == {2.0})
def decomposed_rows(asked: Asked) -> Chart:
    """16 queries along an axis meet 32 keys: a query moves by two keys, and each scaled offset has its own row of the table."""
    options = {"q_size": 16, "k_size": 32}
    result = call(asked, options, q_positions=np.arange(16), k_positions=np.arange(32))[0]
    return heat(asked, "key", "query", result, "row of the table")


def _crossed(chart: Map) -> Any:
    values = chart.values
    return same(values - values[:1], (values - values[:1])[:, :1], 16) and values[4, 9] == values.max()


@picture(_crossed)
def decomposed_bias(asked: Asked) -> Chart:
    """The bias of the query at row 4, column 9 is a term of each key's row offset plus a term of its column offset."""
    side = 14
    far = np.abs(np.arange(2 * side - 1) - (side - 1.0))[:, None]
    options = {"k_rows": side, "k_columns": side}
    result = call(asked, options, q=np.ones((side, side, 1)), table_h=-far, table_w=-0.5 * far)[0]
    return heat(asked, "column of the key", "row of the key", result[4, 9], "bias (logits)", square=True)


def _moved(chart: Map) -> bool:
    before, after = chart.values[:, :31], chart.values[:, 32:]
    return same(after, -abs(np.arange(16)[:, None] - np.arange(16)), 16) and same(before, before[:1])


@picture(_moved)
def relative_shift(asked: Asked) -> Chart:
    """Left a column holds one distance, 15 to -15; right each score is at its key: equal distances lie on diagonals."""
    x = np.tile(-abs(np.arange(15.0, -16.0, -1.0)), (16, 1))
    both = beside(x, call(asked, {}, x=x)[0][:, :16])
    return heat(
        asked, "column of distance 15 to -15 (left), key (right)", "query", both, "score, here -|distance|", columns=(31, 16)
    )


@picture(lambda chart: (chart.values == np.clip(-APART, -12, 6) + 12).all())
def shaw_scores(asked: Asked) -> Chart:
    """Each offset has its own vector up to the clip, 12 to the left and 6 to the right; all beyond it share the last."""
    places = np.arange(TOKENS)
    options = {"left": 12, "right": 6, "order": "key_minus_query"}
    ones, zeros, rows = np.ones((TOKENS, 1)), np.zeros((TOKENS, 1)), np.arange(19.0)[:, None]
    result = call(asked, options, q=ones, k=zeros, key_table=rows, q_positions=places, k_positions=places)[0]
    return heat(asked, "key", "query", result, "row of the table", square=True)


def _shares(chart: Lines) -> bool:
    begin, middle, end = (y for _, y in chart.series.values())
    mirrored = begin[-1] > 2 * begin[-2] and end[0] > 2 * end[1]  # the first queries have all keys after them, the last before
    all_shared = all(same(y.sum(), 1.0, 64) for y in (begin, middle, end))
    return all_shared and mirrored and bool((np.diff(middle[1:9]) > 0).all() and middle[0] > 2 * middle[1])


@picture(_shares)
def shaw_values(asked: Asked) -> Chart:
    """How much weight each row of the table gets if weights fall with the distance: all beyond the clip gathers at the ends."""
    places = np.arange(TOKENS)
    weights = np.exp(-np.abs(APART) / 8)
    weights /= weights.sum(axis=1, keepdims=True)
    arrays = {"weights": weights, "v": np.zeros((TOKENS, 17)), "value_table": np.eye(17)}
    options = {"left": 8, "right": 8, "order": "key_minus_query"}
    result = call(asked, options, **arrays, q_positions=places, k_positions=places)[0]
    series = {f"query {query}": (np.arange(-8, 9), result[query]) for query in (2, 24, 45)}
    return lines(asked, "key - query, clipped to -8 and 8", "weight of the row", series)


def _stripes(chart: Map) -> bool:
    plain = np.delete(np.delete(chart.values, [10, 30], axis=1), [10, 30], axis=0)
    raised = chart.values[40, 10] - chart.values[39, 9]
    return toeplitz(chart.values[11:30, 11:30]) and same(raised, 8.0, 64) and not math.isnan(plain.sum())


@picture(_stripes)
def transformer_xl_scores(asked: Asked) -> Chart:
    """Without a query's content, u favours some keys for all queries (columns), and v favours offsets (diagonals)."""
    width, places = 32, np.arange(TOKENS)
    k = np.zeros((1, TOKENS, width))
    k[0, [10, 30], 0] = 1.0
    weight = np.concatenate([np.zeros((width // 2, 1, width)), np.eye(width)[width // 2 :, None, :]])
    biases = {"bias_u": np.full((1, width), 8.0), "bias_v": np.ones((1, width))}
    arrays = {"q": np.zeros((1, TOKENS, width)), "k": k, "r_weight": weight, **biases}
    result = call(asked, {"layout": "sin_cos"}, q_positions=places, k_positions=places, **arrays)[0][0]
    return heat(asked, "key", "query", result, "score", square=True)
