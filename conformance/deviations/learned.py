"""Deviations of learned tables that are read in other ways than row by row."""

from typing import Any

import numpy as np

from .compose import Function, Real, after, deviations_of


def _axes_exchanged(function: Function) -> Function:
    """The second coordinate is looked up in the first table."""

    def deviating(positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
        p, q = positions
        return function(np.stack([q % len(first), p % len(second)]), first, second, combine=combine)

    return deviating


def _other_end_first(out: Real, positions: Any, first: Any, second: Any, /, *, combine: str) -> Real:
    width = first.shape[1]
    return np.concatenate([out[..., width:], out[..., :width]], axis=-1) if combine == "concat" else out


def _added(function: Function) -> Function:
    def deviating(positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
        found = function(positions, first, second, combine=combine)
        if combine == "sum" or first.shape[1] != second.shape[1]:
            return found
        total = function(positions, first, second, combine="sum")
        return np.concatenate([total, total], axis=-1)

    return deviating


def _counted(function: Function) -> Function:
    """The grid is walked from its corner, whatever the positions."""

    def deviating(positions: Any, first: Any, second: Any, /, *, combine: str) -> Any:
        shape = positions.shape[1:]
        count = np.broadcast_to(np.arange(shape[-1]) if shape else 0, shape)
        return function(np.stack([count // len(second) % len(first), count % len(second)]), first, second, combine=combine)

    return deviating


_axial = deviations_of("axial_learned")
AXIAL = (
    _axial("axial-learned-exchanged", "the two coordinates are exchanged", _axes_exchanged,
           "The first table belongs to positions[0].", "transformers' documentation of Reformer"),
    _axial("axial-learned-second-first", "the second table's columns come first", after(_other_end_first),
           "DETR's column embedding comes first: give columns first."),
    _axial("axial-learned-added", "rows are added where they should be side by side", _added,
           hint="Put the rows side by side: concat, not a sum."),
    _axial("axial-learned-counted", "positions are counted from the grid's corner", _counted,
           "Look up the positions that are given, not their places in the grid.", "DALLE-pytorch#52"),
    _axial("axial-learned-mean", "the sum is halved", after(lambda out, *args, combine: out / 2 if combine == "sum" else out)),
    _axial("axial-learned-first-alone", "the second table is left out of the sum", lambda f: lambda p, a, b, /, *, combine: f(
        p, a, b if combine == "concat" else 0 * b, combine=combine)),
)  # fmt: skip


def _read(change: Any) -> Any:
    """Return a wrap that looks up edges and sizes of its own: `change` takes boxes' columns and returns six columns."""

    def wrap(function: Function) -> Function:
        def deviating(boxes: Any, x: Any, y: Any, h: Any, w: Any, /, *, combine: str, clip_sizes: bool) -> Any:
            tables, clips = (x, y, x, y, h, w), (False,) * 4 + (clip_sizes,) * 2
            columns = change(*np.moveaxis(boxes, -1, 0))
            rows = [
                np.clip(c, 0, len(t) - 1) if clip else c % len(t) for c, t, clip in zip(columns, tables, clips, strict=True)
            ]
            parts = [t[n] for t, n in zip(tables, rows, strict=True)]
            return np.concatenate(parts, axis=-1) if combine == "concat" else sum(parts)

        return deviating

    return wrap


def _moved(order: tuple[int, ...]) -> Any:
    """Return a wrap that puts the six parts in another order, where they are end to end."""

    def change(out: Real, boxes: Any, x: Any, y: Any, h: Any, w: Any, /, *, combine: str, **rest: Any) -> Real:
        if combine == "sum":
            return out
        ends = np.cumsum([x.shape[1]] * 4 + [h.shape[1]] * 2)[:-1]
        parts = np.split(out, ends, axis=-1)
        return np.concatenate([parts[k] for k in order], axis=-1)

    return after(change)


def _sizes(change: Any) -> Any:
    """Return a wrap that reads rows of `change`, of sizes and their number, where sizes are to be clipped."""

    def wrap(function: Function) -> Function:
        def deviating(boxes: Any, x: Any, y: Any, h: Any, w: Any, /, *, combine: str, clip_sizes: bool) -> Any:
            if not clip_sizes:
                return function(boxes, x, y, h, w, combine=combine, clip_sizes=False)
            x0, y0, x1, y1 = np.moveaxis(boxes, -1, 0)
            parts = [x[x0], y[y0], x[x1], y[y1], h[change(y1 - y0, len(h))], w[change(x1 - x0, len(w))]]
            return np.concatenate(parts, axis=-1) if combine == "concat" else sum(parts)

        return deviating

    return wrap


_layout = deviations_of("layout_2d")
LAYOUT = (
    _layout("layout-corner-and-size", "boxes are read as corner and size",
            _read(lambda x, y, w, h: (x, y, x + w, y + h, h, w)), "COCO's boxes are (x, y, width, height)."),
    _layout("layout-x-y-exchanged", "boxes are read as (y0, x0, y1, x1)",
            _read(lambda y0, x0, y1, x1: (x0, y0, x1, y1, y1 - y0, x1 - x0))),
    _layout("layout-sizes-exchanged", "height is looked up in the width's table, and width in the height's",
            _read(lambda x0, y0, x1, y1: (x0, y0, x1, y1, x1 - x0, y1 - y0)),
            hint="Height has one table and width another: compare y1 - y0 and x1 - x0 with their tables."),
    _layout("layout-width-first", "the width's columns come before the height's", _moved((0, 1, 2, 3, 5, 4)),
            "The paper of LayoutLMv2 names the width first, its code the height."),
    _layout("layout-by-axis", "the columns of x come first, then the columns of y", _moved((0, 2, 1, 3, 4, 5)),
            hint="The order is x0, y0, x1, y1, height, width."),
    _layout("layout-without-sizes", "height and width are left out of the sum", lambda f: lambda b, x, y, h, w, /, *, combine,
            **o: f(b, x, y, *((h, w) if combine == "concat" else (0 * h, 0 * w)), combine=combine, **o),
            hint="Six rows are added, height's and width's too."),
    _layout("layout-sizes-wrapped", "sizes outside their table wrap around to its other end",
            _sizes(lambda size, rows: size % rows), "", "PaddleOCR#5914"),
    _layout("layout-sizes-absolute", "negative sizes lose their sign",
            _sizes(lambda size, rows: np.minimum(np.abs(size), rows - 1)),
            hint="Clip negative sizes to row 0, without an abs()."),
    _layout("layout-first-box", "the first box is used for all", lambda f: lambda boxes, *t, **o: f(
        np.broadcast_to(boxes[..., :1, :], boxes.shape) if boxes.ndim > 1 else boxes, *t, **o)),
)  # fmt: skip


def _mixed(change: Any) -> Any:
    """Return a wrap with another formula: `change` takes the rows of quotients, of remainders, row 0, and alpha."""

    def wrap(function: Function) -> Function:
        def deviating(positions: Any, table: Any, /, *, alpha: float = 0.4) -> Any:
            i, j = np.divmod(positions, len(table))
            return change(table[i], table[j], table[0], alpha)

        return deviating

    return wrap


_hierarchical = deviations_of("hierarchical_learned")
HIERARCHICAL = (
    _hierarchical("hierarchical-exchanged", "quotient and remainder of a position are exchanged",
                  _mixed(lambda x, y, o, a: a * (y - a * o) / (1 - a) + (x - a * o)), "Position m < n is row m of the table."),
    _hierarchical("hierarchical-raw-rows", "rows are mixed without first subtracting row 0's share, so trained rows change",
                  _mixed(lambda x, y, o, a: a * x + (1 - a) * y), "Subtract the share of row 0 first."),
    _hierarchical("hierarchical-undivided", "the rows, less their share of row 0, are not divided by 1 - alpha",
                  _mixed(lambda x, y, o, a: a * (x - a * o) + (1 - a) * (y - a * o)), hint="Divide by 1 - alpha."),
    _hierarchical("hierarchical-repeated", "positions beyond the table begin at its first row again",
                  _mixed(lambda x, y, o, a: y), hint="Row m // n counts as well as row m mod n."),
    _hierarchical("hierarchical-alpha-fixed", "alpha is always 0.4", lambda f: lambda p, t, /, **o: f(p, t)),
)  # fmt: skip

DEVIATIONS = (*AXIAL, *LAYOUT, *HIERARCHICAL)
