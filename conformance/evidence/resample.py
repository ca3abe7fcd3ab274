"""Interpolation of position embeddings: cases and known mistakes."""

from math import isqrt, prod
from typing import Any

import numpy as np

from .tools import Case, Deviation, Function, Step, after, always, argument, around, before, deviations_of, held, option, reals
from .tools.hints import BRANCH, DEFAULT, HEIGHT_WIDTH

USUAL: dict[str, Any] = {
    "size": [3, 4], "old_size": [2, 3], "prefix": 1, "method": "linear", "align_corners": False, "antialias": False,
}  # fmt: skip
WITH_OPTION: dict[str, dict[str, Any]] = {"antialias": {"old_size": [5, 7]}}
KERNEL: tuple[dict[str, Any], ...] = tuple(
    {"size": size, "old_size": old, "prefix": 1, "method": method, "align_corners": corners, "antialias": smooth}
    for size, old, method, corners, smooth in (
        ([24, 20], [14, 14], "cubic", False, False),
        ([24, 20], [14, 14], "linear", False, False),
        ([13, 16], [37, 37], "cubic", False, True),
        ([13, 16], [37, 37], "linear", False, True),
        ([20, 33], [14, 14], "linear", True, False),
        ([20, 33], [14, 14], "cubic", True, False),
    )
)
KERNEL_SIZES: dict[str, Any] = {"d": 96}

PLAIN: dict[str, Any] = {"align_corners": False, "antialias": False}
CORNERS: dict[str, Any] = {"align_corners": True, "antialias": False}
SMOOTH: dict[str, Any] = {"align_corners": False, "antialias": True}
BOTH: dict[str, Any] = {"align_corners": True, "antialias": True}
DINO: dict[str, Any] = {**PLAIN, "interpolate_offset": 0.1}
MUSE: dict[str, Any] = {**PLAIN, "boundary": "zeros"}
Grid = tuple[int, ...]


def _call(
    name: str, old: Grid, new: Grid, method: str, how: dict[str, Any], *, prefix: int = 0, d: int = 3, bits: int = 8
) -> Step:
    """Return one call."""
    params = {"size": list(new), "old_size": list(old), "prefix": prefix, "method": method, **how}
    return Step(params, {"table": reals(f"resample {name}", prefix + prod(old), d, bits=bits)})


def _case(
    name: str,
    old: Grid,
    new: Grid,
    method: str,
    how: dict[str, Any],
    comment: str = "",
    *,
    kind: str = "value",
    tier: str = "core",
    form: str = "",
    **sizes: Any,
) -> Case:
    """Return a case of one grid and another."""
    call = _call(name, old, new, method, how, **sizes)
    cotangents = (
        {"out": reals(f"{name} ct", sizes.get("prefix", 0) + prod(new), sizes.get("d", 3)) / 2} if kind == "vjp" else {}
    )
    return Case(f"resample/{name}", call.params, call.inputs, comment, kind, tier, cotangents=cotangents, form=form)


def _sequence(name: str, comment: str, *calls: tuple[Any, ...]) -> Case:
    """Return a case of several calls; all have the same table."""
    steps = tuple(_call(name, *call) for call in calls)
    return Case(f"resample/sequence/{name}", comment=comment, kind="sequence", steps=steps)


def _refused(name: str, comment: str, table: Grid = (6, 3), **options: Any) -> Case:
    """Return a call that must raise."""
    params = {"size": [3, 4], "old_size": [2, 3], "prefix": 0, "method": "linear", **PLAIN, **options}
    inputs = {"table": reals(f"resample {name}", *table)}
    return Case(f"resample/refused/{name}", params, inputs, comment, "reject")


