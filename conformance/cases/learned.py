"""Cases of learned tables that are read in other ways than row by row: of two axes, of boxes, two for each position."""

from typing import Any

import numpy as np

from ..model import Case, Flag
from .forms import places, reals
from .making import cases_of

FLAGS = {
    "axial-learned-order": Flag(
        "the axes' tables exchanged, or their rows end to end in the other order", "Atten4Vis/ConditionalDETR #19"
    ),
    "axial-learned-combine": Flag("rows added where they belong side by side, or the reverse", "transformers #3351"),
    "axial-learned-ids": Flag("a count from 0 in place of the caller's positions", "DALLE-pytorch #52"),
    "axial-learned-rows": Flag("row 0's positions used for every row of the batch"),
    "axial-learned-downcast": Flag("tables of 24-bit numbers narrowed on the way, or a sum rounded early"),
    "axial-learned-true-size": Flag("the last rows of a model's tables out of reach", "DALLE-pytorch #52"),
    "axial-learned-empty": Flag("no positions: a crash or a wrong shape"),
    "axial-learned-refuse": Flag("positions or tables that do not fit accepted"),
    "axial-learned-gradient": Flag("a gradient of one table in the other, or not summed over the positions that read a row"),
    "hierarchical-rows": Flag("quotient and remainder of a position exchanged, or one of them left out"),
    "hierarchical-alpha": Flag("alpha always 0.4, or exchanged with 1 - alpha"),
    "hierarchical-kept": Flag("rows of the table that are not kept: the share of row 0 not taken off"),
    "hierarchical-ids": Flag("a count from 0 in place of the caller's positions, or row 0's positions for the whole batch"),
    "hierarchical-downcast": Flag("a table of 24-bit numbers narrowed on the way, or rounded between the steps"),
    "hierarchical-true-size": Flag("positions from a model's last row on cut off or wrapped"),
    "hierarchical-empty": Flag("no positions: a crash or a wrong shape"),
    "hierarchical-refuse": Flag("an alpha that no formula has, or positions and tables that do not fit, accepted"),
    "hierarchical-gradient": Flag("no gradient of row 0 through the other rows, or a row's two shares not summed"),
    "layout-order": Flag("edges, height and width in another order, or read off another table"),
    "layout-box": Flag("boxes given as corner and size, or with x and y exchanged"),
    "layout-combine": Flag("rows added where they belong end to end, or sizes left out of the sum"),
    "layout-clip": Flag("sizes outside their table wrapped or read past its end", "PaddleOCR #5914, unilm #821"),
    "layout-ids": Flag("one box for all words, or row 0's boxes for every row of the batch"),
    "layout-downcast": Flag("tables of 24-bit numbers narrowed on the way, or a sum rounded early"),
    "layout-true-size": Flag("the last rows of a model's tables out of reach", "transformers #7452"),
    "layout-empty": Flag("no boxes: a crash or a wrong shape"),
    "layout-refuse": Flag("boxes or tables that do not fit accepted"),
    "layout-gradient": Flag("a gradient not summed over the edges that read one table, or of a row that none reads"),
}

_axial = cases_of("axial_learned", "axial-learned-")
_axial_form = cases_of("axial_learned")


def _axial_inputs(name: str, positions: Any, first: tuple[int, ...], second: tuple[int, ...], bits: int = 8) -> dict[str, Any]:
    tables = {argument: reals(f"axial {name} {argument}", *shape, bits=bits) for argument, shape in
              (("first", first), ("second", second))}  # fmt: skip
    return {"positions": np.asarray(positions, dtype=np.int64), **tables}


