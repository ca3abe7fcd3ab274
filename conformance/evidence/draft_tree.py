"""Positions of a tree of draft tokens: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.position_ids import in_sequence
from .tools import Case, Function, after, argument, around_with, cases_of, deviations_of

SIZES: dict[str, Any] = {"N": 6}

CHAIN = (-1, 0, 1, 2, 3)
BRANCHED = (-1, 0, 0, 1, 1, 2, 3, 6)  # depths 0 1 1 2 2 2 3 4
FOREST = (-1, -1, 0, 1, 1, 2, -1)  # three roots
TOP_K = (-1, *([0] * 3), *([1] * 3), 2, 2, 3, 4, 4, 7, 10)  # a root, and its best three

_case = cases_of("draft_tree")


def _given(verified: Any, parents: Any) -> dict[str, Any]:
    return {"verified": np.asarray(verified, dtype=np.int64), "parents": np.asarray(parents, dtype=np.int64)}


def _long(count: int) -> tuple[int, ...]:
    """Return the parents of nodes, in a tree of few branches: Medusa's has 63."""
    return (-1, *((node * 7) % (node // 2 + 1) for node in range(count - 1)))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    rows = np.stack([BRANCHED, (-1, 0, 1, 2, 0, 4, 5, 5), (-1, 0, 0, 0, 3, 4, 5, 6)])
    return (
        _case("tree/small", {}, _given((10, 3), BRANCHED), tier="smoke"),
        _case("tree/top-k", {}, _given((12,), TOP_K)),
        _case("tree/medusa", {}, _given((129, 2047), _long(63)), "63 nodes"),
        _case("tree/65-nodes", {}, _given((5,), _long(65)), "one more than the bits of a word"),
        _case("tree/131-nodes", {}, _given((40, 3), _long(131)), "more than two words hold"),
        _case("rows/shared-tree", {}, _given(((4, 20, 11), (0, 3, 8)), BRANCHED)),
        _case("far/small", {}, _given((131071, 1048575), BRANCHED)),
        _case("empty/nodes", {}, _given((4, 2), ())),
        _case("refused/float", {}, {"verified": np.asarray([4]), "parents": np.asarray([-1.0, 0.0])},
              "parents of reals", kind="reject"),
        _case("refused/no-axis", {}, _given((4,), -1), "a single number is no tree", kind="reject"),
        _case("forms/expanded-twice", {}, _given(((6, 6), (6, 6)), np.stack([np.stack([FOREST] * 2)] * 2)),
              form="broadcast-view"),
        _case("forms/expanded-verified", {}, _given(((7, 2), (7, 2)), BRANCHED), form="broadcast-view"),
        _case("forms/length-one", {}, _given((13,), ((-1,),))),
        _case("forms/length-zero", {}, _given((3, 14), np.zeros((2, 0)))),
        _case("forms/no-rows", {}, _given(np.zeros((2, 0)), np.zeros((2, 0, 3)))),
        _case("forms/no-rows-again", {}, _given(np.zeros((3, 0)), np.zeros((3, 0, 4)))),
        in_sequence("draft_tree", ({}, _given((4, 20, 11), rows)), ({}, _given((9,), FOREST)), ({}, _given((9,), CHAIN))),
    )  # fmt: skip


def _first_tree(parents: Any) -> Any:
    """Return the first row's tree for every row."""
    return np.broadcast_to(parents[..., :1, :], parents.shape) if parents.ndim > 1 else parents


@around_with
def _numbered(change: Any, function: Function, verified: Any, parents: Any, /) -> Any:
    """Nodes are placed after the verified tokens by what `change` makes of the parents."""
    out = np.asarray(function(verified, parents))
    return np.broadcast_to(np.asarray(verified)[..., None] + change(np.asarray(parents)), out.shape)


DEPTH = "A node is one deeper than its parent. Siblings have the same position."
ROOT = "A root has the position after the verified tokens: n itself, counted from 0."
_deviation = deviations_of("draft_tree")

DEVIATIONS = (
    _deviation("tree-index", "nodes are numbered by their index", _numbered(lambda parents: np.arange(parents.shape[-1])),
               hint=DEPTH),
    _deviation("tree-parent-index", "a node has its parent's index plus 1, not its depth", _numbered(lambda p: p + 1),
               hint=DEPTH),
    _deviation("tree-flat", "all nodes but roots have depth 1", _numbered(lambda parents: np.where(parents < 0, 0, 1)),
               hint=DEPTH),
    _deviation("tree-root-late", "a root has depth 1", after(lambda out, *args: out + 1), hint=ROOT),
    _deviation("tree-root-early", "a root has the position of the last verified token", after(lambda out, *args: out - 1),
               hint=ROOT),
    _deviation("tree-local", "positions count from 0 in the tree",
               after(lambda out, verified, parents: out - np.asarray(verified)[..., None]), hint="Add the verified tokens."),
    _deviation("tree-first-row", "all rows have the tree of the first", argument(1, _first_tree),
               hint="Each row has its own tree."),
    _deviation("tree-first-verified", "all rows have as many verified tokens as the first",
               argument(0, lambda v: np.full_like(v, v.flat[0]) if np.size(v) else v), hint="Each row has its own length."),
)  # fmt: skip
