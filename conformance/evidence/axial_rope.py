"""Axial RoPE: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.axial import placed_rotations
from .shared.rotary import BASE, TRIPLES, in_layouts
from .tools import Case, Deviation, Function, Step, Wrap, argument, deviations_of, floats, gradient, reals, seed_of, sequence
from .tools.hints import FRACTIONS

USUAL: dict[str, Any] = {
    "dims": [2, 4, 4],
    "arrangement": "chunked",
    "layout": "half_by_axis",
    "allocation": "own",
    "base": 100.0,
}
WITH_OPTION: dict[str, dict[str, Any]] = {"allocation": {"dims": [4, 4, 4]}, "arrangement": {"layout": "half"}}
SIZES: dict[str, Any] = {"E": 2}
AXES = (1, 2)
KERNEL = in_layouts(allocation="own", arrangement="chunked", unit="radians")

CORNER = ((0, 2, 1), (4, 0, 3))
IMAGE_CELLS = ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))  # an image of 2 x 3
CENTRES = ((-0.5, -0.5, 0.5), (-0.75, 0.25, 0.5))
VIDEO_CELLS = ((0, 1, 7), (3, 5, 2), (6, 9, 2049))
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("half", {"layout": "half", "arrangement": "chunked"}),
    ("interleaved", {"layout": "interleaved", "arrangement": "chunked"}),
    ("by-axis", {"layout": "half_by_axis", "arrangement": "chunked"}),
    ("half-turns", {"layout": "half", "arrangement": "round_robin"}),
    ("turns", {"layout": "interleaved", "arrangement": "round_robin"}),
)
IMAGE: dict[str, Any] = {"allocation": "own", "base": 100.0}


def _case(
    name: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions}
    return Case(f"axial_rope/{name}", {**IMAGE, **params}, inputs, comment, kind, tier)


def _way(group: str, way: dict[str, Any]) -> tuple[Case, ...]:
    """Return the cases that every layout has."""
    first = "smoke" if group == "half" else "core"
    cases = (
        _case(f"{group}/small", (6, 12), IMAGE_CELLS, tier=first, dims=[6, 6], **way),
        _case(f"{group}/video", (3, 16), VIDEO_CELLS, bits=24, dims=[8, 4, 4], base=500.0, **way),
        _case(f"{group}/partial", (3, 19), VIDEO_CELLS, bits=24, dims=[8, 2, 6], base=BASE, **way),
        _case(f"{group}/shared", (3, 12), CORNER, dims=[6, 6], **{**way, "allocation": "shared"}),
        _case(f"{group}/turns", (3, 8), CENTRES, "coordinates from -1 to 1", dims=[4, 4], unit="turns", **way),
        _case(f"{group}/inverse", (3, 8), CORNER, dims=[4, 4], inverse=True, **way),
    )
    return cases if way["arrangement"] == "chunked" else cases[:4]


_WAY = dict(WAYS)
LADDER: dict[str, Any] = {"dims": [2, 4, 2], "base": 100.0, "allocation": "own"}


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for group, way in WAYS for case in _way(group, way)),
        _case("models/gemma-4", (2, 64), ((7, 40), (25, 3)), dims=[32, 32], **_WAY["by-axis"]),
        _case("models/kimi", (2, 72), ((7, 40), (25, 3)), "width first", dims=[36, 36], base=BASE, **_WAY["half-turns"]),
        _case("models/wan", (2, 128), ((5, 20), (25, 3), (44, 50)), dims=[44, 42, 42], base=BASE, **_WAY["interleaved"]),
        _case("shapes/vector", (6,), (4, 258), "one axis, and a position without axes", dims=[4, 2], **_WAY["interleaved"]),
        _case("shapes/tokens-first", (2, 3, 2, 10),
              np.asarray(((0, 3, 9), (4, 1, 6)))[:, None, :, None], "(B, T, H, d)", dims=[4, 6], **_WAY["half"]),
        _case("shapes/one-head", (2, 1, 3, 8), ((0, 3, 9), (4, 1, 6)), dims=[4, 4], **_WAY["half-turns"]),
        _case("shapes/one-head-by-axis", (3, 1, 2, 10), ((2, 9), (4, 1)), dims=[4, 6], **_WAY["by-axis"]),
        _case("refused/lanes", (6, 12), IMAGE_CELLS, "14 lanes of 12", kind="reject", dims=[6, 8], **_WAY["half"]),
        _case("refused/odd", (6, 12), IMAGE_CELLS, "an odd width", kind="reject", dims=[7, 5], **_WAY["half"]),
        _case("refused/axes", (6, 12), IMAGE_CELLS, "three widths for two axes", kind="reject", dims=[4, 4, 4], **_WAY["half"]),
        _case("refused/by-axis", (6, 12), IMAGE_CELLS, "lanes by axis, and axes that take turns",
              kind="reject", dims=[4, 8], layout="half_by_axis", arrangement="round_robin"),
        _case("refused/layout", (6, 12), IMAGE_CELLS, kind="reject", dims=[4, 8],
              layout="interleaved_to_half", arrangement="chunked"),
        sequence("axial_rope/sequence/sizes", "a large image, a small one, one token of the first",
                 tuple(Step({**IMAGE, **_WAY["half"], "dims": [4, 4]}, {"x": floats(len(p[0]), 8, seed=i), "positions": p})
                 for i, p in enumerate((((0, 0, 0, 7, 7, 7), (0, 1, 30, 0, 1, 30)), ((0, 1), (1, 0)), ((7,), (30,)))))),
        *placed_rotations("axial_rope", USUAL),
        gradient("axial_rope", "by-axis", {"x": reals("axial-by-axis", 3, 9), "positions": TRIPLES},
                 {"out": (3, 9)}, layout="half_by_axis", arrangement="chunked", **LADDER),
        gradient("axial_rope", "inverse", {"x": reals("axial-inverse", 3, 9), "positions": TRIPLES},
                 {"out": (3, 9)}, layout="interleaved", arrangement="round_robin", inverse=True, **LADDER),
    )  # fmt: skip


def _laid_out(layout: str, other: str) -> dict[str, Wrap]:
    """Return a wrap that takes one layout of axial_rope for another, where axes are in blocks."""

    def wrap(function: Function) -> Function:
        return lambda *args, **options: function(
            *args, **options | ({"layout": other} if (options["layout"], options["arrangement"]) == (layout, "chunked") else {})
        )

    return {"axial_rope": wrap}


_deviation = deviations_of("axial_rope")

DEVIATIONS = (
    Deviation("axial-over-head", "channels are paired over the whole head where each axis should have its own block",
              _laid_out("half_by_axis", "half"), hint="The layout is [h h w w], not [h w h w]."),
    Deviation("axial-by-axis", "each axis has its own block of channels where they should be paired over the whole head",
              _laid_out("half", "half_by_axis"), hint="The layout is [h w h w], not [h h w w]."),
    _deviation("axial-whole-numbers", "coordinates are truncated to integers", argument(1, np.trunc), hint=FRACTIONS),
    Deviation("axial-turns-blocks", "frequencies are in blocks, one for each axis, where axes should alternate",
              {"in_pair_order": lambda function: lambda inv_freq, **options: inv_freq},
              hint="Frequencies and axes must be put in the same order."),
)  # fmt: skip
