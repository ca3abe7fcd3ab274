"""Cases of RoPE over several position axes: axial_frequencies, axial_table and mrope."""

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
    YaRNByTurns,
)

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import BASE, FAR, GIVEN, KIMI, UNEQUAL, UNROUNDED, seed_of, sequence
from .rope_extended import GIVEN_FACTOR, MSCALES, TURNS, TURNS_NARROW
from .rope_extended import SMALL as SMALL_LONG

FLAGS = {
    "axis-order": Flag("time, height and width, or height and width, exchanged"),
    "axis-map": Flag("sections chunked where they are interleaved, or the reverse"),
    "axis-tail": Flag("the pairs past the shorter sections given to another axis than time"),
    "axis-text": Flag("text, with the same position on every axis, not rotated as by RoPE"),
    "axis-ladder": Flag("one list of frequencies where every axis has its own, or the reverse", "vllm-omni #1784"),
    "axis-turns": Flag("coordinates from -1 to 1 not multiplied by 2 pi"),
    "axis-endpoint": Flag("the last frequency one step before 1/base where it is 1/base, or the reverse"),
    "axis-first": Flag("a first frequency that is always 1, or a period taken for a frequency"),
    "axis-rows": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "refuse-sections": Flag("sections that do not tile the pairs accepted"),
}
QWEN2: dict[str, Any] = {"sections": [16, 24, 24], "arrangement": "chunked"}
QWEN3: dict[str, Any] = {"sections": [24, 20, 20], "arrangement": "interleaved"}
QWEN35: dict[str, Any] = {"sections": [11, 11, 10], "arrangement": "interleaved"}
ERNIE: dict[str, Any] = {"sections": [20, 22, 22], "arrangement": "ernie"}
GLM: dict[str, Any] = {"sections": [8, 12, 12], "arrangement": "round_robin"}
SMALL = {
    "chunked": [1, 3, 2],
    "interleaved": [3, 2, 1],
    "ernie": [2, 2, 2],
    "round_robin": [1, 3, 2],
}
# A prompt: two words, an image of 2 x 3 cells, a word; and one with a video
PROMPT = ((0, 1, 2, 2, 2, 2, 2, 2, 5), (0, 1, 2, 2, 2, 3, 3, 3, 5), (0, 1, 2, 3, 4, 2, 3, 4, 5))
VIDEO = ((7, 8, 8, 58, 58, 108), (7, 8, 9, 8, 9, 109), (7, 8, 8, 257, 9, 109))


def _ladder(name: str, flags: str, dims: list[int], *, kind: str = "value", tier: str = "core", **params: Any) -> Case:
    params = {"dims": dims, "base": BASE, **params}
    return Case(f"axial_frequencies/{name}", params, {}, tuple(flags.split()), "", kind, tier)


LADDERS = (
    _ladder("own/small", "axis-ladder", [8, 8], tier="smoke", allocation="own"),
    _ladder("own/unequal", "axis-ladder", [4, 6, 10], allocation="own", base=500.0),
    _ladder("own/flux", "axis-ladder true-size", [16, 56, 56], allocation="own"),
    _ladder("own/wan", "axis-ladder true-size", [44, 42, 42], allocation="own"),
    _ladder("own/gemma-4", "axis-ladder true-size base", [32, 32], allocation="own", base=100.0),
    _ladder("own/one-axis", "axis-ladder base", [14], allocation="own", base=5e5),
    _ladder("shared/pixtral", "axis-ladder true-size", [32, 32], allocation="shared"),
    _ladder("shared/three", "axis-ladder base", [6, 6, 6], allocation="shared", base=500.0),
    _ladder("turns/dinov3", "axis-turns true-size", [32, 32], allocation="own", base=100.0, unit="turns"),
    _ladder("turns/shared", "axis-turns", [10, 10], allocation="shared", unit="turns"),
    _ladder(
        "endpoint/dinov3",
        "axis-endpoint axis-first axis-turns",
        [8, 8],
        allocation="own",
        base=16.0,
        unit="turns",
        endpoint=True,
        first=2.0,
    ),
    _ladder(
        "endpoint/ltx",
        "axis-endpoint axis-first true-size",
        [682, 682, 682],
        allocation="own",
        base=1e-4,
        unit="turns",
        endpoint=True,
        first=0.25,
    ),
    _ladder("endpoint/unequal", "axis-endpoint", [4, 10, 6], allocation="own", base=500.0, endpoint=True),
    _ladder("endpoint/shared", "axis-endpoint axis-ladder", [6, 6, 6], allocation="shared", endpoint=True),
    _ladder("endpoint/two-pairs", "axis-endpoint", [4], allocation="own", base=70.0, endpoint=True),
    _ladder("first/own", "axis-first axis-ladder", [6, 12], allocation="own", base=70.0, first=0.375),
    _ladder("first/shared", "axis-first axis-turns", [10, 10], allocation="shared", unit="turns", first=3.0),
    _ladder("refused/endpoint", "refuse-width axis-endpoint", [2, 4], kind="reject", allocation="own", endpoint=True),
    _ladder("refused/first", "refuse-option axis-first", [4, 4], kind="reject", allocation="own", first=0.0),
    _ladder("refused/odd", "refuse-width", [7, 8], kind="reject", allocation="own"),
    _ladder("refused/unequal", "refuse-sections", [6, 8], kind="reject", allocation="shared"),
    _ladder("refused/word", "refuse-option", [6, 6], kind="reject", allocation="even_odd"),
)


