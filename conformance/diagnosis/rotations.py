"""The gradient of a rotation as a rotation: every known mistake in a forward pass explains the backward pass too."""

from __future__ import annotations

from dataclasses import replace

from posref.spec import REGISTRY

from ..model import Call, LoadedCase


def as_rotation(case: LoadedCase) -> LoadedCase | None:
    """Return the rotation of the cotangent that a case's gradient of x is; None if it has none."""
    arrays, options = set(REGISTRY[case.op].arrays), set(REGISTRY[case.op].domains)
    by_positions = arrays == {"x", "positions"} and {"layout", "base", "rotary_dim", "inverse"} <= options
    call = case.calls[0]
    if case.kind != "vjp" or not (by_positions or arrays == {"x", "cos", "sin"}) or "x" not in call.expected:
        return None
    turned = Call(
        {**call.params, "inverse": not call.params.get("inverse", False)},
        {**call.inputs, "x": call.cotangents["out"]},
        {"out": call.expected["x"]},
        {},
        {accuracy: {"out": width["x"]} for accuracy, width in call.widths.items() if "x" in width},
        call.cotangents,
    )
    return replace(case, calls=(turned,))
