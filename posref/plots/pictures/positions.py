"""Pictures of position ids."""

from __future__ import annotations

import numpy as np

from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map
from posref.positions import multimodal

from .made import call, lines, of_kind, picture


def _counts(chart: Map) -> bool:
    """Return whether every row counts up by one from somewhere, and some row does not begin at its first place."""
    steps = np.diff(chart.values, axis=1)
    return bool((steps == 1).any(axis=1).all() and (steps != 1).any())


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


@of_kind("ids")
def visible_windows(chart: Lines) -> bool:
    """The number of windows that a query sees grows by one at the last token of each window."""
    (_, y), *_ = chart.series.values()
    return set(np.diff(y)) == {0.0, 1.0}


@of_kind("ids")
def positions_from_mask(chart: Map) -> bool:
    """Each row counts its own tokens from 0, wherever its padding is."""
    return _counts(chart)


@of_kind("ids")
def positions_from_tokens(chart: Map) -> bool:
    """Tokens count from the padding's id plus 1, and padding keeps the padding's id."""
    return bool(_counts(chart) and chart.values.max() == 25)


@of_kind("ids")
def packed_documents(chart: Map) -> bool:
    """Tokens of one document share a number, which grows by one where the next document begins."""
    steps = np.diff(chart.values, axis=1)
    return bool((chart.values[:, 0] == 0).all() and np.isin(steps, (0, 1)).all() and steps.sum(axis=1).tolist() == [0, 1, 2, 3])


@of_kind("ids")
def zigzag_shard(chart: Map) -> bool:
    """Each rank has a piece from the front and its mirror image from the back, so all ranks do equal causal work."""
    return bool(_cover(chart) and (np.isfinite(chart.values[0, [0, -1]])).all())


@of_kind("ids")
def striped_shard(chart: Map) -> bool:
    """Neighbouring tokens lie on different ranks: each rank has every fourth token."""
    return bool(_cover(chart) and np.isfinite(chart.values[0, :: len(chart.values)]).all())