def _table(
    name: str, flags: str, positions: Any, pairs: int, comment: str = "", *, kind: str = "value", tier: str = "core",
    **params: Any,
) -> Case:  # fmt: skip
    inputs = {"positions": positions, "inv_freq": np.abs(floats(pairs, seed=seed_of(name), bits=8)) / 4}
    return Case(f"axial_table/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _tables(arrangement: str) -> tuple[Case, ...]:
    """Return what every arrangement is asked of axial_table."""
    group = arrangement.replace("_", "-")
    small: dict[str, Any] = {"sections": SMALL[arrangement], "arrangement": arrangement}
    first = "smoke" if arrangement == "chunked" else "core"
    far = (FAR, FAR[::-1], tuple(p // 2 for p in FAR))
    return (
        _table(f"{group}/prompt", "axis-map axis-order", PROMPT, 6, tier=first, **small),
        _table(f"{group}/video", "axis-map axis-order far-position", VIDEO, 6, attention_factor=1.25, **small),
        _table(f"{group}/far", "far-position axis-map", far, 6, **small),
        _table(f"{group}/rows", "axis-rows", (PROMPT, tuple(row[::-1] for row in PROMPT), PROMPT[::-1]), 6, **small),
        _table(f"{group}/no-tokens", "empty", np.zeros((3, 0), dtype=np.int64), 6, **small),
    )


TABLES = (
    *(case for arrangement in SMALL for case in _tables(arrangement)),
    _table("interleaved/tail", "axis-tail", PROMPT, 12, sections=[8, 2, 2], arrangement="interleaved"),
    _table("round-robin/tail", "axis-tail", PROMPT, 13, sections=[2, 8, 3], arrangement="round_robin"),
    _table("ernie/tail", "axis-tail", PROMPT, 10, sections=[6, 2, 2], arrangement="ernie"),
    _table("chunked/empty-section", "axis-order", PROMPT, 5, "no pairs for time", sections=[0, 2, 3], arrangement="chunked"),
    _table("chunked/four-axes", "axis-order", (*PROMPT, PROMPT[1][::-1]), 8, "HunYuan's four", sections=[2] * 4,
           arrangement="chunked"),
    _table("chunked/image", "axis-order", ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2)), 6, sections=[3, 3],
           arrangement="chunked"),
    _table("chunked/centred", "axis-order fractional", ((-0.5, -0.5, 0.5, 0.5), (-0.75, 0.25, -0.75, 0.25)), 6,
           "coordinates from -1 to 1", sections=[3, 3], arrangement="chunked"),
    _table("refused/sum", "refuse-sections", PROMPT, 6, kind="reject", sections=[2, 3, 2], arrangement="chunked"),
    _table("refused/axes", "refuse-sections", PROMPT, 6, kind="reject", sections=[3, 3], arrangement="chunked"),
    _table("refused/tail", "refuse-sections", PROMPT, 6, "width cannot have four of six pairs", kind="reject",
           sections=[1, 1, 4], arrangement="interleaved"),
    _table("refused/ernie", "refuse-sections", PROMPT, 6, "height and width alternate", kind="reject", sections=[1, 4, 1],
           arrangement="ernie"),
    _table("refused/word", "refuse-option", PROMPT, 6, kind="reject", sections=[2, 2, 2], arrangement="blocks"),
)  # fmt: skip


def _mrope(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions}
    return Case(f"mrope/{name}", {"base": BASE, **params}, inputs, tuple(flags.split()), comment, kind, tier)


def _arranged(arrangement: str) -> tuple[Case, ...]:
    """Return what every arrangement is asked of mrope."""
    group = arrangement.replace("_", "-")
    small: dict[str, Any] = {"sections": SMALL[arrangement], "arrangement": arrangement}
    first = "smoke" if arrangement == "chunked" else "core"
    rows = np.asarray((PROMPT, tuple(row[::-1] for row in PROMPT), PROMPT[::-1]))[:, :2]
    return (
        _mrope(f"{group}/small", "axis-map axis-order", (9, 12), PROMPT, tier=first, layout="half", **small),
        _mrope(f"{group}/interleaved", "axis-map layout", (2, 6, 12), VIDEO, bits=24, layout="interleaved", **small),
        _mrope(f"{group}/mixed", "axis-map layout", (6, 12), VIDEO, bits=24, layout="interleaved_to_half", base=5e5, **small),
        _mrope(f"{group}/rows", "axis-rows every-head", (2, 3, 9, 12), rows[:, :, None], layout="half", **small),
        _mrope(f"{group}/partial", "partial-tail axis-map", (9, 17), PROMPT, bits=24, layout="half", **small),
        _mrope(f"{group}/inverse", "inverse axis-map", (9, 12), PROMPT, layout="interleaved", inverse=True, **small),
        _mrope(f"{group}/text", "axis-text", (3, 12), ((3, 9, 257),) * 3, "as rope", layout="half", **small),
        _mrope(f"{group}/no-tokens", "empty", (0, 12), np.zeros((3, 0), dtype=np.int64), layout="half", **small),
    )


MROPE = (
    *(case for arrangement in SMALL for case in _arranged(arrangement)),
    _mrope("models/qwen2-vl", "true-size axis-map base", (9, 128), PROMPT, layout="half", **{**QWEN2, "base": 1e6}),
    _mrope("models/qwen3-vl", "true-size axis-tail base", (9, 128), PROMPT, layout="half", **{**QWEN3, "base": 5e6}),
    _mrope("models/qwen3.5", "true-size axis-tail partial", (6, 256), VIDEO, layout="half", **{**QWEN35, "base": 1e7}),
    _mrope("models/ernie-4.5-vl", "true-size axis-map base", (9, 128), PROMPT, layout="interleaved", **{**ERNIE, "base": 5e5}),
    _mrope("models/glm-4.5v", "true-size axis-map partial", (6, 128), VIDEO, layout="interleaved", **GLM),
    _mrope("models/hunyuan-vl", "true-size axis-order", (9, 128), (*PROMPT, PROMPT[1][::-1]), layout="half",
           sections=[16] * 4, arrangement="chunked", scaling=NTKAlpha(1000.0)),
    _mrope("models/image", "axis-order", (6, 20), ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2)), layout="half",
           sections=[5, 5], arrangement="chunked"),
    _mrope("scaling/yarn", "yarn-gain axis-map", (9, 12), PROMPT, layout="half", sections=[1, 3, 2], arrangement="chunked",
           scaling=YaRN(4, 64)),
    _mrope("scaling/yarn-interleaved", "yarn-gain axis-tail", (6, 24), VIDEO, layout="interleaved", sections=[6, 3, 3],
           arrangement="interleaved", scaling=YaRN(6, 128)),
    _mrope("refused/sections", "refuse-sections", (9, 12), PROMPT, "seven pairs of twelve lanes", kind="reject",
           layout="half", sections=[2, 3, 2], arrangement="chunked"),
    _mrope("refused/positions", "refuse-positions", (9, 12), PROMPT[0], "one axis of positions for three sections",
           kind="reject", layout="half", sections=[2, 2, 2], arrangement="chunked"),
    _mrope("refused/layout", "refuse-option", (9, 12), PROMPT, kind="reject", layout="neox", sections=[2, 2, 2],
           arrangement="chunked"),
    sequence("mrope/sequence/prompts", "axis-rows", "a long prompt, a short one, and a token after it", tuple(
        Step({"base": BASE, "layout": "half", "sections": [2, 2, 2], "arrangement": "interleaved"},
             {"x": floats(len(places[0]), 12, seed=i), "positions": places})
        for i, places in enumerate((PROMPT, VIDEO, ((6,), (6,), (6,))))
    )),
)  # fmt: skip


