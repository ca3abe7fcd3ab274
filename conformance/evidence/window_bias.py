"""Relative position bias of windows: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, always, argument, around, around_with, cases_of, deviations_of, gradient, held, option, reals
from .tools.hints import BRANCH, HEIGHT_WIDTH, KEEP_FLOAT32, SIGN, WEIGHT_CONVERTER

OP = "window_bias"

FORWARD: dict[str, Any] = {"order": "query_minus_key", "class_token": False}
BACKWARD: dict[str, Any] = {"order": "key_minus_query", "class_token": False}
CLASS: dict[str, Any] = {"order": "query_minus_key", "class_token": True}
USUAL: dict[str, Any] = {"depth": 1, "height": 2, "width": 3, **FORWARD}
KERNEL: tuple[dict[str, Any], ...] = ({"depth": 1, "height": 12, "width": 7, **FORWARD},)

_case = cases_of(OP)


def _table(name: str, window: tuple[int, ...], heads: int, class_token: bool, bits: int = 8) -> Any:
    """Return the table of a window: rows and columns, or frames, rows and columns."""
    count = int(np.prod([2 * n - 1 for n in window])) + 3 * class_token
    return reals(OP + name, count, heads, bits=bits)


def _sizes(window: tuple[int, ...]) -> dict[str, Any]:
    *frames, height, width = window
    return {"depth": frames[0] if frames else 1, "height": height, "width": width}


def _bias(
    name: str, window: tuple[int, ...], heads: int, params: dict[str, Any], bits: int = 8, comment: str = "", **rest: Any
) -> Case:
    table = _table(name, window, heads, params["class_token"], bits)
    return _case(name, {**_sizes(window), **params}, {"table": table}, comment, **rest)


def _gradient(name: str, window: tuple[int, ...], heads: int, params: dict[str, Any], bits: int = 8) -> Case:
    cells = int(np.prod(window)) + params["class_token"]
    table = _table("gradient" + name, window, heads, params["class_token"], bits)
    out: dict[str, tuple[int, ...]] = {"out": (heads, cells, cells)}
    return gradient(OP, name, {"table": table}, out, bits=bits, **_sizes(window), **params)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _bias("plane/small", (2, 3), 2, FORWARD, tier="smoke"),
        _bias("plane/tall", (4, 2), 3, FORWARD),
        _bias("plane/24-bits", (3, 2), 5, FORWARD, 24),
        _bias("plane/cells-65", (5, 13), 1, FORWARD, comment="65 cells"),
        _bias("reversed/small", (3, 2), 4, BACKWARD),
        _bias("reversed/maxvit", (8, 7), 1, BACKWARD),
        _bias("reversed/24-bits", (2, 4), 3, BACKWARD, 24),
        _bias("class/cells-67", (6, 11), 1, CLASS, comment="66 patches and the class token"),
        _bias("class/reversed", (2, 4), 2, {**BACKWARD, "class_token": True}),
        _bias("class/one-cell", (1, 1), 2, CLASS),
        _bias("frames/video-swin", (8, 2, 3), 1, FORWARD, comment="8 frames; fewer cells"),
        _bias("frames/long", (5, 1, 2), 2, FORWARD),
        _bias("forms/strided", (2, 3), 4, FORWARD, form="non-contiguous"),
        _bias("forms/strided-class", (3, 1), 3, CLASS, form="non-contiguous"),
        _bias("refused/rows", (2, 3), 2, {**FORWARD, "height": 3}, comment="a table of another window", kind="reject"),
        _bias("refused/class", (2, 3), 2, FORWARD | {"depth": 2}, comment="too few rows for two frames", kind="reject"),
        _bias("refused/order", (2, 3), 2, {**FORWARD, "order": "signed"}, comment="no such order", kind="reject"),
        _gradient("plane", (2, 3), 2, FORWARD),
        _gradient("class", (2, 1), 3, CLASS, 24),
    )


@around
def _columns_first(function: Function, table: Any, window: list[int], /) -> Any:
    depth, height, width = window
    n = depth * height * width
    order = np.arange(n).reshape(depth, width, height).swapaxes(-1, -2).ravel()
    return function(table, window)[np.ix_(order, order)]


@around_with
def _index(stride: Any, _: Function, table: Any, window: list[int], /) -> Any:
    """Frames and rows have other strides."""
    cells = np.indices(window).reshape(3, -1)
    apart = cells[:, :, None] - cells[:, None, :] + np.asarray(window)[:, None, None] - 1
    return np.tensordot(np.asarray(stride(*window)), apart, 1) % len(table)


@around
def _height_everywhere(_: Function, table: Any, window: list[int], /) -> Any:
    depth, height, _width = window
    frames, rows, columns = (axis[:, None] - axis for axis in np.indices(window).reshape(3, -1))
    side = 2 * height - 1
    return ((frames + depth - 1) * side * side + (rows + height - 1) * side + columns + height - 1) % len(table)


def _class_rows(*order: int) -> Any:
    """Return a wrap in which the class token's three rows have another order."""
    return lambda f: (
        lambda index, offsets, /: np.where(
            f(index, offsets) >= offsets, offsets + np.asarray(order)[(f(index, offsets) - offsets) % 3], f(index, offsets)
        )
    )


