"""Random-walk encoding of nodes: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Real, Step, after, argument, cases_of, deviations_of, form_case, gradient, held, reals
from .tools.hints import KEEP_FLOAT32

OP = "random_walk_diagonals"
USUAL: dict[str, Any] = {"steps": 3}
KERNEL: tuple[dict[str, Any], ...] = ({"steps": 8},)
KERNEL_SIZES: dict[str, Any] = {"N": 65, "R": (3,)}

_cases = cases_of(OP)


def _edges(nodes: int, *edges: tuple[Any, ...]) -> Any:
    """Return the matrix of these edges, of weight 1 or (from, to, weight)."""
    adjacency = np.zeros((nodes, nodes))
    for a, b, *weight in edges:
        adjacency[a, b] = adjacency[b, a] = weight[0] if weight else 1.0
    return adjacency


PAW = ((0, 1), (1, 2), (2, 0), (2, 3))  # a triangle with a tail
WEIGHTED = _edges(4, (0, 1, 2.0), (1, 2, 0.5), (2, 0, 1.0), (2, 3, 0.25))
RING = _edges(6, *((n, (n + 1) % 6) for n in range(6)))


def _drawn(name: str, nodes: int, bits: int = 8, *lead: int) -> Any:
    """Return weights from 0 to 2, some of them 0."""
    weights = reals(OP + name, *lead, nodes, nodes, bits=bits) / 2
    return np.where(weights > -0.5, np.abs(weights), 0.0)


def _random(nodes: int, share: float) -> Any:
    """Return a graph without weights that has about this share of all edges."""
    above = np.triu(reals(f"{OP} graph {nodes}", nodes, nodes) > 4 - 8 * share, 1)
    return (above | above.T).astype(np.float64)


def _case(name: str, adjacency: Any, steps: int, comment: str = "", **rest: Any) -> Case:
    return _cases(name, {"steps": steps}, {"adjacency": adjacency}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("graphs/small", _edges(4, *PAW), 4, tier="smoke"),
        _case("graphs/20-nodes", _random(20, 0.2), 16, "16 steps"),
        _case("weights/light-drawn", _drawn("light", 4) / 16, 4),
        _case("weights/rows", _drawn("rows", 3, 8, 2, 3), 3, "(2, 3) graphs"),
        _case("weights/many-graphs", _drawn("many", 2, 8, 20), 2, "20 graphs of two nodes"),
        _case("weights/one-node", np.asarray([[0.5]]), 3, "a node with an edge to itself"),
        _case("weights/true-size", _drawn("true size", 12, 24), 20),
        _case("empty/no-node", np.zeros((0, 0)), 3),
        _case("empty/no-node-rows", np.zeros((2, 0, 0)), 2),
        form_case(OP, "batch-one", {"adjacency": _drawn("batch", 4, 8, 1)}, {"steps": 3}),
        Case(f"{OP}/sequence/graphs", kind="sequence", comment="one graph after another",
             steps=(Step({"steps": 2}, {"adjacency": WEIGHTED}), Step({"steps": 3}, {"adjacency": RING}))),
        _case("refused/rectangle", np.ones((3, 4)), 2, "not square", kind="reject"),
        _case("refused/no-steps", np.ones((3, 3)), 0, "a step or more", kind="reject"),
        gradient(OP, "weights", {"adjacency": _drawn("gradient", 3) + 0.5}, {"out": (3, 3)}, steps=3),
        gradient(OP, "rows", {"adjacency": _drawn("gradient rows", 2, 8, 2) + 0.25}, {"out": (2, 2, 2)}, steps=2),
        gradient(OP, "strided", {"adjacency": _drawn("gradient strided", 2, 8, 2) + 0.5},
                 {"out": (2, 2, 3)}, steps=3, view="non-contiguous"),
    )  # fmt: skip


def _divided(change: Any) -> Any:
    """Return a wrap that makes transitions in another way."""
    return lambda f: lambda a, /: change(a)


def _both(a: Real) -> Real:
    return a + np.swapaxes(a, -1, -2)


def _safe(x: Real) -> Real:
    return np.where(x == 0, 1.0, x)


_deviation = deviations_of(OP)
_transitions = deviations_of("transitions")
ROWS = "Divide each row by its sum: D^-1 A."
WEIGHT = "Divide the weight of each edge by the sum of its row."
FIRST = "Column k - 1 is for k steps: there is no column for 0 steps."

DEVIATIONS = (
    _transitions("walk-weights-lost", "1 is divided by the sum of weights, not the weight",
                 _divided(lambda a: np.where(a != 0, 1.0, 0.0) / _safe(np.sum(a, -1, keepdims=True))), hint=WEIGHT,
                 seen_in="pyg-team/pytorch_geometric#10098"),
    _transitions("walk-degree-at-least-one", "sums of weights below 1 count as 1",
                 _divided(lambda a: a / np.maximum(np.sum(a, -1, keepdims=True), 1.0)), hint=WEIGHT,
                 seen_in="pyg-team/pytorch_geometric#10098"),
    _transitions("walk-unweighted", "all edges have the weight 1",
                 _divided(lambda a: (a != 0) / _safe(np.sum(a != 0, -1, keepdims=True))), hint=WEIGHT),
    _transitions("walk-columns", "each column is divided by its sum",
                 _divided(lambda a: a / _safe(np.sum(a, -2, keepdims=True))), hint=ROWS),
    _transitions("walk-symmetrized", "edges are taken in both directions",
                 _divided(lambda a: _both(a) / _safe(np.sum(_both(a), -1, keepdims=True))),
                 hint="Row n has only the edges that leave node n."),
    _transitions("walk-not-divided", "rows are not divided", _divided(lambda a: a), hint=ROWS),
    _transitions("walk-loops-removed", "edges of a node to itself are left out",
                 argument(0, lambda a: a * (1 - np.eye(a.shape[-1]))), hint="Keep the diagonal of the matrix."),
    _transitions("walk-isolated-stays", "a walker at a node without edges stays there",
                 after(lambda out, a: np.where(np.sum(a, -1, keepdims=True) == 0, np.eye(a.shape[-1]), out)),
                 hint="A node without edges has a row of zeros."),
    _deviation("walk-from-zero", "the first column is for 0 steps",
               lambda f: lambda a, /, *, steps: np.concatenate([np.ones((*a.shape[:-1], 1)), f(a, steps=steps)[..., :-1]], -1),
               hint=FIRST),
    _deviation("walk-one-more", "each column is one step further",
               lambda f: lambda a, /, *, steps: f(a, steps=steps + 1)[..., 1:], hint=FIRST),
    _deviation("walk-first-graph", "every graph of the batch is the first",
               argument(0, lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim > 2 else a),
               hint="Keep the axes of the batch in the product."),
    _deviation("walk-bfloat16", "weights are held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
)  # fmt: skip