def _scaled(
    name: str, flag: str, *scalings: Scaling, lengths: tuple[int | None, ...] = (None,), dim: int = 12
) -> tuple[Case, ...]:
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
        cases.append(_mrope(f"scaled/{name}-{n}", flag, (9, dim), PROMPT, **options))
    return tuple(cases)


SCALED = (
    *_scaled("linear", "linear", Linear(4), Linear(2.5)),
    *_scaled("ntk", "ntk-exponent", NTKAware(4), NTKAware(2.5)),
    *_scaled("ntk-alpha", "ntk-alpha", NTKAlpha(6.5), NTKAlpha(0.75)),
    *_scaled("ntk-fixed", "ntk-fixed", NTKFixed(4.0), NTKFixed(2.5)),
    *_scaled("ntk-mixed", "ntk-mixed", NTKMixed(4.0, mix=0.5), NTKMixed(6.0)),
    *_scaled("dynamic", "dynamic-above dynamic-below", DynamicNTK(2, 16), DynamicNTK(3.5, 24), lengths=(40, 16, 9)),
    *_scaled("llama3", "llama3-bands llama3-factor", Llama3(6, 500, 2, 9), Llama3(5, 300, 1.5, 24)),
    *_scaled("yarn", "yarn-gain yarn-mscale yarn-betas", GIVEN, YaRN(9, 256, mscale=0.0, mscale_all_dim=0.75),
             YaRN(7, 256, mscale=1.25, mscale_all_dim=0.0), YaRN(4, 6), YaRN(0.75, 2000)),
    *_scaled("yarn-20", "yarn-truncate yarn-mscale", UNROUNDED, UNEQUAL, YaRN(6, 900, truncate=False), dim=20),
    *_scaled("yarn-64", "yarn-range yarn-singular", YaRN(4, 131072), KIMI, YaRN(6, 200000), dim=64),
    *_scaled("yarn-turns", "yarn-turns", TURNS, TURNS_NARROW),
    *_scaled("yarn-turns-20", "yarn-turns", TURNS, YaRNByTurns(4, 900, beta_fast=20, beta_slow=3), dim=20),
    *_scaled("yarn-dynamic", "yarn-dynamic", DynamicYaRN(64), DynamicYaRN(90, beta_fast=20, beta_slow=2), lengths=(200, 33)),
    *_scaled("longrope", "longrope-switch longrope-gain", SMALL_LONG, GIVEN_FACTOR, MSCALES, lengths=(20, 32, 190)),
    *_scaled("longrope-limits", "longrope-switch longrope-mscale", GIVEN_FACTOR, MSCALES, lengths=(48, 20)),
    *_scaled("proportional", "proportional", Proportional(0.5, factor=2.0), Proportional(0.75, factor=6.5)),
    _mrope("scaled/one-head", "single-head inverse", (2, 1, 9, 12), PROMPT, layout="interleaved_to_half", inverse=True,
           sections=[1, 3, 2], arrangement="chunked"),
    _mrope("scaled/one-head-half", "single-head inverse", (3, 1, 9, 12), PROMPT, layout="interleaved_to_half", inverse=True,
           sections=[3, 2, 1], arrangement="interleaved", scaling=GIVEN),
    *(
        sequence(f"mrope/sequence/dynamic-{n}", "dynamic-stale dynamic-limit", "long, short, at the limit, long", tuple(
            Step({"base": BASE, "layout": "half", "sections": [1, 3, 2], "arrangement": "chunked", "length": length,
                  "scaling": DynamicNTK(factor, 16)}, {"x": floats(9, 12, seed=n * 10 + i), "positions": PROMPT})
            for i, length in enumerate((40, 9, 40, 16, 33))
        ))
        for n, factor in enumerate((2, 3.5))
    ),
)  # fmt: skip

CASES = (*LADDERS, *TABLES, *MROPE, *SCALED)
