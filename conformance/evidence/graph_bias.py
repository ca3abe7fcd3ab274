"""Spatial and edge bias of graphs: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, argument, around_with, before, cases_of, deviations_of, gradient, held, reals
from .tools.hints import KEEP_FLOAT32, WEIGHT_CONVERTER

OP = "graph_bias"
SIZES: dict[str, Any] = {"N": 7, "L": 2, "E": 2}
KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"Q": 33, "K": 65, "N": 40, "L": 5, "E": 8, "H": 8, "R": (2,)}

_graph = cases_of(OP)


def _distances(*shape: int) -> Any:
    """Return distances from -1 to 8, no two rows alike."""
    n = np.arange(int(np.prod(shape)))
    return ((n * n * 3 + n * 7 + n // 5 + 4) % 10 - 1).reshape(shape)


def _arrays(name: str, pairs: tuple[int, ...], n: int, h: int, steps: int, features: int, bits: int = 8) -> dict[str, Any]:
    """Return the arrays for these pairs, (*B, Q, K): edges are 0 beyond the end of a path."""
    d = _distances(*pairs)
    there = np.arange(steps) < d[..., None]
    return {
        "distances": d,
        "table": reals(f"{OP} {name} b", n, h, bits=bits),
        "edges": reals(f"{OP} {name} e", *pairs, steps, features, bits=bits) * there[..., None] + 0.0,
        "weights": reals(f"{OP} {name} w", steps, features, h, bits=bits),
    }


def _case(
    name: str, pairs: tuple[int, ...], sizes: tuple[int, int, int, int] = (7, 3, 2, 4), comment: str = "", *,
    bits: int = 8, given: dict[str, Any] | None = None, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case; sizes are rows, heads, steps and features."""
    return _graph(name, {}, _arrays(name, pairs, *sizes, bits) | (given or {}), comment, **rest)


def _gradient(name: str, pairs: tuple[int, ...], sizes: tuple[int, int, int, int]) -> Case:
    arrays = _arrays(f"gradient {name}", pairs, *sizes)
    return gradient(OP, name, arrays, {"out": (*pairs[:-2], sizes[1], *pairs[-2:])})


FAR = np.asarray([[0, 5, 6, 300], [510, -1, 4, 2049], [131071, 1, 7, 65537]])


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (2, 3), (5, 2, 2, 3), tier="smoke"),
        _case("plain/two-batches", (2, 3, 2, 4), (6, 2, 3, 1)),
        _case("plain/one-head", (3, 5), (9, 1, 4, 3)),
        _case("plain/one-step", (5, 3), (8, 2, 1, 5)),
        _case("plain/square-vectors", (3, 4), (8, 4, 3, 4), "as many features as heads, as in Graphormer"),
        _case("plain/short-table", (3, 7), (2, 3, 2, 2), "one row for all distances"),
        _case("plain/far", (3, 4), (7, 2, 3, 2), given={"distances": FAR}),
        _case("plain/graphormer", (2, 3), (512, 8, 5, 8), "8 heads, paths of 5 edges",
              given={"distances": np.asarray([[0, 1, 510], [5, 7, 2]])}),
        _case("plain/dgl", (3, 4), (12, 8, 2, 16), "8 heads, 16 features"),
        _case("forms/batch-one-wide", (1, 2, 6)),
        _case("forms/length-one", (1, 1)),
        _case("refused/fractions", (2, 3), given={"distances": _distances(2, 3) + 0.5}, comment="edges are counted",
              kind="reject"),
        _case("refused/steps", (2, 3), given={"weights": reals("five steps", 5, 4, 3)}, comment="L is 2", kind="reject"),
        _case("refused/heads", (2, 3), given={"table": reals("five heads", 7, 5)}, comment="H is 3", kind="reject"),
        _gradient("small", (2, 3), (5, 2, 2, 2)),
        _gradient("batch", (2, 2, 2), (12, 2, 1, 2)),
    )  # fmt: skip


