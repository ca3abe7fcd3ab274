"""Multimodal RoPE (M-RoPE): cases and known mistakes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from posref.scaling import (
    DynamicNTK,
    DynamicYaRN,
    Linear,
    Llama3,
    NTKAlpha,
    NTKAware,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRN,
)

from .shared.axial import ARRANGED, PROMPT, SECTIONS, VIDEO, placed_rotations
from .shared.rotary import (
    BASE,
    GIVEN,
    GIVEN_FACTOR,
    KIMI,
    MSCALES,
    SMALL,
    TRIPLES,
    TURNS,
    TURNS_NARROW,
    UNEQUAL,
    UNROUNDED,
    in_layouts,
)
from .tools import Case, Make, Step, floats, gradient, reals, seed_of, sequence

USUAL: dict[str, Any] = {**SECTIONS, "layout": "half", "base": 10000.0}
SIZES: dict[str, Any] = {"E": 1}
WITH_OPTION = {"arrangement=interleaved": {"sections": [2, 2, 1]}}
AXES = (4, 2)
GAPS = (  # no model with positions on several axes clips its RoPE
    "yarn-mscale-one", "clipped-linear", "clipped-not-to-zero", "clipped-fast", "clipped-half", "clipped-hard-ignored",
    "clipped-twenty",
)  # fmt: skip
KERNEL = in_layouts(arrangement="chunked")

QWEN2: dict[str, Any] = {"sections": [16, 24, 24], "arrangement": "chunked"}
QWEN3: dict[str, Any] = {"sections": [24, 20, 20], "arrangement": "interleaved"}
QWEN35: dict[str, Any] = {"sections": [11, 11, 10], "arrangement": "interleaved"}
GLM: dict[str, Any] = {"sections": [8, 12, 12], "arrangement": "round_robin"}


def _case(
    name: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions}
    return Case(f"mrope/{name}", {"base": BASE, **params}, inputs, comment, kind, tier)


def _arranged(arrangement: str) -> tuple[Case, ...]:
    """Return the cases of mrope that every arrangement has."""
    group = arrangement.replace("_", "-")
    small: dict[str, Any] = {"sections": ARRANGED[arrangement], "arrangement": arrangement}
    first = "smoke" if arrangement == "chunked" else "core"
    return (
        _case(f"{group}/small", (9, 12), PROMPT, tier=first, layout="half", **small),
        _case(f"{group}/interleaved", (2, 6, 12), VIDEO, bits=24, layout="interleaved", **small),
        _case(f"{group}/mixed", (6, 12), VIDEO, bits=24, layout="interleaved_to_half", base=5e5, **small),
        _case(f"{group}/inverse", (9, 12), PROMPT, layout="interleaved", inverse=True, **small),
        _case(f"{group}/text", (3, 12), ((3, 9, 257),) * 3, "as rope", layout="half", **small),
    )


def _scaled(name: str, *scalings: Scaling, lengths: tuple[int | None, ...] = (None,), dim: int = 12) -> tuple[Case, ...]:
    """Return a case of mrope for every record and length, the arrangements and layouts in turn."""
    layouts = ("half", "interleaved", "interleaved_to_half")
    cases = []
    for n, (scaling, length) in enumerate((s, length) for s in scalings for length in lengths):
        options: dict[str, Any] = {
            "sections": [1, 3, 2] if dim == 12 else [dim // 2 - 6, 3, 3],
            "scaling": scaling,
            "layout": layouts[n % 3],
        }
        options |= {"arrangement": "chunked" if n % 2 else "round_robin"} | ({} if length is None else {"length": length})
        cases.append(_case(f"scaled/{name}-{n}", (9, dim), PROMPT, **options))
    return tuple(cases)


IMAGE = ((0, 0, 0, 1, 1, 1, 2, 2, 2), (3, 5, 4, 3, 5, 4, 3, 5, 4))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for arrangement in ARRANGED for case in _arranged(arrangement)),
        _case("models/qwen2-vl", (9, 128), PROMPT, layout="half", **{**QWEN2, "base": 1e6}),
        _case("models/qwen3-vl", (9, 128), PROMPT, layout="half", **{**QWEN3, "base": 5e6}),
        _case("models/qwen3.5", (6, 256), VIDEO, layout="half", **{**QWEN35, "base": 1e7}),
        _case("models/glm-4.5v", (6, 128), VIDEO, layout="interleaved", **GLM),
        _case("models/hunyuan-vl", (9, 128), (*PROMPT, PROMPT[1][::-1]), layout="half",
              sections=[16] * 4, arrangement="chunked", scaling=NTKAlpha(1000.0)),
        _case("scaling/yarn", (9, 12), PROMPT, layout="half", sections=[1, 3, 2], arrangement="chunked", scaling=YaRN(4, 64)),
        _case("scaling/yarn-interleaved", (6, 24), VIDEO, layout="interleaved", sections=[6, 3, 3],
              arrangement="interleaved", scaling=YaRN(6, 128)),
        _case("refused/sections", (9, 12), PROMPT, "seven pairs of twelve lanes", kind="reject",
              layout="half", sections=[2, 3, 2], arrangement="chunked"),
        _case("refused/positions", (9, 12), PROMPT[0], "one axis of positions for three sections",
              kind="reject", layout="half", sections=[2, 2, 2], arrangement="chunked"),
        _case("refused/layout", (9, 12), PROMPT, kind="reject", layout="neox", sections=[2, 2, 2], arrangement="chunked"),
        sequence("mrope/sequence/prompts", "a long prompt, a short one, and a token after it",
                 tuple(Step({"base": BASE, "layout": "half", "sections": [2, 2, 2], "arrangement": "interleaved"},
                 {"x": floats(len(places[0]), 12, seed=i), "positions": places})
                 for i, places in enumerate((PROMPT, VIDEO, ((6,), (6,), (6,)))))),
        *_scaled("linear", Linear(4), Linear(2.5)),
        *_scaled("ntk", NTKAware(4), NTKAware(2.5)),
        *_scaled("ntk-alpha", NTKAlpha(6.5), NTKAlpha(0.75)),
        *_scaled("ntk-fixed", NTKFixed(4.0), NTKFixed(2.5)),
        *_scaled("ntk-mixed", NTKMixed(4.0, mix=0.5), NTKMixed(6.0)),
        *_scaled("dynamic", DynamicNTK(2, 16), DynamicNTK(3.5, 24), lengths=(40, 16, 9)),
        *_scaled("llama3", Llama3(6, 500, 2, 9), Llama3(5, 300, 1.5, 24)),
        *_scaled("yarn", GIVEN, YaRN(9, 256, mscale=0.0, mscale_all_dim=0.75),
                 YaRN(7, 256, mscale=1.25, mscale_all_dim=0.0), YaRN(4, 6), YaRN(0.75, 2000)),
        *_scaled("yarn-20", UNROUNDED, UNEQUAL, YaRN(6, 900, truncate=False), dim=20),
        *_scaled("yarn-64", YaRN(4, 131072), KIMI, YaRN(6, 200000), dim=64),
        *_scaled("yarn-turns", TURNS, TURNS_NARROW),
        *_scaled("yarn-dynamic", DynamicYaRN(64), DynamicYaRN(90, beta_fast=20, beta_slow=2), lengths=(200, 33)),
        *_scaled("longrope", SMALL, GIVEN_FACTOR, MSCALES, lengths=(20, 32, 190)),
        *_scaled("proportional", Proportional(0.5, factor=2.0), Proportional(0.75, factor=6.5)),
        _case("scaled/one-head", (2, 1, 9, 12), PROMPT, layout="interleaved_to_half", inverse=True,
              sections=[1, 3, 2], arrangement="chunked"),
        _case("scaled/one-head-half", (3, 1, 9, 12), PROMPT, layout="interleaved_to_half", inverse=True,
              sections=[3, 2, 1], arrangement="interleaved", scaling=GIVEN),
        *(sequence(f"mrope/sequence/dynamic-{n}", "long, short, at the limit, long",
          tuple(Step({"base": BASE, "layout": "half", "sections": [1, 3, 2], "arrangement": "chunked", "length": length,
          "scaling": DynamicNTK(factor, 16)}, {"x": floats(9, 12, seed=n * 10 + i), "positions": PROMPT})
          for i, length in enumerate((40, 9, 40, 16, 33)))) for n, factor in enumerate((2, 3.5))),
        *placed_rotations("mrope", USUAL),
        gradient("mrope", "half", {"x": reals("mrope-half", 3, 10), "positions": TRIPLES}, {"out": (3, 10)},
                 sections=[1, 2, 2], arrangement="chunked", layout="half", base=10000.0),
        gradient("mrope", "interleaved",
                 {"x": reals("mrope-interleaved", 2, 3, 9), "positions": TRIPLES}, {"out": (2, 3, 9)}, sections=[2, 1, 1],
                 arrangement="interleaved", layout="interleaved", base=500.0, scaling=YaRN(4, 64)),
        Case("mrope/usual/image-half", {"sections": [3, 4], "arrangement": "chunked", "layout": "half", "base": 100.0},
             {"x": floats(9, 14, seed=seed_of("halfimage")), "positions": IMAGE}),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield a second call of one vector."""
    yield make.one("vector-once-more", way=0, places=lambda count: np.arange(count) + 2)
