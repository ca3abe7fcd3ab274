"""2-D layout embeddings: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, around_with, cases_of, deviations_of, reals
from .tools.hints import AXIS_ORDER, EACH_ROW, NEGATIVE_INDICES

USUAL: dict[str, Any] = {"combine": "concat", "clip_sizes": False}
WITH_OPTION = {"combine": {"e": 4}}
SIZES: dict[str, Any] = {"L": 17, "M": 13, "U": 14, "V": 19, "e": 3}
KERNEL: tuple[dict[str, Any], ...] = ({"combine": "concat", "clip_sizes": False},)
KERNEL_SIZES: dict[str, Any] = {"L": 1000, "M": 1000, "U": 1000, "V": 1000, "d": 96, "e": 80}

TABLES = ("x_table", "y_table", "h_table", "w_table")
_layout = cases_of("layout_2d")


def _case(
    name: str, boxes: Any, rows: tuple[int, int, int, int], widths: tuple[int, int], combine: str = "concat",
    comment: str = "", *, clip: bool = False, bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case with tables of these rows; widths are those of edges and of sizes."""
    sizes = zip(TABLES, rows, (widths[0], widths[0], widths[1], widths[1]), strict=True)
    tables = {table: reals(f"layout {name} {table}", n, width, bits=bits) for table, n, width in sizes}
    return _layout(name, {"combine": combine, "clip_sizes": clip}, {"boxes": np.asarray(boxes), **tables}, comment, **rest)


BOXES = ((1, 2, 5, 7), (0, 3, 2, 4), (4, 0, 6, 6), (2, 2, 2, 3))
PAGES = (((3, 8, 9, 10), (0, 5, 2, 6)), ((4, 8, 8, 9), (1, 1, 7, 3)), ((2, 0, 6, 11), (5, 4, 10, 4)))
ODD_BOXES = ((5, 2, 1, 7), (0, 7, 6, 1), (4, 3, 3, 2), (1, 0, 7, 9))  # x1 before x0, y1 before y0, and the largest sizes
PAGE = ((0, 0, 1000, 1000), (336, 18, 731, 44), (998, 7, 1000, 999), (0, 0, 0, 0), (256, 149, 310, 165))
SMALL = (8, 9, 10, 7)
READ = (9, 12, 13, 11)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("concat/small", BOXES, SMALL, (2, 3), tier="smoke"),
        _case("concat/scalar", (3, 1, 6, 5), SMALL, (4, 2), comment="one box"),
        _case("concat/layoutlmv3", (*PAGE, (900, 500, 100, 20)), (1024,) * 4, (1, 2), clip=True,
              comment="1024 rows; narrower; the last box is backwards"),
        _case("sum/small", BOXES, SMALL, (5, 5), "sum"),
        _case("clip/small", ODD_BOXES, (8, 10, 6, 5), (2, 3), clip=True, comment="sizes from -6 to 9"),
        _case("clip/sum", ODD_BOXES, (8, 10, 4, 3), (7, 7), "sum", clip=True),
        _case("empty/sum", np.zeros((3, 0, 4), dtype=np.int64), SMALL, (2, 2), "sum", clip=True),
        _case("forms/strided", PAGES, (11, *READ[1:]), (2, 1), form="non-contiguous"),
        _case("forms/strided-sum", PAGES, (11, *READ[1:]), (2, 2), "sum", form="non-contiguous"),
        _case("forms/batch-one", (BOXES,), SMALL, (3, 1)),
        _case("forms/length-one", ((BOXES[0],),), SMALL, (1, 3)),
        _case("refused/two-corners", ((0, 1), (2, 3)), SMALL, (2, 3), kind="reject", comment="a box has four edges"),
        _case("refused/fraction", np.asarray(BOXES) / 8, SMALL, (2, 3), kind="reject", comment="edges are rows"),
        _case("refused/widths", BOXES, SMALL, (2, 3), "sum", "rows of two widths do not add up", kind="reject"),
        _case("refused/combine", BOXES, SMALL, (2, 2), "add", "no such word", kind="reject"),
        _case("gradient/concat", BOXES[:2], SMALL, (1, 2), kind="vjp", cotangents={"out": reals("layout concat", 2, 8) / 2}),
        _case("gradient/sum", ODD_BOXES[:3], (7, 8, 3, 4), (2, 2), "sum", clip=True, bits=24,
              kind="vjp", cotangents={"out": reals("layout sum", 3, 2, bits=24) / 2}),
    )  # fmt: skip


