"""
Cases of forms of input: arrays that are views, and sizes 1 and 0 on every axis where they make sense.

The flags non-contiguous and broadcast-view say how the checker makes the arrays, in libraries whose arrays have strides: the
first as parts of wider rows whose leading axes are stored last first (as queries and keys are that come out of one product),
the second with a stride of 0 on axes, except the last, along which the values do not change.
"""

from typing import Any

import numpy as np

from ...model import Case, Flag
from .case import cases_of

FLAGS = {
    "non-contiguous": Flag("a view read as if its values lay one after another", "TileOPs #492, flash-attention #355"),
    "broadcast-view": Flag("a view with a stride of 0 read past its one row", "TransformerEngine (ROCm) #623"),
    "batch-one": Flag("a batch of one squeezed away, or stretched along another axis", "DeepSpeed #2782"),
    "length-one": Flag("one position, query or key handled as none, or as a square", "MLX #1340, x-transformers 74f241d"),
    "length-zero": Flag("no values: a crash or a wrong shape"),
}

NONE = np.zeros(0, dtype=np.int64)


def form(op: str, name: str, flags: str, inputs: dict[str, Any], params: dict[str, Any], comment: str = "") -> Case:
    """Return a case of one form of input."""
    return cases_of(op)(f"forms/{name}", flags, params, inputs, comment)


def places(op: str, argument: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return what an operation of one array of positions is asked, besides which it may have a table."""

    def case(name: str, flags: str, positions: Any) -> Case:
        return form(op, name, flags, {argument: positions, **table}, params)

    return (
        case("strided", "non-contiguous", ((3, 8, 1, 7), (0, 5, 2, 6), (4, 8, 0, 2))),
        case("strided-vector", "non-contiguous", (0, 5, 2, 8, 7)),
        case("expanded", "broadcast-view", ((3, 8, 1, 7, 0),) * 2),
        case("batch-one", "batch-one", ((4, 0, 8, 7, 2),)),
        case("length-one", "length-one batch-one", ((8,),)),
        case("length-zero", "length-zero", np.zeros((2, 0), dtype=np.int64)),
    )


def pairs(op: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return what a bias of query and key positions is asked."""

    def of(q: Any, k: Any) -> dict[str, Any]:
        return {"q_positions": q, "k_positions": k, **table}

    rows = ((4, 5, 300), (26, 31, 2)), ((0, 2, 3, 9, 40), (25, 30, 28, 3, 1))
    return (
        form(op, "strided", "non-contiguous", of(*rows), params),
        form(op, "strided-vector", "non-contiguous", of((7, 2, 40), (0, 3, 1, 9, 20)), params),
        form(op, "expanded", "broadcast-view", of(((3, 8),) * 2, ((0, 9, 1, 5),) * 2), params),
        form(op, "batch-one", "batch-one", of(((6, 2, 11),), ((0, 4, 7, 30),)), params),
        form(op, "length-one", "length-one", of((7,), (3,)), params, "one query and one key"),
        form(op, "one-key", "length-one", of((2, 12, 5), (4,)), params),
        form(op, "no-key", "length-zero", of((3, 4), NONE), params),
    )
