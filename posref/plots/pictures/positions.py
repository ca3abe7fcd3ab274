"""Pictures of position ids."""

from __future__ import annotations

import numpy as np

from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map
from posref.plots.ids import ids
from posref.positions import multimodal

from .made import call, lines, picture


def _steps(chart: Lines) -> bool:
    (_, y), *_ = chart.series.values()
    return set(np.diff(y)) == {0.0, 1.0}


def _counts(chart: Map) -> bool:
    """Return whether every row counts up by one from somewhere, and some row does not begin at its first place."""
    steps = np.diff(chart.values, axis=1)
    return bool((steps == 1).any(axis=1).all() and (steps != 1).any())


def _numbered(chart: Map) -> bool:
    steps = np.diff(chart.values, axis=1)
    return bool((chart.values[:, 0] == 0).all() and np.isin(steps, (0, 1)).all() and steps.sum(axis=1).tolist() == [0, 1, 2, 3])


def _cover(chart: Map) -> bool:
    """Return whether every token is with exactly one rank."""
    return bool((np.isfinite(chart.values).sum(axis=0) == 1).all())


def _falls(chart: Lines) -> bool:
    """Return whether an image of s x s cells moves what follows back by s * s - s, and text by nothing."""
    x, y = chart.series["square images"]
    return bool((y == x - x * x).all() and (chart.series["text"][1] == 0).all())


def _siblings(chart: Lines) -> bool:
    """Return whether 1, 2, 4, 8 and 16 nodes stand at consecutive positions."""
    _, y = chart.series["tree"]
    return bool(np.unique(y, return_counts=True)[1].tolist() == [1, 2, 4, 8, 16] and np.ptp(y) == 4)


@picture(_falls)
def decode_delta(asked: Asked) -> Chart:
    """After an image of s x s cells the next tokens stand s x s - s positions earlier than the cache is long."""
    sides = np.arange(1, 17)
    images = [multimodal([("text", 3), ("image", side, side), ("text", 2)], after="max") for side in sides]
    deltas = [call(asked, {}, positions=p, mask=np.ones(p.shape[1]) > 0)[0] for p in images]
    text = [call(asked, {}, positions=np.arange(p.shape[1])[None], mask=np.ones(p.shape[1]) > 0)[0] for p in images]
    return lines(asked, "side of the image (cells)", "what is added", {"square images": (sides, deltas), "text": (sides, text)})


@picture(_siblings)
def draft_tree(asked: Asked) -> Chart:
    """In a tree with two children a node, siblings share a position, which grows by one with each generation."""
    nodes = np.arange(31)
    (result,) = call(asked, {}, verified=np.asarray(12), parents=(nodes - 1) // 2)
    return lines(asked, "node", "position (tokens)", {"tree": (nodes, result), "a chain": (nodes, 12 + nodes)}, points=True)


@picture(_steps, "ids")
def visible_windows(asked: Asked) -> Chart:
    """The number of windows that a query sees grows by one at the last token of each window."""
    return ids(asked)


@picture(_counts, "ids")
def positions_from_mask(asked: Asked) -> Chart:
    """Each row counts its own tokens from 0, wherever its padding is."""
    return ids(asked)


@picture(lambda chart: _counts(chart) and chart.values.max() == 25, "ids")
def positions_from_tokens(asked: Asked) -> Chart:
    """Tokens count from the padding's id plus 1, and padding keeps the padding's id."""
    return ids(asked)


@picture(_numbered, "ids")
def packed_documents(asked: Asked) -> Chart:
    """Tokens of one document share a number, which grows by one where the next document begins."""
    return ids(asked)


@picture(lambda chart: _cover(chart) and (np.isfinite(chart.values[0, [0, -1]])).all(), "ids")
def zigzag_shard(asked: Asked) -> Chart:
    """Each rank has a piece from the front and its mirror image from the back, so all ranks do equal causal work."""
    return ids(asked)


@picture(lambda chart: _cover(chart) and np.isfinite(chart.values[0, :: len(chart.values)]).all(), "ids")
def striped_shard(asked: Asked) -> Chart:
    """Neighbouring tokens lie on different ranks: each rank has every fourth token."""
    return ids(asked)
