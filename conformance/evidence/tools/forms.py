"""
Cases of forms of input: arrays that are views, and sizes 1 and 0 on every axis where they make sense.

The forms non-contiguous and broadcast-view say how the checker makes the arrays, in libraries whose arrays have strides: the
first as parts of wider rows whose leading axes are stored last first (as queries and keys are that come out of one product),
the second with a stride of 0 on axes, except the last, along which the values do not change.
"""

from typing import Any

import numpy as np

from ...model import Case
from .case import cases_of

NONE = np.zeros(0, dtype=np.int64)


def form_case(op: str, name: str, inputs: dict[str, Any], params: dict[str, Any], comment: str = "", form: str = "") -> Case:
    """Return a case of one form of input."""
    return cases_of(op)(f"forms/{name}", params, inputs, comment, form=form)


def places(op: str, argument: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return the cases of an operation with one array of positions and perhaps a table."""

    def case(name: str, positions: Any, **rest: Any) -> Case:
        return form_case(op, name, {argument: positions, **table}, params, **rest)

    return (
        case("strided-vector", (0, 5, 2, 8, 7), form="non-contiguous"),
        case("batch-one", ((4, 0, 8, 7, 2),)),
        case("length-one", ((8,),)),
        case("length-zero", np.zeros((2, 0), dtype=np.int64)),
    )


def pairs(op: str, params: dict[str, Any], **table: Any) -> tuple[Case, ...]:
    """Return the cases of a bias with query and key positions."""

    def of(q: Any, k: Any) -> dict[str, Any]:
        return {"q_positions": q, "k_positions": k, **table}

    rows = ((4, 5, 300), (26, 31, 2)), ((0, 2, 3, 9, 40), (25, 30, 28, 3, 1))
    return (
        form_case(op, "strided", of(*rows), params, form="non-contiguous"),
        form_case(op, "strided-vector", of((7, 2, 40), (0, 3, 1, 9, 20)), params, form="non-contiguous"),
        form_case(op, "batch-one", of(((6, 2, 11),), ((0, 4, 7, 30),)), params),
        form_case(op, "length-one", of((7,), (3,)), params, "one query and one key"),
        form_case(op, "one-key", of((2, 12, 5), (4,)), params),
        form_case(op, "no-key", of((3, 4), NONE), params),
    )
