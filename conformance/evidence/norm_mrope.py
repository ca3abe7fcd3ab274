"""QK-norm and M-RoPE in one operation: cases. It has the known mistakes of norm_rope and axial_table, which it calls."""

from typing import Any

import numpy as np

from .shared.axial import ARRANGED, PROMPT, SECTIONS, VIDEO, placed_forms
from .shared.rotary import TRIPLES
from .tools import Case, cases_of, floats, form_case, gradient, reals, seed_of

OP = "norm_mrope"

NORM: dict[str, Any] = {"eps": 1e-6, "weight_offset": 0, "precedence": "norm_first"}
GAPS = ("fused-mean-before",)  # a rotation keeps the mean of squares
USUAL: dict[str, Any] = {**SECTIONS, "layout": "half", "base": 10000.0, **NORM, "eps": 2.0**-10}
SIZES: dict[str, Any] = {"E": 1}
OTHER_VALUES: dict[str, Any] = {"eps": 0.5}
WITH_OPTION = {"arrangement=interleaved": {"sections": [2, 2, 1]}}
AXES = (4, 2)
NORM_FIRST = {"base": 10_000.0, "precedence": "norm_first"}
KERNEL: tuple[dict[str, Any], ...] = (
    {"arrangement": "interleaved", "sections": [3, 2, 1], "layout": "half", "eps": 1e-6, "weight_offset": 0, **NORM_FIRST},
    {"arrangement": "chunked", "layout": "interleaved", "eps": 1e-6, "weight_offset": 1, **NORM_FIRST},
)

QWEN3: dict[str, Any] = {"sections": [24, 20, 20], "arrangement": "interleaved", "base": 5e6}
QWEN35: dict[str, Any] = {"sections": [11, 11, 10], "arrangement": "interleaved", "base": 1e7}
HUNYUAN: dict[str, Any] = {"sections": [16] * 4, "arrangement": "chunked", "precedence": "rope_first", "eps": 1e-5}

_named = cases_of(OP)


def _case(
    name: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8,
    weight: tuple[int, ...] | None = None, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of an x of `shape`; a weight of another shape than x's channels if given."""
    inputs = {
        "x": reals(f"placed {name} x", *shape, bits=bits),
        "weight": floats(*(weight or shape[-1:]), seed=seed_of(f"placed {name} weight"), bits=bits) / 2,
        "positions": np.asarray(positions),
    }
    return _named(name, {"layout": "half", "base": 10000.0, **NORM, **params}, inputs, comment, kind=kind, tier=tier)


def _arranged(arrangement: str) -> tuple[Case, ...]:
    """Return the cases that every arrangement has."""
    group = arrangement.replace("_", "-")
    small: dict[str, Any] = {"sections": ARRANGED[arrangement], "arrangement": arrangement}
    first = "smoke" if arrangement == "interleaved" else "core"
    return (
        _case(f"{group}/small", (9, 12), PROMPT, tier=first, **small),
        _case(f"{group}/interleaved", (2, 6, 12), VIDEO, bits=24, layout="interleaved", weight_offset=1, **small),
        _case(f"{group}/mixed", (6, 12), VIDEO, bits=24, layout="interleaved_to_half", base=5e5, **small),
        _case(f"{group}/partial", (9, 17), PROMPT, bits=24, **small),
        _case(f"{group}/text", (3, 12), ((3, 9, 257),) * 3, "as norm_rope", **small),
    )


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    three: dict[str, Any] = {"sections": [2, 2, 2], "arrangement": "chunked"}
    return (
        *(case for arrangement in ARRANGED for case in _arranged(arrangement)),
        _case("models/qwen3-vl", (9, 1, 128), np.asarray(PROMPT)[:, :, None], "(T, H, D)", **QWEN3),
        _case("models/qwen3.5", (6, 256), VIDEO, "64 of 256 channels rotate", weight_offset=1, **QWEN35),
        _case("models/hunyuan-vl", (9, 128), (*PROMPT, PROMPT[1][::-1]), **HUNYUAN),
        _case("models/image", (6, 20), ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2)), sections=[5, 5],
              arrangement="chunked", precedence="rope_first"),
        _case("heads/one", (1, 9, 12), PROMPT, **three),
        _case("heads/one-of-a-row", (3, 1, 6, 12), VIDEO, layout="interleaved", precedence="rope_first", **three),
        _case("eps/large", (9, 12), PROMPT, eps=0.125, **three),
        _case("refused/sections", (9, 12), PROMPT, "seven pairs of twelve lanes", kind="reject",
              sections=[2, 3, 2], arrangement="chunked"),
        _case("refused/positions", (9, 12), PROMPT[0], "one axis of positions for three sections", kind="reject", **three),
        _case("refused/weight", (9, 17), PROMPT, "a weight for the channels that rotate alone", weight=(12,),
              kind="reject", **three),
        _case("refused/order", (9, 12), PROMPT, "no such order", precedence="norm", kind="reject", **three),
        _case("refused/eps", (9, 12), PROMPT, "above 0", eps=0.0, kind="reject", **three),
        *(
            form_case(OP, placed.name,
                 {"x": reals(OP + placed.name, *placed.x), "weight": floats(placed.x[-1], seed=seed_of(OP + placed.name)) / 2,
                  "positions": placed.positions}, USUAL, placed.comment, placed.form)
            for placed in placed_forms()
        ),
        gradient(OP, "norm-first", {"x": reals("norm-mrope", 3, 10), "weight": floats(10, seed=3) / 2,
                 "positions": TRIPLES}, {"out": (3, 10)}, **{**USUAL, "eps": 1e-6}),
        gradient(OP, "rope-first", {"x": reals("norm-mrope-last", 2, 3, 9), "weight": floats(9, seed=4) / 2,
                 "positions": TRIPLES}, {"out": (2, 3, 9)}, sections=[2, 1, 1], arrangement="interleaved", layout="interleaved",
                 base=500.0, eps=1e-6, weight_offset=1, precedence="rope_first"),
    )  # fmt: skip