WAYS = ("linear", PLAIN), ("cubic", PLAIN), ("linear", CORNERS), ("linear", SMOOTH)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("linear/small", (2, 3), (3, 5), "linear", PLAIN, tier="smoke", prefix=1),
        _case("linear/antialias-corners-larger", (3, 4), (7, 5), "linear", BOTH, prefix=2),
        _case("linear/zeros-corners", (3, 4), (5, 6), "linear", {**CORNERS, "boundary": "zeros"}, "nothing is outside"),
        _case("cubic/antialias-corners-larger", (3, 5), (6, 7), "cubic", BOTH, prefix=1),
        _case("cubic/zeros", (4, 3), (6, 5), "cubic", MUSE),
        _case("offset/unchanged", (5, 5), (5, 7), "cubic", DINO, "rows are shifted too", prefix=1),
        _case("offset/unchanged-width", (4, 6), (3, 6), "cubic", DINO),
        _case("offset/half", (5, 6), (7, 4), "cubic", {**PLAIN, "interpolate_offset": 0.5}),
        _case("offset/zeros", (3, 4), (5, 7), "linear", {**MUSE, "interpolate_offset": 0.75}),
        _case("offset/antialias-linear", (5, 7), (4, 3), "linear", {**SMOOTH, "interpolate_offset": 0.25}),
        _case("grid/two-by-eight", (2, 8), (3, 5), "cubic", PLAIN, "16 cells, and not 4 by 4", prefix=1),
        _case("grid/as-many", (4, 4), (8, 2), "cubic", SMOOTH, "as many cells", prefix=1),
        _case("grid/as-many-turned", (3, 5), (5, 3), "linear", CORNERS, "height and width exchanged"),
        _case("grid/one-row", (1, 4), (1, 3), "linear", PLAIN),
        _case("grid/one-column", (9, 1), (5, 1), "cubic", SMOOTH),
        _case("grid/to-one-column", (4, 3), (6, 1), "linear", SMOOTH, prefix=1),
        _case("grid/from-one-cell", (1, 1), (3, 2), "linear", PLAIN, "every new cell is the old one", prefix=1),
        _case("grid/from-one-cell-zeros", (1, 1), (3, 5), "cubic", MUSE),
        _case("grid/no-width", (2, 3), (4, 5), "linear", PLAIN, "no columns", d=0),
        _case("grid/no-width-smooth", (3, 2), (1, 5), "cubic", SMOOTH, d=0, prefix=1),
        _case("grid/strided", (3, 4), (5, 2), "cubic", PLAIN, form="non-contiguous", d=6, prefix=1),
        _case("grid/strided-smooth", (4, 3), (2, 5), "linear", SMOOTH, form="non-contiguous", d=4),
        _case("axes/line-smaller", (9,), (4,), "cubic", PLAIN, prefix=1),
        _case("axes/line-smooth", (10,), (3,), "linear", SMOOTH),
        _case("axes/video-corners", (3, 2, 4), (2, 5, 3), "cubic", CORNERS, d=2, prefix=1),
        _case("axes/video", (2, 3, 4), (3, 5, 2), "linear", PLAIN, "trilinear: time, height, width", d=2),
        _case("models/dinov2-224", (37, 37), (16, 16), "cubic", DINO, "518 pixels to 224", prefix=1, d=2),
        _case("models/siglip2-tall", (16, 16), (25, 10), "linear", SMOOTH, "NaFlex", d=2, bits=24),
        _case("models/qwen3-vl", (48, 48), (14, 20), "linear", CORNERS, "in the order of rows", d=1),
        _case("models/google-vit", (14, 14), (24, 24), "linear", CORNERS, "scipy.ndimage.zoom", prefix=1, d=1),
        _case("models/sam", (27,), (127,), "linear", PLAIN, "a window's table for the whole image", d=6),
        _sequence("sizes", "a grid, a smaller one, a larger one, the first",
                  *(((3, 4), new, "cubic", SMOOTH) for new in ((5, 7), (2, 3), (6, 9), (5, 7)))),
        _sequence("settings", "the same grids in other ways", *(((4, 3), (5, 7), *way) for way in WAYS)),
        _case("gradient/linear", (3, 2), (4, 5), "linear", PLAIN, kind="vjp", prefix=1, d=2),
        _case("gradient/corners", (2, 3), (3, 2), "linear", CORNERS, kind="vjp", d=2),
        _case("gradient/cubic", (3, 2), (2, 5), "cubic", PLAIN, kind="vjp", d=2, bits=24),
        _case("gradient/antialias", (4, 3), (2, 2), "cubic", SMOOTH, kind="vjp", prefix=1, d=2),
        _case("gradient/zeros", (2, 3), (3, 5), "linear", MUSE, kind="vjp", d=1),
        _refused("rows", "6 cells and 1 more row: which is it?", (7, 3)),
        _refused("prefix", "the prefix has rows of its own", prefix=1),
        _refused("size-0", "a grid has cells", size=[0, 4]),
        _refused("one-size", "a size for each axis", size=[12]),
        _refused("method", "no such kernel", method="nearest"),
        _refused("offset-1", "a whole cell more", interpolate_offset=1.0),
        _refused("offset-corners", "corners stay: nothing is shifted", interpolate_offset=0.1, align_corners=True),
        _refused("zeros-antialias", "antialias drops what is outside", boundary="zeros", antialias=True),
        Case("resample/refused/integers", {"size": [3], "old_size": [2], "prefix": 0, "method": "linear", **PLAIN},
             {"table": np.arange(6).reshape(2, 3)}, "integers cannot be interpolated", "reject"),
    )  # fmt: skip