_deviation = deviations_of(OP)
_of_rows = deviations_of("window_rows")
_of_class = deviations_of("with_class_token")
_of_entries = deviations_of("window_entries")
STRIDE = "A row of the window is 2 * width - 1 rows of the table, a frame (2 * height - 1) times as many."
CLASS_ROWS = "The last three rows are for the class token as query, as key, and as both."

DEVIATIONS = (
    _deviation("window-bias-other-order", "offsets have the wrong sign",
               option(order=lambda o: "key_minus_query" if o == "query_minus_key" else "query_minus_key"), hint=SIGN,
               seen_in="MaxViT's convention"),
    _deviation("window-bias-query-minus-key", "offsets are always query minus key", option(order=always("query_minus_key")),
               hint=BRANCH),
    _of_rows("window-bias-height-stride", "the stride of rows is 2 * height - 1",
             _index(lambda d, h, w: ((2 * h - 1) * (2 * h - 1), 2 * h - 1, 1)), hint=STRIDE),
    _of_rows("window-bias-height-everywhere", "the height stands in place of the width, in the stride of rows and in the shift",
             _height_everywhere, hint=STRIDE),
    _of_rows("window-bias-short-stride", "the stride of rows is the width", _index(lambda d, h, w: (h * w, w, 1)), hint=STRIDE),
    _of_rows("window-bias-frame-stride", "the stride of frames is that of two rows of the table",
             _index(lambda d, h, w: ((2 * d - 1) * (2 * w - 1), 2 * w - 1, 1)), hint=STRIDE, seen_in="nnFormer"),
    _of_rows("window-bias-columns-first", "cells are counted column by column", _columns_first, hint=HEIGHT_WIDTH),
    _of_rows("window-bias-column-stride", "rows have stride 1, columns 2 * height - 1",
             _index(lambda d, h, w: ((2 * h - 1) * (2 * w - 1), 1, 2 * h - 1)), hint=HEIGHT_WIDTH),
    _of_class("window-bias-class-exchanged", "the class token's rows as query and as key are exchanged", _class_rows(1, 0, 2),
              hint=CLASS_ROWS),
    _of_class("window-bias-class-both", "the class token with itself has the row of it as query", _class_rows(0, 1, 0),
              hint=CLASS_ROWS),
    _of_class("window-bias-class-at-0", "the class token reads rows 0, 1 and 2 of the table, which are those of offsets",
              lambda f: lambda index, offsets, /: f(index, 0), hint=CLASS_ROWS),
    _deviation("window-bias-class-first", "the class token's rows come first in the table",
               lambda f: lambda table, /, **o: f(np.roll(table, 3, axis=0) if o["class_token"] else table, **o),
               hint=CLASS_ROWS),
    _of_entries("window-bias-row-plus-1", "each row is the one after the right one",
                argument(1, lambda index: np.roll(np.arange(index.max(initial=0) + 1), -1)[index]),
                hint="Offset 0 is in the middle of the rows."),
    _deviation("window-bias-reshaped", "the table is reshaped to (heads, rows) where it should be transposed",
               argument(0, lambda t: t.reshape(t.shape[::-1]).T), hint=WEIGHT_CONVERTER),
    _deviation("window-bias-bfloat16", "the table is held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
)  # fmt: skip