@around_with
def _mean(divisor: Any, function: Function, edges: Real, weights: Real, d: Any, /) -> Real:
    """The sum is divided by another number, of distances and steps."""
    summed = np.einsum("...lc,lch->...h", edges, weights)
    return summed / np.asarray(divisor(d, weights.shape[0]), dtype=np.float64)[..., None]


def _backwards(d: Any, table: Any, edges: Any, weights: Any, /) -> Any:
    """Exchange query and key where both are all nodes."""
    if d.shape[-1] != d.shape[-2]:
        return (d[..., ::-1, ::-1], table, edges[..., ::-1, ::-1, :, :], weights), {}
    return (np.swapaxes(d, -1, -2), table, np.swapaxes(edges, -3, -4), weights), {}


def _first(x: Any, axes: int) -> Any:
    return np.broadcast_to(x[:1], x.shape) if x.ndim > axes else x


_deviation = deviations_of(OP)
_rows = deviations_of("spatial_rows")
_path = deviations_of("path_mean")
ROWS = "Row 0 is for pairs without a path: distance n has row n + 1, at most the last."
LENGTH = "Divide by the length of the path: at least 1, and at most the number of steps."
STEPS = "Edge l of a path is multiplied by the vectors of step l."

DEVIATIONS = (
    _rows("graph-from-zero", "distance 0 has row 0", lambda f: lambda d, n, /: np.clip(d, 0, n - 1), hint=ROWS),
    _rows("graph-unreachable-last", "pairs without a path have the last row",
          lambda f: lambda d, n, /: np.where(d < 0, n - 1, f(d, n)), hint=ROWS),
    _rows("graph-unreachable-near", "pairs without a path are at distance 0", argument(0, lambda d: np.maximum(d, 0)),
          hint=ROWS),
    _rows("graph-wrapped", "distances beyond the table wrap around", lambda f: lambda d, n, /: (d + 1) % n, hint=ROWS),
    _path("graph-not-divided", "the edges' products are not divided", _mean(lambda d, n: np.ones_like(d)), hint=LENGTH),
    _path("graph-divided-by-steps", "the sum is divided by the number of steps", _mean(lambda d, n: 0 * d + n), hint=LENGTH),
    _path("graph-divided-by-distance", "the sum is divided by the whole distance",
          _mean(lambda d, n: np.maximum(d, 1)), hint=LENGTH),
    _path("graph-divided-by-nodes", "the sum is divided by the number of nodes on the path",
          _mean(lambda d, n: np.clip(d, 0, n) + 1), hint=LENGTH),
    _path("graph-first-step", "the first step's vectors are used for all",
          argument(1, lambda w: np.broadcast_to(w[:1], w.shape)), hint=STEPS),
    _path("graph-reversed", "steps are in reverse order", argument(1, lambda w: w[::-1]), hint=STEPS),
    _path("graph-no-edges", "the edges are left out", after(lambda mean, *args: 0 * mean), hint=LENGTH),
    _deviation("graph-backwards", "paths lead from key to query", before(_backwards),
               hint="Distances and paths are from the query's node to the key's: they differ in directed graphs."),
    _deviation("graph-vectors-reshaped", "the vectors are reshaped where their last axes should be exchanged",
               argument(3, lambda w: np.swapaxes(w, 1, 2).reshape(w.shape)), hint=WEIGHT_CONVERTER),
    _deviation("graph-table-reshaped", "the table is reshaped to (heads, rows) where it should be transposed",
               argument(1, lambda t: t.reshape(t.shape[::-1]).T), hint=WEIGHT_CONVERTER),
    _deviation("graph-first-graph", "the first graph's distances are used for all", argument(0, lambda d: _first(d, 2)),
               hint="Each graph of a batch has distances of its own."),
    _deviation("graph-bfloat16", "the table and the vectors are held in bfloat16", held("bfloat16", 1, 3), hint=KEEP_FLOAT32),
)  # fmt: skip