_deviation = deviations_of("resample")
_coordinates = deviations_of("old_coordinates")


def _square(table: Any, size: Any, /, *, old_size: Any, **options: Any) -> Any:
    cells = prod(old_size)
    root = isqrt(cells)
    if len(old_size) == 2 and root * root == cells:
        old_size = (root, root)
    return (table, size), {**options, "old_size": old_size}


@around
def _same_count(function: Function, table: Any, size: Any, /, *, old_size: Any, **options: Any) -> Any:
    return table if prod(size) == prod(old_size) else function(table, size, old_size=old_size, **options)


@around
def _prefix_last(function: Function, table: Any, size: Any, /, *, prefix: int, **options: Any) -> Any:
    return np.roll(function(table, size, prefix=prefix, **options), -prefix, axis=0)


@around
def _always_offset(
    function: Function, table: Any, size: Any, /, *, align_corners: bool, interpolate_offset: Any = None, **options: Any
) -> Any:
    offset = None if align_corners else interpolate_offset or 0.1
    return function(table, size, align_corners=align_corners, interpolate_offset=offset, **options)


@around
def _never_offset(function: Function, table: Any, size: Any, /, *, interpolate_offset: Any = None, **options: Any) -> Any:
    return function(table, size, **options)


@around
def _always_corners(
    function: Function, table: Any, size: Any, /, *, align_corners: bool, interpolate_offset: Any = None, **options: Any
) -> Any:
    return function(table, size, align_corners=True, **options)


@around
def _always_antialias(
    function: Function, table: Any, size: Any, /, *, antialias: bool, boundary: str = "border", **options: Any
) -> Any:
    return function(table, size, antialias=True, **options)


def _padding(word: str) -> Any:
    def deviating(
        function: Function, table: Any, size: Any, /, *, antialias: bool, boundary: str = "border", **options: Any
    ) -> Any:
        return function(table, size, antialias=antialias, boundary="border" if antialias else word, **options)

    return around(deviating)


@around
def _only_smaller(function: Function, table: Any, size: Any, /, *, old_size: Any, antialias: bool, **options: Any) -> Any:
    """An axis that does not shrink is not antialiased; axes are taken one after another."""
    if not antialias or options.get("interpolate_offset"):
        return function(table, size, old_size=old_size, antialias=antialias, **options)
    now = list(old_size)
    for axis, m in enumerate(size):
        before, now = now, [*now[:axis], m, *now[axis + 1 :]]
        table = function(table, now, old_size=before, antialias=m < before[axis], **options)
    return table


def _unchanged_left(function: Function) -> Function:
    return lambda n, m, corners, offset, c: function(n, m, corners, None if m == n else offset, c)


