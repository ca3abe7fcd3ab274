"""Cases of axial RoPE of images and videos: axial_rope. Its stages have theirs in `axes`."""

from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import BASE, seed_of, sequence

FLAGS = {
    "axial-lanes": Flag("channels paired over the whole head where each axis has a half of its own, or the reverse"),
    "axial-turns": Flag("axes in blocks where they alternate, or frequencies left in blocks where axes alternate"),
    "axial-origin": Flag("class or register tokens rotated", "naver-ai/rope-vit"),
    "axial-offset": Flag("cells counted from 1 where a model counts from 0, or the reverse"),
}
CORNER = ((0, 2, 1), (4, 0, 3))
PATCHES = ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))  # an image of 2 x 3
CENTRES = ((-0.5, -0.5, 0.5), (-0.75, 0.25, 0.5))
FRAMES = ((0, 1, 7), (3, 5, 2), (6, 9, 2049))
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("half", {"layout": "half", "arrangement": "chunked"}),
    ("interleaved", {"layout": "interleaved", "arrangement": "chunked"}),
    ("by-axis", {"layout": "half_by_axis", "arrangement": "chunked"}),
    ("half-turns", {"layout": "half", "arrangement": "round_robin"}),
    ("turns", {"layout": "interleaved", "arrangement": "round_robin"}),
)
IMAGE: dict[str, Any] = {"allocation": "own", "base": 100.0}


def _axial(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions}
    return Case(f"axial_rope/{name}", {**IMAGE, **params}, inputs, tuple(flags.split()), comment, kind, tier)


def _way(group: str, way: dict[str, Any]) -> tuple[Case, ...]:
    """Return what every way to lay out lanes is asked."""
    rows = np.asarray([((0, 4, 9), (3, 257, 1)), ((5, 2, 7), (0, 6, 8))])[:, :, None]
    far = ((0, 257, 2049, 4097, 131071), (1048575, 65537, 63, 2049, 7))
    first = "smoke" if group == "half" else "core"
    cases = (
        _axial(f"{group}/small", "axial-lanes axial-turns axis-order", (6, 12), PATCHES, tier=first, dims=[6, 6], **way),
        _axial(f"{group}/video", "axial-lanes axial-turns axis-map far-position", (3, 16), FRAMES, bits=24, dims=[8, 4, 4],
               base=500.0, **way),
        _axial(f"{group}/partial", "partial-tail axial-turns", (3, 19), FRAMES, bits=24, dims=[8, 2, 6], base=BASE, **way),
        _axial(f"{group}/shared", "axis-ladder axial-turns", (3, 12), CORNER, dims=[6, 6], **{**way, "allocation": "shared"}),
        _axial(f"{group}/turns", "axis-turns fractional", (3, 8), CENTRES, "coordinates from -1 to 1", dims=[4, 4],
               unit="turns", **way),
        _axial(f"{group}/inverse", "inverse axial-lanes", (3, 8), CORNER, dims=[4, 4], inverse=True, **way),
        _axial(f"{group}/rows", "axis-rows every-head axial-lanes", (2, 2, 3, 14), rows, "another image in every row",
               dims=[6, 8], **way),
        _axial(f"{group}/far", "far-position axial-offset", (5, 10), far, dims=[6, 4], base=BASE, **way),
    )  # fmt: skip
    return cases if way["arrangement"] == "chunked" else cases[:4]