def _axial_of(
    name: str, flags: str, positions: Any, first: tuple[int, ...], second: tuple[int, ...], combine: str = "concat",
    comment: str = "", *, bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    make = _axial_form if name.startswith("forms/") else _axial
    return make(name, flags, {"combine": combine}, _axial_inputs(name, positions, first, second, bits), comment, **rest)


PLACES = ((2, 0, 1, 2), (1, 4, 3, 3))
SCATTERED = ((5, 0, 6, 2, 2, 1), (1, 4, 0, 4, 3, 2))
ROWS = (((3, 8, 1, 7), (0, 5, 2, 6), (4, 8, 0, 2)), ((1, 0, 4, 2), (5, 3, 2, 1), (0, 4, 3, 5)))
EDGES = ((0, 63, 17, 1, 62), (127, 0, 64, 1, 126))
GRADIENT = ((2, 0, 2), (1, 3, 1))

AXIAL = (
    _axial_of("concat/small", "order combine ids", PLACES, (3, 2), (5, 4), tier="smoke"),
    _axial_of("concat/equal-widths", "order combine", PLACES, (5, 3), (7, 3), comment="widths do not say which is first"),
    _axial_of("concat/24-bits", "downcast order", SCATTERED, (7, 4), (6, 3), bits=24),
    _axial_of("concat/rows", "rows ids order", ROWS, (9, 2), (6, 5), comment="(B, T)"),
    _axial_of("concat/one-column", "order", PLACES, (3, 1), (5, 1)),
    _axial_of("concat/scalar", "ids order", (3, 5), (4, 6), (6, 7), comment="a position without further axes"),
    _axial_of("concat/reformer", "true-size order", EDGES, (64, 6), (128, 18), comment="a 64 by 128 grid; narrower"),
    _axial_of("concat/detr", "true-size order ids", ((49, 0, 7, 49), (0, 49, 3, 12)), (50, 10), (50, 10),
              comment="columns first, 50 rows each; narrower"),
    _axial_of("sum/small", "combine order", PLACES, (3, 6), (5, 6), "sum"),
    _axial_of("sum/24-bits", "downcast order", SCATTERED, (7, 5), (6, 5), "sum", bits=24),
    _axial_of("sum/rows", "rows ids combine", ROWS, (9, 4), (6, 4), "sum", "(B, T)"),
    _axial_of("sum/vq-diffusion", "true-size order combine", ((31, 0, 7, 16), (0, 31, 30, 2)), (32, 18), (32, 18), "sum",
              "a 32 by 32 grid; narrower"),
    _axial_of("sum/one-row", "ids combine", ((0, 0, 0), (2, 0, 1)), (1, 3), (3, 3), "sum"),
    _axial_of("empty/concat", "empty", np.zeros((2, 0)), (3, 2), (5, 4)),
    _axial_of("empty/sum", "empty", np.zeros((2, 3, 0)), (3, 4), (5, 4), "sum"),
    _axial_of("forms/strided", "non-contiguous", ROWS, (9, 4), (6, 3)),
    _axial_of("forms/strided-sum", "non-contiguous", ROWS, (9, 5), (6, 5), "sum"),
    _axial_of("forms/expanded", "broadcast-view", [[row, row] for row in SCATTERED], (7, 2), (6, 4)),
    _axial_of("forms/batch-one", "batch-one", [[row] for row in SCATTERED], (7, 3), (6, 4)),
    _axial_of("forms/batch-one-sum", "batch-one", [[row] for row in PLACES], (7, 3), (6, 3), "sum"),
    _axial_of("forms/length-one", "length-one batch-one", ((2,), (4,)), (3, 2), (5, 3)),
    _axial_of("refused/three-coordinates", "refuse", ((0, 1),) * 3, (3, 2), (5, 4), kind="reject",
              comment="there are two tables"),
    _axial_of("refused/widths", "refuse", PLACES, (3, 2), (5, 4), "sum", "rows of two widths do not add up", kind="reject"),
    _axial_of("refused/combine", "refuse", PLACES, (3, 4), (5, 4), "multiply", "no such word", kind="reject"),
    _axial_of("refused/table", "refuse", PLACES, (3, 4, 2), (5, 4), comment="a table has two axes", kind="reject"),
    _axial("refused/fraction", "refuse", {"combine": "sum"}, {**_axial_inputs("fraction", PLACES, (3, 4), (5, 4)),
           "positions": np.asarray(PLACES) + 0.5}, "positions are rows of tables", kind="reject"),
    _axial_of("gradient/concat", "gradient", GRADIENT, (3, 2), (4, 3), kind="vjp",
              cotangents={"out": reals("axial concat", 3, 5) / 2}),
    _axial_of("gradient/sum", "gradient downcast", GRADIENT, (3, 2), (4, 2), "sum", bits=24, kind="vjp",
              cotangents={"out": reals("axial sum", 3, 2, bits=24) / 2}),
)  # fmt: skip

TABLES = ("x_table", "y_table", "h_table", "w_table")
_layout = cases_of("layout_2d", "layout-")
_layout_form = cases_of("layout_2d")


def _layout_of(
    name: str, flags: str, boxes: Any, rows: tuple[int, int, int, int], widths: tuple[int, int], combine: str = "concat",
    comment: str = "", *, clip: bool = False, bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case with tables of these rows; widths are those of edges and of sizes."""
    sizes = zip(TABLES, rows, (widths[0], widths[0], widths[1], widths[1]), strict=True)
    tables = {table: reals(f"layout {name} {table}", n, width, bits=bits) for table, n, width in sizes}
    make = _layout_form if name.startswith("forms/") else _layout
    return make(name, flags, {"combine": combine, "clip_sizes": clip}, {"boxes": np.asarray(boxes), **tables}, comment, **rest)


BOXES = ((1, 2, 5, 7), (0, 3, 2, 4), (4, 0, 6, 6), (2, 2, 2, 3))
PAGES = (((3, 8, 9, 10), (0, 5, 2, 6)), ((4, 8, 8, 9), (1, 1, 7, 3)), ((2, 0, 6, 11), (5, 4, 10, 4)))
ODD_BOXES = ((5, 2, 1, 7), (0, 7, 6, 1), (4, 3, 3, 2), (1, 0, 7, 9))  # x1 before x0, y1 before y0, and the largest sizes
PAGE = ((0, 0, 1000, 1000), (336, 18, 731, 44), (998, 7, 1000, 999), (0, 0, 0, 0), (256, 149, 310, 165))
SMALL = (8, 9, 10, 7)
READ = (9, 12, 13, 11)

LAYOUT = (
    _layout_of("concat/small", "order box combine", BOXES, SMALL, (2, 3), tier="smoke"),
    _layout_of("concat/one-width", "order box", BOXES, SMALL, (2, 2), comment="widths do not say which table is which"),
    _layout_of("concat/24-bits", "downcast order", BOXES, SMALL, (3, 1), bits=24),
    _layout_of("concat/pages", "ids order", PAGES, (11, *READ[1:]), (1, 4), comment="(B, T, 4)"),
    _layout_of("concat/scalar", "ids box", (3, 1, 6, 5), SMALL, (4, 2), comment="one box"),
    _layout_of("concat/layoutlmv2", "true-size order box", PAGE, (1024,) * 4, (2, 3), comment="1024 rows; narrower"),
    _layout_of("concat/layoutlmv3", "true-size order clip", (*PAGE, (900, 500, 100, 20)), (1024,) * 4, (1, 2), clip=True,
               comment="1024 rows; narrower; the last box is backwards"),
    _layout_of("sum/small", "combine box order", BOXES, SMALL, (5, 5), "sum"),
    _layout_of("sum/24-bits", "downcast combine", BOXES, SMALL, (6, 6), "sum", bits=24),
    _layout_of("sum/pages", "ids combine", PAGES, (11, *READ[1:]), (3, 3), "sum", "(B, T, 4)"),
    _layout_of("sum/layoutlm", "true-size combine box", PAGE, (1024,) * 4, (3, 3), "sum", "1024 rows; narrower"),
    _layout_of("clip/small", "clip order", ODD_BOXES, (8, 10, 6, 5), (2, 3), clip=True, comment="sizes from -6 to 9"),
    _layout_of("clip/sum", "clip combine", ODD_BOXES, (8, 10, 4, 3), (7, 7), "sum", clip=True),
    _layout_of("clip/inside", "clip box", BOXES, SMALL, (1, 2), clip=True),
    _layout_of("empty/concat", "empty", np.zeros((0, 4), dtype=np.int64), SMALL, (2, 3)),
    _layout_of("empty/sum", "empty", np.zeros((3, 0, 4), dtype=np.int64), SMALL, (2, 2), "sum", clip=True),
    _layout_of("forms/strided", "non-contiguous", PAGES, (11, *READ[1:]), (2, 1)),
    _layout_of("forms/strided-sum", "non-contiguous", PAGES, (11, *READ[1:]), (2, 2), "sum"),
    _layout_of("forms/expanded", "broadcast-view", (BOXES, BOXES), SMALL, (3, 2)),
    _layout_of("forms/batch-one", "batch-one", (BOXES,), SMALL, (3, 1)),
    _layout_of("forms/batch-one-sum", "batch-one", (BOXES[:3],), SMALL, (4, 4), "sum"),
    _layout_of("forms/length-one", "length-one batch-one", ((BOXES[0],),), SMALL, (1, 3)),
    _layout_of("refused/two-corners", "refuse", ((0, 1), (2, 3)), SMALL, (2, 3), kind="reject", comment="a box has four edges"),
    _layout_of("refused/fraction", "refuse", np.asarray(BOXES) / 8, SMALL, (2, 3), kind="reject", comment="edges are rows"),
    _layout_of("refused/widths", "refuse", BOXES, SMALL, (2, 3), "sum", "rows of two widths do not add up", kind="reject"),
    _layout_of("refused/combine", "refuse", BOXES, SMALL, (2, 2), "add", "no such word", kind="reject"),
    _layout_of("gradient/concat", "gradient", BOXES[:2], SMALL, (1, 2), kind="vjp",
               cotangents={"out": reals("layout concat", 2, 8) / 2}),
    _layout_of("gradient/sum", "gradient downcast clip", ODD_BOXES[:3], (7, 8, 3, 4), (2, 2), "sum", clip=True, bits=24,
               kind="vjp", cotangents={"out": reals("layout sum", 3, 2, bits=24) / 2}),
)  # fmt: skip

_hierarchical = cases_of("hierarchical_learned", "hierarchical-")


def _hierarchical_of(
    name: str, flags: str, positions: Any, table: tuple[int, int], alpha: float | None = None, comment: str = "", *,
    bits: int = 8, **rest: Any,
) -> Case:  # fmt: skip
    params = {} if alpha is None else {"alpha": alpha}
    inputs = {"positions": np.asarray(positions), "table": reals(f"hierarchical {name}", *table, bits=bits)}
    return _hierarchical(name, flags, params, inputs, comment, **rest)


HIERARCHICAL = (
    _hierarchical_of("default/small", "rows kept ids", (4, 0, 8, 3, 7, 2), (3, 2), tier="smoke"),
    _hierarchical_of("default/inside", "kept downcast", (4, 0, 2, 2, 6), (7, 5), comment="rows of the table", bits=24),
    _hierarchical_of("default/bert", "true-size rows", (0, 1, 257, 511, 512, 1023, 1025, 131071, 262143), (512, 6),
                     comment="512 rows, narrower; up to the last of 262144 positions"),
    _hierarchical_of("default/rows", "ids rows", ((3, 8, 1, 15), (0, 5, 2, 6), (4, 9, 0, 2)), (4, 6), comment="(B, T)"),
    _hierarchical_of("alpha/quarter", "alpha rows", (0, 5, 9, 24, 17), (5, 4), 0.25),
    _hierarchical_of("alpha/large", "alpha kept", (1, 10, 24, 35, 6), (6, 3), 0.75, "the quotient's row weighs more"),
    _hierarchical_of("alpha/24-bits", "alpha downcast", (7, 48, 6, 13, 0), (7, 10), 0.3, bits=24),
    _hierarchical_of("alpha/rows", "alpha ids", ((35, 8, 1), (0, 5, 21)), (6, 7), 0.6, "(B, T)"),
    _hierarchical_of("alpha/scalar", "ids alpha", 11, (4, 12), 0.2, "a position without axes"),
    _hierarchical_of("alpha/one-row", "kept alpha", (0, 0), (1, 5), 0.7, "a table of one row has one position"),
    _hierarchical_of("empty/none", "empty", np.zeros(0, dtype=np.int64), (5, 6)),
    _hierarchical_of("empty/rows", "empty alpha", np.zeros((3, 0), dtype=np.int64), (4, 2), 0.3),
    _hierarchical_of("refused/half", "refuse", (0, 1), (5, 6), 0.5, "in + j and jn + i would be one", kind="reject"),
    _hierarchical_of("refused/one", "refuse", (0, 1), (5, 6), 1.0, "a division by zero", kind="reject"),
    _hierarchical_of("refused/no-rows", "refuse", (0, 1), (0, 6), 0.4, "there is no row", kind="reject"),
    _hierarchical_of("refused/fraction", "refuse", (0.5, 1.0), (5, 6), 0.4, "positions are rows", kind="reject"),
    _hierarchical_of("gradient/default", "gradient", (5, 0, 7), (3, 2), kind="vjp",
                     cotangents={"out": reals("hierarchical default", 3, 2) / 2}),
    _hierarchical_of("gradient/alpha", "gradient downcast alpha", ((3, 15), (9, 1)), (4, 2), 0.3, bits=24, kind="vjp",
                     cotangents={"out": reals("hierarchical alpha", 2, 2, 2, bits=24) / 2}),
    *places("hierarchical_learned", "positions", {"alpha": 0.375}, table=reals("hierarchical", 4, 6)),
)  # fmt: skip

CASES: tuple[Case, ...] = (*AXIAL, *LAYOUT, *HIERARCHICAL)
