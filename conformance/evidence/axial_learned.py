"""Axial learned tables: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, around, cases_of, deviations_of, reals

USUAL: dict[str, Any] = {"combine": "concat"}
WITH_OPTION = {"combine": {"e": 4}}
SIZES: dict[str, Any] = {"M": 17, "N": 13, "e": 6}
KERNEL: tuple[dict[str, Any], ...] = ({"combine": "concat"}, {"combine": "sum"})
KERNEL_SIZES: dict[str, Any] = {"M": 48, "N": 64, "d": 96, "e": 96}

_axial = cases_of("axial_learned")


def _axial_inputs(name: str, positions: Any, first: tuple[int, ...], second: tuple[int, ...], bits: int = 8) -> dict[str, Any]:
    tables = {argument: reals(f"axial {name} {argument}", *shape, bits=bits) for argument, shape in
              (("first", first), ("second", second))}  # fmt: skip
    return {"positions": np.asarray(positions, dtype=np.int64), **tables}


def _case(
    name: str, positions: Any, first: tuple[int, ...], second: tuple[int, ...], combine: str = "concat",
    comment: str = "", *, bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    return _axial(name, {"combine": combine}, _axial_inputs(name, positions, first, second, bits), comment, **rest)


PLACES = ((2, 0, 1, 2), (1, 4, 3, 3))
ROWS = (((3, 8, 1, 7), (0, 5, 2, 6), (4, 8, 0, 2)), ((1, 0, 4, 2), (5, 3, 2, 1), (0, 4, 3, 5)))
EDGES = ((0, 63, 17, 1, 62), (127, 0, 64, 1, 126))
GRADIENT = ((2, 0, 2), (1, 3, 1))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("concat/small", PLACES, (3, 2), (5, 4), tier="smoke"),
        _case("concat/rows", ROWS, (9, 2), (6, 5), comment="(B, T)"),
        _case("concat/one-column", PLACES, (3, 1), (5, 1)),
        _case("concat/scalar", (3, 5), (4, 6), (6, 7), comment="a position without further axes"),
        _case("concat/reformer", EDGES, (64, 6), (128, 18), comment="a 64 by 128 grid; narrower"),
        _case("concat/detr", ((49, 0, 7, 49), (0, 49, 3, 12)), (50, 10), (50, 10),
              comment="columns first, 50 rows each; narrower"),
        _case("sum/vq-diffusion", ((31, 0, 7, 16), (0, 31, 30, 2)), (32, 18), (32, 18), "sum", "a 32 by 32 grid; narrower"),
        _case("sum/one-row", ((0, 0, 0), (2, 0, 1)), (1, 3), (3, 3), "sum"),
        _case("empty/concat", np.zeros((2, 0)), (3, 2), (5, 4)),
        _case("forms/batch-one-sum", [[row] for row in PLACES], (7, 3), (6, 3), "sum"),
        _case("forms/length-one", ((2,), (4,)), (3, 2), (5, 3)),
        _case("refused/three-coordinates", ((0, 1),) * 3, (3, 2), (5, 4), kind="reject", comment="there are two tables"),
        _case("refused/widths", PLACES, (3, 2), (5, 4), "sum", "rows of two widths do not add up", kind="reject"),
        _case("refused/combine", PLACES, (3, 4), (5, 4), "multiply", "no such word", kind="reject"),
        _case("refused/table", PLACES, (3, 4, 2), (5, 4), comment="a table has two axes", kind="reject"),
        _axial("refused/fraction", {"combine": "sum"},
               {**_axial_inputs("fraction", PLACES, (3, 4), (5, 4)), "positions": np.asarray(PLACES) + 0.5},
               "positions are rows of tables", kind="reject"),
        _case("gradient/concat", GRADIENT, (3, 2), (4, 3), kind="vjp", cotangents={"out": reals("axial concat", 3, 5) / 2}),
        _case("gradient/sum", GRADIENT, (3, 2), (4, 2), "sum", bits=24, kind="vjp",
              cotangents={"out": reals("axial sum", 3, 2, bits=24) / 2}),
    )  # fmt: skip


BOTH_ROWS = "Add the rows of both tables, and divide by nothing."


@around
def _axes_exchanged(function: Function, positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
    """The second coordinate is looked up in the first table."""
    p, q = positions
    return function(np.stack([q % len(first), p % len(second)]), first, second, combine=combine)


def _other_end_first(out: Real, positions: Any, first: Any, second: Any, /, *, combine: str) -> Real:
    width = first.shape[1]
    return np.concatenate([out[..., width:], out[..., :width]], axis=-1) if combine == "concat" else out


@around
def _added(function: Function, positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
    rows = function(positions, first, second, combine=combine)
    if combine == "sum" or first.shape[1] != second.shape[1]:
        return rows
    total = function(positions, first, second, combine="sum")
    return np.concatenate([total, total], axis=-1)


@around
def _counted(function: Function, positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
    """The grid is walked from its corner, whatever the positions."""
    shape = positions.shape[1:]
    count = np.broadcast_to(np.arange(shape[-1]) if shape else 0, shape)
    return function(np.stack([count // len(second) % len(first), count % len(second)]), first, second, combine=combine)


_deviation = deviations_of("axial_learned")

DEVIATIONS = (
    _deviation("axial-learned-exchanged", "the two coordinates are exchanged", _axes_exchanged,
               hint="The first table belongs to positions[0].", seen_in="transformers' documentation of Reformer"),
    _deviation("axial-learned-second-first", "the second table's columns come first", after(_other_end_first),
               hint="DETR's column embedding comes first: give columns first."),
    _deviation("axial-learned-added", "rows are added where they should be side by side", _added,
               hint="Put the rows side by side: concat, not a sum."),
    _deviation("axial-learned-counted", "positions are counted from the grid's corner", _counted,
               hint="Look up the positions that are given, not their places in the grid.", seen_in="DALLE-pytorch#52"),
    _deviation("axial-learned-mean", "the sum is halved",
               after(lambda out, *args, combine: out / 2 if combine == "sum" else out), hint=BOTH_ROWS),
    _deviation("axial-learned-first-alone", "the second table is left out of the sum",
               lambda f: lambda p, a, b, /, *, combine: f(p, a, b if combine == "concat" else 0 * b, combine=combine),
               hint=BOTH_ROWS),
)  # fmt: skip
