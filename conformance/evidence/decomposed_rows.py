"""Rows of decomposed relative tables: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .tools import Case, Step, Wrap, after, cases_of, deviations_of
from .tools.hints import COMPARE_INTEGERS, FROM_ZERO, ROUND_DOWN, SIGN

OP = "decomposed_rows"

USUAL: dict[str, Any] = {"q_size": 12, "k_size": 8}
KERNEL: tuple[dict[str, Any], ...] = ({"q_size": 8192, "k_size": 4160},)

_case = cases_of(OP)


def _rows(name: str, q_size: int, k_size: int, q: Any = None, k: Any = None, comment: str = "", **rest: Any) -> Case:
    """Return a case of grids of these sizes, by default of all their cells."""
    inputs = {"q_positions": range(q_size) if q is None else q, "k_positions": range(k_size) if k is None else k}
    return _case(name, {"q_size": q_size, "k_size": k_size}, inputs, comment, **rest)


def _sequence(name: str, q_size: int, k_size: int, *calls: tuple[Any, Any]) -> Case:
    """Return calls after each other: nothing is kept from one to the next."""
    params = {"q_size": q_size, "k_size": k_size}
    steps = tuple(Step(params, {"q_positions": q, "k_positions": k}) for q, k in calls)
    return Case(f"{OP}/sequence/{name}", kind="sequence", steps=steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _rows("alike/small", 5, 5, (3, 0, 4), (0, 1, 4), tier="smoke"),
        _rows("alike/sam", 64, 64, (0, 31, 63), comment="SAM's image, some queries"),
        _rows("fewer-keys/halves", 8, 4),
        _rows("fewer-keys/quarters", 56, 14, comment="the first stage of MViTv2"),
        _rows("fewer-keys/16-15", 16, 15),
        _rows("fewer-keys/129-43", 129, 43, (0, 64, 128)),
        _rows("fewer-keys/257", 257, 129, (0, 256, 128), comment="257 to 129 cells"),
        _rows("more-keys/halves", 4, 8),
        _rows("more-keys/15-16", 15, 16),
        _rows("more-keys/7-64", 7, 64, None, (0, 63, 17)),
        _rows("more-keys/10-257", 10, 257, None, (0, 256, 128, 129)),
        _rows("more-keys/large", 32767, 32768, (32766, 1, 16384), (0, 32767, 5)),
        _rows("places/no-key", 4, 2, (3, 1), np.zeros(0, dtype=np.int64)),
        _rows("forms/batch-one", 12, 8, ((6, 2, 11),), ((0, 4, 7),)),
        _rows("forms/length-one", 12, 8, (7,), (3,), "one query and one key"),
        _sequence("more-keys", 12, 8, ((3, 11), (0, 7)), ((3, 11), (0, 7, 2, 5)), ((0, 4), (6, 1))),
        _sequence("other-sizes", 6, 9, ((5, 0), (8, 1)), ((2, 4), (0, 7, 3))),
        _rows("refused/no-cells", 0, 4, (0, 1), (0, 1), "a grid without cells", kind="reject"),
        _case("refused/fractions", {"q_size": 4, "k_size": 4}, {"q_positions": (0.5, 1.0), "k_positions": (0, 1)},
              "fractions of cells", kind="reject"),
    )  # fmt: skip


def _other(change: Callable[..., Any]) -> Wrap:
    """Return a wrap with other rows: `change` takes cells as columns and rows, and the sizes."""
    return lambda _: lambda q, k, /, *, q_size, k_size: change(q[..., :, None], k[..., None, :], q_size, k_size)


def _in(dtype: type, q: Any, k: Any, q_size: int, k_size: int) -> Any:
    step, back = max(k_size / q_size, 1.0), max(q_size / k_size, 1.0)
    apart = q.astype(dtype) * dtype(step) - k.astype(dtype) * dtype(back)
    return (apart + dtype((k_size - 1) * back)).astype(np.int64)


_deviation = deviations_of(OP)
_of_quotient = deviations_of("rounded_down")

DEVIATIONS = (
    _deviation("decomposed-float32", "the distance is computed in float32", _other(lambda *a: _in(np.float32, *a)),
               hint=COMPARE_INTEGERS, seen_in="MViTv2, ViTDet and SAM"),
    _deviation("decomposed-key-minus-query", "the distance is key minus query",
               after(lambda a, q, k, /, *, q_size, k_size: 2 * max(q_size, k_size) - 2 - a), hint=SIGN),
    _deviation("decomposed-unstretched", "coordinates are not stretched to the larger grid",
               _other(lambda q, k, q_size, k_size: q - k + k_size - 1), hint="Multiply both coordinates by their ratio first."),
    _deviation("decomposed-one-less", "rows begin one too early", after(lambda a, *args, **options: np.maximum(a - 1, 0)),
               hint=FROM_ZERO),
    _deviation("decomposed-from-queries", "the first row is that of the queries' size",
               _other(lambda q, k, q_size, k_size: np.clip(
                   q * max(k_size, q_size) // q_size - k * max(k_size, q_size) // k_size + q_size - 1,
                   0, 2 * max(q_size, k_size) - 2)),
               hint="Add (k - 1) max(q/k, 1), with k of the keys."),
    _of_quotient("decomposed-up", "distances are rounded up", lambda _: lambda cells, over, under, /: -(-cells * over // under),
                 hint=ROUND_DOWN),
    _of_quotient("decomposed-nearest", "distances are rounded to the nearest",
                 lambda _: lambda cells, over, under, /: (2 * cells * over + under) // (2 * under), hint=ROUND_DOWN),
)  # fmt: skip
