"""Attention bias of LeViT: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, argument, around, cases_of, deviations_of, gradient, held, reals
from .tools.hints import HEIGHT_WIDTH, KEEP_FLOAT32, WEIGHT_CONVERTER

OP = "levit_bias"
USUAL: dict[str, Any] = {"height": 2, "width": 3, "stride": 1}
KERNEL: tuple[dict[str, Any], ...] = ({"height": 14, "width": 14, "stride": 1}, {"height": 14, "width": 9, "stride": 2})

_case = cases_of(OP)


def _bias(name: str, grid: tuple[int, int], stride: int, heads: int, comment: str = "", bits: int = 8, **rest: Any) -> Case:
    table = rest.pop("table", reals(OP + name, heads, grid[0] * grid[1], bits=bits))
    return _case(name, {"height": grid[0], "width": grid[1], "stride": stride}, {"table": table}, comment, **rest)


def _gradient(name: str, grid: tuple[int, int], stride: int, heads: int, bits: int = 8) -> Case:
    height, width = grid
    table = reals(OP + "gradient" + name, heads, height * width, bits=bits)
    out: dict[str, tuple[int, ...]] = {"out": (heads, -(-height // stride) * -(-width // stride), height * width)}
    return gradient(OP, name, {"table": table}, out, bits=bits, height=height, width=width, stride=stride)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _bias("whole/small", (2, 3), 1, 2, tier="smoke"),
        _bias("whole/24-bits", (3, 2), 1, 5, bits=24),
        _bias("whole/one-cell", (1, 1), 1, 3),
        _bias("whole/cells-65", (5, 13), 1, 1, "65 cells"),
        _bias("whole/heads", (2, 2), 1, 33, "33 heads"),
        _bias("fewer/levit", (14, 14), 2, 1, "LeViT halves the grid of 14 by 14"),
        _bias("fewer/levit-7", (7, 7), 2, 1, "and that of 7 by 7, to 4 by 4"),
        _bias("fewer/three", (3, 8), 3, 4),
        _bias("fewer/24-bits", (4, 3), 2, 2, bits=24),
        _bias("forms/strided", (2, 3), 1, 4, form="non-contiguous"),
        _bias("forms/strided-fewer", (3, 5), 2, 3, form="non-contiguous"),
        _bias("refused/columns", (2, 3), 1, 2, "a table of another grid", kind="reject", table=reals("levit columns", 2, 5)),
        _bias("refused/stride", (2, 3), 0, 2, "no stride", kind="reject"),
        _gradient("whole", (2, 3), 1, 2),
        _gradient("fewer", (3, 4), 2, 3, 24),
    )


@around
def _transposed_numbers(function: Function, table: Any, /, *, height: int, width: int, **rest: Any) -> Any:
    """Number the offsets column by column."""
    other = table.reshape(-1, width, height).swapaxes(1, 2).reshape(table.shape)
    return function(other, height=height, width=width, **rest)


@around
def _height_stride(_: Function, table: Any, /, *, height: int, width: int, stride: int) -> Any:
    """Number the offsets with the height in the place of the width."""
    y, x = (np.abs(np.arange(0, n, stride)[:, None] - np.arange(n)) for n in (height, width))
    index = (y[:, None, :, None] * height + x[None, :, None, :]) % (height * width)
    return table[:, index.reshape(y.shape[0] * x.shape[0], -1)]


_deviation = deviations_of(OP)
_of_offsets = deviations_of("absolute_offsets")
ROW = "The number of an offset is its rows times the width, plus its columns."
ABSOLUTE = "Offsets are absolute: left and right, above and below are alike."
EVERY = "Query i along an axis is at cell stride * i, and keys are all cells."

DEVIATIONS = (
    _deviation("levit-bias-height-stride", "a row of offsets has as many numbers as the grid has rows", _height_stride,
               hint=ROW),
    _deviation("levit-bias-columns-first", "offsets are numbered column by column", _transposed_numbers, hint=HEIGHT_WIDTH),
    _deviation("levit-bias-reshaped", "the table is reshaped from (numbers, heads) where it should be transposed",
               argument(0, lambda t: t.T.reshape(t.shape)), hint=WEIGHT_CONVERTER),
    _deviation("levit-bias-first-head", "every head has the numbers of the first",
               argument(0, lambda t: np.broadcast_to(t[:1], t.shape)), hint="Each head has numbers of its own."),
    _deviation("levit-bias-bfloat16", "the table is held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
    _of_offsets("levit-bias-unstrided", "queries are at cells 0, 1, 2, ... in place of multiples of the stride",
                lambda f: lambda table, size, stride, /: np.abs(
                    np.arange(-(-size // stride))[:, None] - np.arange(size)), hint=EVERY),
    _of_offsets("levit-bias-signed", "keys after the query have offset 0",
                lambda f: lambda table, size, stride, /: np.maximum(
                    np.arange(0, size, stride)[:, None] - np.arange(size), 0), hint=ABSOLUTE),
    _of_offsets("levit-bias-last", "queries are the last cell of each stride",
                lambda f: lambda table, size, stride, /: np.abs(
                    np.minimum(np.arange(0, size, stride) + stride - 1, size - 1)[:, None] - np.arange(size)), hint=EVERY),
)  # fmt: skip
