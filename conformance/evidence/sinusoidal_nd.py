"""Sinusoidal encoding of several coordinates: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, always, argument, around, cases_of, deviations_of, option
from .tools.hints import ALL_AXES, AXIS_ORDER, BRANCH, FRACTIONS, FROM_ZERO

USUAL: dict[str, Any] = {"dims": [4, 6], "layout": "sin_cos", "arrangement": "axis"}
GAPS = ("positions-4096-at-0",)
KERNEL: tuple[dict[str, Any], ...] = ({"dims": [96, 160], "layout": "sin_cos", "arrangement": "axis"},)
KERNEL_SIZES: dict[str, Any] = {}

GRID = ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))
SCATTERED = ((3, 0, 7, 3), (11, 5, 0, 2))
VIDEO = ((0, 1, 1, 12), (2, 0, 44, 29), (1, 3, 2, 59))
SIN, COS, NEAR, TIMM = (
    {"layout": layout, "arrangement": arrangement}
    for layout, arrangement in (("sin_cos", "axis"), ("cos_sin", "axis"), ("interleaved", "axis"), ("sin_cos", "outer"))
)
_nd = cases_of("sinusoidal_nd")


def _case(name: str, positions: Any, dims: list[int], params: dict[str, Any], comment: str = "", **rest: Any) -> Case:
    return _nd(name, {"dims": dims, **params}, {"positions": positions}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("sin-cos/small", ((1, 0, 4), (3, 5, 0)), [4, 4], SIN, tier="smoke"),
        _case("sin-cos/mae", ((0, 13), (13, 2)), [384, 384], SIN, "14 by 14 patches of ViT-B"),
        _case("sin-cos/sd3", ((20.0, 21.5, 63.666666984558105), (12.0, 0.3333333432674408, 41.0)), [96, 96],
              SIN, "coordinates of a window, scaled; narrower"),
        _case("sin-cos/base", SCATTERED, [6, 8], {**SIN, "base": 500.0}),
        _case("sin-cos/endpoint", SCATTERED, [8, 6], {**SIN, "endpoint": True}, "vit-pytorch"),
        _case("sin-cos/endpoint-base", SCATTERED, [4, 10], {**SIN, "endpoint": True, "base": 100.0}),
        _case("sin-cos/one-axis", (SCATTERED[0],), [6], SIN),
        _case("sin-cos/one-pair", VIDEO, [2, 2, 2], SIN, "every frequency is 1"),
        _case("cos-sin/small", SCATTERED, [6, 4], COS),
        _case("interleaved/three", VIDEO, [4, 4, 6], NEAR, "as positional-encodings' grids"),
        _case("interleaved/one-axis", (SCATTERED[0],), [8], NEAR),
        _case("outer/timm", ((0, 13, 7), (13, 2, 0)), [192, 192], TIMM, "14 by 14 patches of ViT-S"),
        _case("outer/cos-sin", VIDEO, [4, 6, 8], {**COS, "arrangement": "outer"}),
        _case("outer/cos-sin-grid", GRID, [8, 8], {**COS, "arrangement": "outer", "base": 2e4}),
        _case("rows/scalar", (3, 8), [4, 6], SIN, "one cell, without axes"),
        _case("empty/rows", np.zeros((3, 2, 0), dtype=np.int64), [4, 2, 6], TIMM),
        _case("forms/strided-vector", SCATTERED, [6, 4], NEAR, form="non-contiguous"),
        _case("refused/axes", GRID, [4, 4, 4], SIN, "two coordinates for three widths", kind="reject"),
        _case("refused/odd", GRID, [4, 5], SIN, kind="reject"),
        _case("refused/outer", GRID, [4, 4], {**NEAR, "arrangement": "outer"}, kind="reject"),
        _case("refused/endpoint", GRID, [4, 2], {**SIN, "endpoint": True}, "d/2 - 1 divides by zero", kind="reject"),
    )  # fmt: skip


def _in_phases(out: Real, positions: Any, /, *, dims: Any, arrangement: str, layout: str, **options: Any) -> Real:
    """Return columns with the sines of all axes first where they belong block by block."""
    if arrangement == "outer" or layout == "interleaved":
        return out
    ends = np.cumsum(dims)
    starts = ends - np.asarray(dims)
    halves = [(np.arange(a, (a + b) // 2), np.arange((a + b) // 2, b)) for a, b in zip(starts, ends, strict=True)]
    order = [column for number in (0, 1) for pair in halves for column in pair[number]]
    return out[..., order]


@around
def _whole_width(function: Function, positions: Any, /, *, dims: Any, base: float = 10000.0, **options: Any) -> Real:
    """The exponent is divided by the width of all blocks."""
    if options["arrangement"] == "outer" or options.get("endpoint"):
        return function(positions, dims=dims, base=base, **options)
    blocks = [
        function(positions[a : a + 1], dims=[width], base=float(base) ** (width / sum(dims)), **options)
        for a, width in enumerate(dims)
    ]
    return np.concatenate(blocks, axis=-1)


_deviation = deviations_of("sinusoidal_nd")

DEVIATIONS = (
    _deviation("sinusoidal-nd-exchanged", "the coordinates of the last two axes are exchanged",
               argument(0, lambda p: p[[*range(len(p) - 2), -1, -2]] if len(p) > 1 else p),
               hint="x first in MAE, DiT and diffusers; y first in timm.", seen_in="transformers#41380, torchtitan#4244"),
    _deviation("sinusoidal-nd-reversed", "the coordinates of all axes are in the reverse order",
               argument(0, lambda p: p[::-1]), hint=AXIS_ORDER),
    _deviation("sinusoidal-nd-phases-outer", "the sines of all axes come before all cosines", after(_in_phases), hint=BRANCH),
    _deviation("sinusoidal-nd-phases-axis", "axes are always in blocks, one after another", option(arrangement=always("axis")),
               hint=BRANCH),
    _deviation("sinusoidal-nd-whole-width", "the exponent is divided by the width of all blocks", _whole_width,
               hint="The exponent is divided by the width of the axis's own block."),
    _deviation("sinusoidal-nd-first-axis", "every block encodes the first axis",
               argument(0, lambda p: np.broadcast_to(p[:1], np.shape(p))), hint=ALL_AXES),
    _deviation("sinusoidal-nd-one-based", "cells are counted from one", argument(0, lambda p: p + 1), hint=FROM_ZERO),
    _deviation("sinusoidal-nd-truncated", "coordinates are truncated to integers", argument(0, np.trunc), hint=FRACTIONS),
)  # fmt: skip