def _column_repeated(out: Any, table: Any, size: Any, /, *, old_size: Any, prefix: int, antialias: bool, **options: Any) -> Any:
    if not antialias or len(size) != 2 or size[1] != 1 or size[0] == old_size[0]:
        return out
    return np.concatenate([out[:prefix], np.repeat(out[prefix : prefix + 1], size[0], axis=0)])


DEVIATIONS = (
    _deviation("resample-linear", "interpolation is always linear", option(method=always("linear")), hint=BRANCH),
    _deviation("resample-cubic", "interpolation is always cubic", option(method=always("cubic")), hint=BRANCH),
    _deviation("resample-no-corners", "align_corners is always off", option(align_corners=always(False)),
               hint="Qwen3-VL interpolates with align_corners.", seen_in="llama.cpp#25781, sglang#22052, sglang#34013"),
    _deviation("resample-corners", "align_corners is always on", _always_corners, hint=BRANCH),
    _deviation("resample-no-antialias", "antialias is always off", option(antialias=always(False)),
               hint="timm and SigLIP 2 antialias."),
    _deviation("resample-antialias", "antialias is always on", _always_antialias,
               hint="jax.image.resize antialiases by default."),
    _deviation("resample-offset-dropped", "the offset to the new size is left out", _never_offset, hint="DINOv2 adds 0.1.",
               seen_in="dinov2#378"),
    _deviation("resample-offset-0.1", "0.1 is always added to the new size", _always_offset, hint=DEFAULT, seen_in="dino#8"),
    _deviation("resample-sizes-exchanged", "the new height and width are exchanged",
               before(lambda table, size, /, **o: ((table, size[::-1]), o)), hint=HEIGHT_WIDTH),
    _deviation("resample-old-sizes-exchanged", "the old height and width are exchanged", option(old_size=lambda n: n[::-1]),
               hint=HEIGHT_WIDTH, seen_in="transformers' BEiT"),
    _deviation("resample-square", "the old grid is assumed to be square", before(_square),
               hint="The table's length does not give its height."),
    _deviation("resample-same-count", "a table with as many cells as the new grid is not resampled", _same_count,
               hint="Compare sizes, not counts.", seen_in="open_clip's resize_pos_embed"),
    _deviation("resample-prefix-last", "the rows of the prefix come last", _prefix_last,
               hint="The prefix's rows come first and are not resampled."),
    _deviation("resample-zeros", "cells outside the grid are read as 0", _padding("zeros"),
               hint="grid_sample has padding_mode='zeros' by default."),
    _deviation("resample-border", "cells outside the grid always repeat those at the border", _padding("border"), hint=BRANCH),
    _deviation("resample-bfloat16", "the table is held in bfloat16", held("bfloat16", 0),
               hint="Interpolate in float32, as DINOv2 does."),
    _deviation("resample-antialias-smaller", "antialias acts only on axes that shrink", _only_smaller,
               hint="It has another cubic kernel."),
    _deviation("resample-column-repeated", "with antialias every row of a grid one cell wide is the first",
               after(_column_repeated), hint="PyTorch's CPU kernel does so.", seen_in="PyTorch 2.13"),
    Deviation("resample-unchanged-left", "an axis of the same size is not resampled, although the offset shifts it",
              {"old_cells_per_new": _unchanged_left}, hint="With an offset, resample also where the size stays the same."),
    _coordinates("resample-half-dropped", "coordinates are those of the cells' corners: x = s i", argument(2, always(True)),
                 hint="Use the cells' centres: x = s (i + 1/2) - 1/2."),
    _coordinates("resample-corners-kept", "align_corners keeps the corners in place with antialias too",
                 argument(3, always(False)), hint="With antialias, PyTorch places cells as without align_corners."),
    Deviation("resample-a-0.5", "the cubic kernel always has a = -0.5", {"cubic_kernel": argument(1, always(-0.5))},
              hint="Pillow and JAX have this kernel; PyTorch without antialias has -0.75."),
    Deviation("resample-a-0.75", "the cubic kernel always has a = -0.75", {"cubic_kernel": argument(1, always(-0.75))},
              hint="With antialias PyTorch has -0.5."),
)  # fmt: skip
