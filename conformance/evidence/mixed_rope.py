"""RoPE-Mixed: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.axial import BETWEEN, FAR, FRAMES, PATCHES, learned, mixed_forms
from .shared.rotary import TRIPLES
from .tools import Case, Step, floats, gradient, reals, seed_of, sequence

GAPS = ("partner-over-head",)  # 13 channels have no halves
USUAL: dict[str, Any] = {"layout": "interleaved"}
SIZES: dict[str, Any] = {"E": 1}
AXES = (1, 1)
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "half"}, {"layout": "interleaved"})

LAYOUTS = ("half", "interleaved_to_half")


def _case(
    name: str, shape: tuple[int, ...], positions: Any, frequencies: Any, comment: str = "", *, bits: int = 8,
    kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    table = learned(name, *frequencies, bits=bits) if isinstance(frequencies, tuple) else frequencies
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions, "frequencies": table}
    return Case(f"mixed_rope/{name}", params, inputs, comment, kind, tier)


def _layout(layout: str) -> tuple[Case, ...]:
    """Return the cases that every layout has."""
    group = layout.replace("_", "-")
    first = "smoke" if layout == "half" else "core"
    cases = (
        _case(f"{group}/small", (5, 8), PATCHES, (2, 4), tier=first, layout=layout),
        _case(f"{group}/heads", (3, 5, 6), PATCHES, (2, 3, 1, 3), layout=layout),
        _case(f"{group}/partial", (3, 13), FRAMES, (3, 5), bits=24, layout=layout),
        _case(f"{group}/inverse", (3, 8), BETWEEN, (2, 4), bits=24, layout=layout, inverse=True),
        _case(f"{group}/far", (4, 6), FAR, (2, 3), layout=layout),
    )
    return cases if layout != "interleaved_to_half" else cases[:4]


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for layout in LAYOUTS for case in _layout(layout)),
        _case("models/lightglue", (2, 64), ((-0.75, 0.5), (0.25, 0.625)), (2, 32),
              "key points, and a projection that all heads share", layout="interleaved"),
        _case("shapes/tokens-first", (2, 3, 2, 6), np.asarray(BETWEEN)[:, None, :, None],
              (2, 1, 1, 2, 3), "(B, T, H, d), as Mochi", layout="interleaved"),
        _case("shapes/vector", (6,), (4, 9), (2, 3), layout="half"),
        _case("shapes/one-head-back", (2, 1, 2, 6), ((1, 7), (4, 2)), (2, 3), layout="interleaved_to_half", inverse=True),
        _case("shapes/one-head-interleaved", (3, 1, 2, 6), ((1, 7), (4, 2)), (2, 3), layout="interleaved"),
        _case("refused/lanes", (5, 8), PATCHES, (2, 5), "ten lanes of eight", kind="reject", layout="half"),
        _case("refused/heads", (3, 5, 8), PATCHES, (2, 5, 4), "an axis for heads or for tokens", kind="reject", layout="half"),
        _case("refused/layout", (5, 8), PATCHES, (2, 4), kind="reject", layout="half_by_axis"),
        sequence("mixed_rope/sequence/sizes", "a large image, a small one, one token of the first",
                 tuple(Step({"layout": "interleaved"},
                 {"x": floats(len(p[0]), 6, seed=i), "positions": p, "frequencies": learned("sizes", 2, 3)})
                 for i, p in enumerate((((0, 0, 7, 7), (0, 30, 0, 30)), ((0, 1), (1, 0)), ((7,), (30,)))))),
        *mixed_forms("mixed_rope", layout="interleaved"),
        gradient("mixed_rope", "shared",
                 {"x": reals("mixed-x", 2, 3, 6), "positions": TRIPLES[:2], "frequencies": reals("mixed-s", 2, 3) / 4},
                 {"out": (2, 3, 6)}, layout="interleaved"),
        gradient("mixed_rope", "inverse",
                 {"x": reals("mixed-i", 2, 3, 5), "positions": TRIPLES, "frequencies": reals("mixed-h", 3, 2, 1, 2) / 4},
                 {"out": (2, 3, 5)}, layout="half", inverse=True),
    )  # fmt: skip