@around_with
def _read(
    change: Any, function: Function, boxes: Any, x: Any, y: Any, h: Any, w: Any, /, *, combine: str, clip_sizes: bool
) -> Any:
    """Other edges and sizes are looked up: `change` takes boxes' columns and returns six columns."""
    tables, clips = (x, y, x, y, h, w), (False,) * 4 + (clip_sizes,) * 2
    columns = change(*np.moveaxis(boxes, -1, 0))
    rows = [np.clip(c, 0, len(t) - 1) if clip else c % len(t) for c, t, clip in zip(columns, tables, clips, strict=True)]
    parts = [t[n] for t, n in zip(tables, rows, strict=True)]
    return np.concatenate(parts, axis=-1) if combine == "concat" else sum(parts)


def _moved(order: tuple[int, ...]) -> Any:
    """Return a wrap that puts the six parts in another order, where they are end to end."""

    def change(out: Real, boxes: Any, x: Any, y: Any, h: Any, w: Any, /, *, combine: str, **rest: Any) -> Real:
        if combine == "sum":
            return out
        ends = np.cumsum([x.shape[1]] * 4 + [h.shape[1]] * 2)[:-1]
        parts = np.split(out, ends, axis=-1)
        return np.concatenate([parts[k] for k in order], axis=-1)

    return after(change)


@around_with
def _sizes(
    change: Any, function: Function, boxes: Any, x: Any, y: Any, h: Any, w: Any, /, *, combine: str, clip_sizes: bool
) -> Any:
    """Rows are those of `change`, of sizes and their number, where sizes are to be clipped."""
    if not clip_sizes:
        return function(boxes, x, y, h, w, combine=combine, clip_sizes=False)
    x0, y0, x1, y1 = np.moveaxis(boxes, -1, 0)
    parts = [x[x0], y[y0], x[x1], y[y1], h[change(y1 - y0, len(h))], w[change(x1 - x0, len(w))]]
    return np.concatenate(parts, axis=-1) if combine == "concat" else sum(parts)


_deviation = deviations_of("layout_2d")

DEVIATIONS = (
    _deviation("layout-corner-and-size", "boxes are read as corner and size",
               _read(lambda x, y, w, h: (x, y, x + w, y + h, h, w)), hint="COCO's boxes are (x, y, width, height)."),
    _deviation("layout-x-y-exchanged", "boxes are read as (y0, x0, y1, x1)",
               _read(lambda y0, x0, y1, x1: (x0, y0, x1, y1, y1 - y0, x1 - x0)), hint=AXIS_ORDER),
    _deviation("layout-sizes-exchanged", "height is looked up in the width's table, and width in the height's",
               _read(lambda x0, y0, x1, y1: (x0, y0, x1, y1, x1 - x0, y1 - y0)),
               hint="Height has one table and width another: compare y1 - y0 and x1 - x0 with their tables."),
    _deviation("layout-width-first", "the width's columns come before the height's", _moved((0, 1, 2, 3, 5, 4)),
               hint="The paper of LayoutLMv2 names the width first, its code the height."),
    _deviation("layout-by-axis", "the columns of x come first, then the columns of y", _moved((0, 2, 1, 3, 4, 5)),
               hint="The order is x0, y0, x1, y1, height, width."),
    _deviation("layout-without-sizes", "height and width are left out of the sum",
               lambda f: lambda b, x, y, h, w, /, *, combine, **o: f(b, x, y,
               *((h, w) if combine == "concat" else (0 * h, 0 * w)), combine=combine, **o),
               hint="Six rows are added, height's and width's too."),
    _deviation("layout-sizes-wrapped", "sizes outside their table wrap around to its other end",
               _sizes(lambda size, rows: size % rows), hint=NEGATIVE_INDICES, seen_in="PaddleOCR#5914"),
    _deviation("layout-sizes-absolute", "negative sizes lose their sign",
               _sizes(lambda size, rows: np.minimum(np.abs(size), rows - 1)),
               hint="Clip negative sizes to row 0, without an abs()."),
    _deviation("layout-first-box", "the first box is used for all",
               lambda f: lambda boxes, *t, **o: f(np.broadcast_to(boxes[..., :1, :], boxes.shape) if boxes.ndim > 1 else boxes,
               *t, **o), hint=EACH_ROW),
)  # fmt: skip
