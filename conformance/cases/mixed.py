"""Cases of rotary encodings whose pairs turn with all axes, at frequencies that are given: mixed_table and mixed_rope."""

import math
from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import seed_of, sequence

FLAGS = {
    "mixed-sum": Flag("one axis alone, or axes subtracted, where a pair rotates with the sum of all"),
    "mixed-order": Flag("coordinates of one axis multiplied by the frequencies of another"),
    "mixed-heads": Flag("the first head's frequencies used for every head"),
    "mixed-bits": Flag("learned frequencies narrowed to half precision"),
}
PATCHES = ((0, 0, 1, 1, 2), (0, 1, 0, 3, 1))
BETWEEN = ((0.5, -1.25, 3.75), (-0.5, 2.5, 7.25))  # of cells scaled about the centre
FRAMES = ((0, 1, 7), (3, -5, 2), (6, 9, -4))
FAR = ((0, 257, 2049, 65537), (131071, 63, 4097, 7))
LAYOUTS = ("half", "interleaved", "interleaved_to_half")


def learned(name: str, *shape: int, bits: int = 8) -> Any:
    """Return frequencies of either sign, below 1."""
    return floats(*shape, seed=seed_of(name + "frequencies"), bits=bits) / 4


def begun(heads: int, lanes: int) -> Any:
    """Return the frequencies with which RoPE-ViT's heads begin, at angles that are drawn there."""
    size = [10.0 ** -(4 * k / lanes) for k in range(lanes // 4)]
    angles = [[0.5 + 2 * h + quarter * math.pi / 2 for quarter in (0, 1)] for h in range(heads)]
    found = [[[s * wave(a) for a in both for s in size] for both in angles] for wave in (math.cos, math.sin)]
    return np.round(np.asarray(found) * 2**20) / 2**20  # the same whatever the C library's last bit


def _table(
    name: str, flags: str, positions: Any, frequencies: tuple[int, ...], comment: str = "", *, bits: int = 8,
    kind: str = "value", tier: str = "core",
) -> Case:  # fmt: skip
    inputs = {"positions": positions, "frequencies": learned(name, *frequencies, bits=bits)}
    return Case(f"mixed_table/{name}", {}, inputs, tuple(flags.split()), comment, kind, tier)


def _mixed(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, frequencies: Any, comment: str = "", *, bits: int = 8,
    kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    given = learned(name, *frequencies, bits=bits) if isinstance(frequencies, tuple) else frequencies
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions, "frequencies": given}
    return Case(f"mixed_rope/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


TABLES = (
    _table("plain/small", "mixed-sum mixed-order", PATCHES, (2, 3), tier="smoke"),
    _table("plain/between", "mixed-sum fractional", BETWEEN, (2, 4)),
    _table("plain/three", "mixed-sum mixed-order", FRAMES, (3, 5), "time, height and width"),
    _table("plain/far", "far-position mixed-sum", FAR, (2, 3)),
    _table("plain/24-bits", "mixed-bits far-position", FAR, (2, 5), bits=24),
    _table("plain/24-bits-three", "mixed-bits mixed-sum", FRAMES, (3, 4), bits=24),
    _table("plain/one-axis", "rank", ((0, 3, 9, 300),), (1, 3), "as rope"),
    _table("heads/first", "mixed-heads mixed-order", PATCHES, (2, 3, 1, 4), "heads before tokens"),
    _table("heads/last", "mixed-heads rank", tuple(np.asarray(BETWEEN)[..., None]), (2, 2, 5), "tokens before heads"),
    _table("heads/rows", "axis-rows mixed-heads", np.asarray((FRAMES[:2], FRAMES[1:]))[:, :, None], (2, 1, 2, 1, 3),
           "two images, two heads"),
    _table("heads/no-tokens", "empty", np.zeros((2, 0), dtype=np.int64), (2, 3, 1, 4)),
    _table("refused/axes", "refuse-positions", PATCHES, (3, 4), "frequencies of three axes for two", kind="reject"),
    _table("refused/rows", "refuse-positions", PATCHES, (2, 3, 4), "three heads against five tokens", kind="reject"),
)  # fmt: skip


def _layout(layout: str) -> tuple[Case, ...]:
    """Return what every layout is asked."""
    group = layout.replace("_", "-")
    rows = np.asarray((FRAMES[:2], FRAMES[1:]))[:, :, None]
    first = "smoke" if layout == "half" else "core"
    cases = (
        _mixed(f"{group}/small", "layout mixed-sum mixed-order", (5, 8), PATCHES, (2, 4), tier=first, layout=layout),
        _mixed(f"{group}/heads", "mixed-heads every-head", (3, 5, 6), PATCHES, (2, 3, 1, 3), layout=layout),
        _mixed(f"{group}/partial", "partial-tail mixed-bits downcast", (3, 13), FRAMES, (3, 5), bits=24, layout=layout),
        _mixed(f"{group}/inverse", "inverse layout", (3, 8), BETWEEN, (2, 4), bits=24, layout=layout, inverse=True),
        _mixed(f"{group}/far", "far-position layout", (4, 6), FAR, (2, 3), layout=layout),
        _mixed(f"{group}/rows", "axis-rows mixed-heads layout", (2, 2, 3, 6), rows, (2, 1, 2, 1, 3), layout=layout),
    )
    return cases if layout != "interleaved_to_half" else cases[:4]


MIXED = (
    *(case for layout in LAYOUTS for case in _layout(layout)),
    _mixed("models/rope-vit", "true-size mixed-heads axial-origin", (2, 2, 64), ((0, 13), (0, 11)),
           begun(2, 64)[:, :, None], "two of its heads; a class token, then patches, width first", layout="interleaved"),
    _mixed("models/lightglue", "true-size fractional", (2, 64), ((-0.75, 0.5), (0.25, 0.625)), (2, 32),
           "key points, and a projection that all heads share", layout="interleaved"),
    _mixed("shapes/tokens-first", "token-axis mixed-heads", (2, 3, 2, 6), np.asarray(BETWEEN)[:, None, :, None],
           (2, 1, 1, 2, 3), "(B, T, H, d), as Mochi", layout="interleaved"),
    _mixed("shapes/vector", "rank decode", (6,), (4, 9), (2, 3), layout="half"),
    _mixed("shapes/one-head-back", "single-head inverse", (2, 1, 2, 6), ((1, 7), (4, 2)), (2, 3),
           layout="interleaved_to_half", inverse=True),
    _mixed("shapes/one-head", "single-head", (2, 1, 3, 8), BETWEEN, (2, 1, 1, 1, 4), layout="half"),
    _mixed("shapes/one-head-interleaved", "single-head", (3, 1, 2, 6), ((1, 7), (4, 2)), (2, 3), layout="interleaved"),
    _mixed("shapes/no-tokens", "empty", (0, 8), np.zeros((2, 0), dtype=np.int64), (2, 4), layout="half"),
    _mixed("refused/lanes", "refuse-sections", (5, 8), PATCHES, (2, 5), "ten lanes of eight", kind="reject", layout="half"),
    _mixed("refused/heads", "refuse-positions", (3, 5, 8), PATCHES, (2, 5, 4), "an axis for heads or for tokens",
           kind="reject", layout="half"),
    _mixed("refused/layout", "refuse-option", (5, 8), PATCHES, (2, 4), kind="reject", layout="half_by_axis"),
    sequence("mixed_rope/sequence/sizes", "axis-rows cache-key", "a large image, a small one, one token of the first", tuple(
        Step({"layout": "interleaved"},
             {"x": floats(len(p[0]), 6, seed=i), "positions": p, "frequencies": learned("sizes", 2, 3)})
        for i, p in enumerate((((0, 0, 7, 7), (0, 30, 0, 30)), ((0, 1), (1, 0)), ((7,), (30,))))
    )),
)  # fmt: skip

CASES = (*TABLES, *MIXED)
