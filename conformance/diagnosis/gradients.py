"""Reads gradients: of a rotation as another rotation, with the known mistakes that explain it, and of a copy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posref.spec import REGISTRY

from ..model import Answer, Call, LoadedCase

CLOSE = 2.0**-7  # a cotangent as half precision has it


def is_of_copy(answer: Answer) -> bool:
    """Return whether every number of a case's gradients is that of its cotangent, or 0: autograd saw a copy of the input."""
    cotangents = [*answer.case.calls[0].cotangents.values()]
    gradients = [*answer.outputs[0].values()] if answer.outputs else []
    if len(cotangents) != 1 or not gradients or any(gradient.shape != cotangents[0].shape for gradient in gradients):
        return False
    return all(bool(np.all((g == 0) | np.isclose(g, cotangents[0], rtol=CLOSE, atol=0))) for g in gradients)


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