_WAY = dict(WAYS)
MODELS = (
    _axial("models/qwen2-vl", "true-size axial-lanes base", (2, 80), ((7, 40), (25, 3)), "and its successors",
           dims=[40, 40], base=BASE, **_WAY["half"]),
    _axial("models/pixtral", "true-size axis-ladder base", (2, 64), ((7, 63), (25, 3)),
           **{**_WAY["half"], "dims": [32, 32], "allocation": "shared", "base": BASE}),
    _axial("models/llama-4", "true-size axial-origin axial-offset", (3, 88), ((1, 24, 0), (3, 7, 0)),
           "width first, from 1, and a class token at 0 on both axes", dims=[44, 44], base=BASE, **_WAY["interleaved"]),
    _axial("models/dinov3", "true-size axis-turns axial-origin", (3, 64), ((0, -0.9375, 0.3125), (0, 0.0625, -0.5625)),
           "a class token, then patches", dims=[32, 32], unit="turns", **_WAY["half"]),
    _axial("models/gemma-4", "true-size axial-lanes", (2, 64), ((7, 40), (25, 3)), dims=[32, 32], **_WAY["by-axis"]),
    _axial("models/kimi", "true-size axial-turns base", (2, 72), ((7, 40), (25, 3)), "width first", dims=[36, 36],
           base=BASE, **_WAY["half-turns"]),
    _axial("models/wan", "true-size axis-order base", (2, 128), ((5, 20), (25, 3), (44, 50)), dims=[44, 42, 42],
           base=BASE, **_WAY["interleaved"]),
    _axial("models/eva-02-resized", "fractional axial-lanes", (3, 12), ((0, 8, 8), (5.25, 0, 10.5)),
           "coordinates of a smaller grid on the one that the model was made for", dims=[6, 6], base=BASE,
           **_WAY["interleaved"]),
)  # fmt: skip
SHAPES = (
    _axial("shapes/vector", "rank decode", (6,), (4, 258), "one axis, and a position without axes", dims=[4, 2],
           **_WAY["interleaved"]),
    _axial("shapes/one-axis", "rank base", (3, 6), ((2, 300, 5),), "as rope", dims=[6], **_WAY["by-axis"]),
    _axial("shapes/tokens-first", "token-axis every-head", (2, 3, 2, 10), np.asarray(((0, 3, 9), (4, 1, 6)))[:, None, :, None],
           "(B, T, H, d)", dims=[4, 6], **_WAY["half"]),
    _axial("shapes/one-head", "single-head", (2, 1, 3, 8), ((0, 3, 9), (4, 1, 6)), dims=[4, 4], **_WAY["half-turns"]),
    _axial("shapes/one-head-by-axis", "single-head", (3, 1, 2, 10), ((2, 9), (4, 1)), dims=[4, 6], **_WAY["by-axis"]),
    _axial("shapes/no-tokens", "empty", (0, 12), np.zeros((2, 0), dtype=np.int64), dims=[4, 8], **_WAY["by-axis"]),
)  # fmt: skip
REFUSED = (
    _axial("refused/lanes", "refuse-sections", (6, 12), PATCHES, "14 lanes of 12", kind="reject", dims=[6, 8], **_WAY["half"]),
    _axial("refused/odd", "refuse-width", (6, 12), PATCHES, "an odd width", kind="reject", dims=[7, 5], **_WAY["half"]),
    _axial("refused/axes", "refuse-sections", (6, 12), PATCHES, "three widths for two axes", kind="reject", dims=[4, 4, 4],
           **_WAY["half"]),
    _axial("refused/by-axis", "refuse-option", (6, 12), PATCHES, "lanes by axis, and axes that take turns", kind="reject",
           dims=[4, 8], layout="half_by_axis", arrangement="round_robin"),
    _axial("refused/layout", "refuse-option", (6, 12), PATCHES, kind="reject", dims=[4, 8], layout="interleaved_to_half",
           arrangement="chunked"),
)  # fmt: skip
SEQUENCES = (
    sequence("axial_rope/sequence/sizes", "axis-rows cache-key", "a large image, a small one, one token of the first", tuple(
        Step({**IMAGE, **_WAY["half"], "dims": [4, 4]}, {"x": floats(len(p[0]), 8, seed=i), "positions": p})
        for i, p in enumerate((((0, 0, 0, 7, 7, 7), (0, 1, 30, 0, 1, 30)), ((0, 1), (1, 0)), ((7,), (30,))))
    )),
)  # fmt: skip

CASES = (*(case for group, way in WAYS for case in _way(group, way)), *MODELS, *SHAPES, *REFUSED, *SEQUENCES)
