"""Deviations of learned tables on another grid."""

from math import isqrt, prod
from typing import Any

import numpy as np

from .compose import Deviation, Function, after, always, argument, before, deviations_of, narrowed, option

_resample = deviations_of("resample")
_coordinates = deviations_of("old_coordinates")


def _square(table: Any, size: Any, /, *, old_size: Any, **options: Any) -> Any:
    cells = prod(old_size)
    root = isqrt(cells)
    if len(old_size) == 2 and root * root == cells:
        old_size = (root, root)
    return (table, size), {**options, "old_size": old_size}


def _same_count(function: Function) -> Function:
    def deviating(table: Any, size: Any, /, *, old_size: Any, **options: Any) -> Any:
        return table if prod(size) == prod(old_size) else function(table, size, old_size=old_size, **options)

    return deviating


def _prefix_last(function: Function) -> Function:
    def deviating(table: Any, size: Any, /, *, prefix: int, **options: Any) -> Any:
        return np.roll(function(table, size, prefix=prefix, **options), -prefix, axis=0)

    return deviating


def _always_offset(function: Function) -> Function:
    def deviating(table: Any, size: Any, /, *, align_corners: bool, interpolate_offset: Any = None, **options: Any) -> Any:
        offset = None if align_corners else interpolate_offset or 0.1
        return function(table, size, align_corners=align_corners, interpolate_offset=offset, **options)

    return deviating


def _never_offset(function: Function) -> Function:
    def deviating(table: Any, size: Any, /, *, interpolate_offset: Any = None, **options: Any) -> Any:
        return function(table, size, **options)

    return deviating


def _always_corners(function: Function) -> Function:
    def deviating(table: Any, size: Any, /, *, align_corners: bool, interpolate_offset: Any = None, **options: Any) -> Any:
        return function(table, size, align_corners=True, **options)

    return deviating


def _always_antialias(function: Function) -> Function:
    def deviating(table: Any, size: Any, /, *, antialias: bool, padding: str = "border", **options: Any) -> Any:
        return function(table, size, antialias=True, **options)

    return deviating


def _padding(word: str) -> Any:
    def wrap(function: Function) -> Function:
        def deviating(table: Any, size: Any, /, *, antialias: bool, padding: str = "border", **options: Any) -> Any:
            return function(table, size, antialias=antialias, padding="border" if antialias else word, **options)

        return deviating

    return wrap


def _only_smaller(function: Function) -> Function:
    """An axis that does not shrink is not antialiased; axes are taken one after another."""

    def deviating(table: Any, size: Any, /, *, old_size: Any, antialias: bool, **options: Any) -> Any:
        if not antialias or options.get("interpolate_offset"):
            return function(table, size, old_size=old_size, antialias=antialias, **options)
        now = list(old_size)
        for axis, m in enumerate(size):
            before, now = now, [*now[:axis], m, *now[axis + 1 :]]
            table = function(table, now, old_size=before, antialias=m < before[axis], **options)
        return table

    return deviating


def _unchanged_left(function: Function) -> Function:
    return lambda n, m, corners, offset, c: function(n, m, corners, None if m == n else offset, c)


def _column_repeated(out: Any, table: Any, size: Any, /, *, old_size: Any, prefix: int, antialias: bool, **options: Any) -> Any:
    if not antialias or len(size) != 2 or size[1] != 1 or size[0] == old_size[0]:
        return out
    return np.concatenate([out[:prefix], np.repeat(out[prefix : prefix + 1], size[0], axis=0)])


DEVIATIONS = (
    _resample("resample-linear", "interpolation is always linear", option(method=always("linear"))),
    _resample("resample-cubic", "interpolation is always cubic", option(method=always("cubic"))),
    _resample("resample-no-corners", "align_corners is always off", option(align_corners=always(False)),
              "Qwen3-VL interpolates with align_corners.", "llama.cpp#25781, sglang#22052, sglang#34013"),
    _resample("resample-corners", "align_corners is always on", _always_corners),
    _resample("resample-no-antialias", "antialias is always off", option(antialias=always(False)),
              "timm and SigLIP 2 antialias."),
    _resample("resample-antialias", "antialias is always on", _always_antialias, "jax.image.resize antialiases by default."),
    _resample("resample-offset-dropped", "the offset to the new size is left out", _never_offset, "DINOv2 adds 0.1.", "dinov2#378"),
    _resample("resample-offset-0.1", "0.1 is always added to the new size", _always_offset, "", "dino#8"),
    _resample("resample-sizes-exchanged", "the new height and width are exchanged", before(
        lambda table, size, /, **o: ((table, size[::-1]), o))),
    _resample("resample-old-sizes-exchanged", "the old height and width are exchanged", option(old_size=lambda n: n[::-1]),
              "", "transformers' BEiT"),
    _resample("resample-square", "the old grid is assumed to be square", before(_square), "The table's length does not give its height."),
    _resample("resample-same-count", "a table with as many cells as the new grid is not resampled", _same_count, "Compare sizes, not counts.",
              "open_clip's resize_pos_embed"),
    _resample("resample-prefix-last", "the rows of the prefix come last", _prefix_last,
              hint="The prefix's rows come first and are not resampled."),
    _resample("resample-zeros", "cells outside the grid are read as 0", _padding("zeros"), "grid_sample has padding_mode='zeros' by default."),
    _resample("resample-border", "cells outside the grid always repeat those at the border", _padding("border")),
    _resample("resample-bfloat16", "the table is held in bfloat16", argument(0, narrowed("bfloat16")), "Interpolate in float32, as DINOv2 does."),
    _resample("resample-antialias-smaller", "antialias acts only on axes that shrink", _only_smaller, "It has another cubic kernel."),
    _resample("resample-column-repeated", "with antialias every row of a grid one cell wide is the first", after(_column_repeated),
              "PyTorch's CPU kernel does so.", "PyTorch 2.13"),
    Deviation("resample-unchanged-left", "an axis of the same size is not resampled, although the offset shifts it",
              {"old_cells_per_new": _unchanged_left}, hint="With an offset, resample also where the size stays the same."),
    _coordinates("resample-half-dropped", "coordinates are those of the cells' corners: x = s i", argument(2, always(True)),
                 hint="Use the cells' centres: x = s (i + 1/2) - 1/2."),
    _coordinates("resample-corners-kept", "align_corners keeps the corners in place with antialias too", argument(3, always(False)),
                 hint="With antialias, PyTorch places cells as without align_corners."),
    Deviation("resample-a-0.5", "the cubic kernel always has a = -0.5", {"cubic_kernel": argument(1, always(-0.5))},
              "Pillow and JAX have this kernel; PyTorch without antialias has -0.75."),
    Deviation("resample-a-0.75", "the cubic kernel always has a = -0.75", {"cubic_kernel": argument(1, always(-0.75))},
              "With antialias PyTorch has -0.5."),
)  # fmt: skip
