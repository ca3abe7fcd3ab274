"""
The gradient of a rotation as a rotation of its own: that of the cotangent, the other way.

So every deviation of a forward pass is a hypothesis about a backward pass too, and a case of kind vjp can be looked at, and
measured, with the same means.
"""

from __future__ import annotations

from dataclasses import replace

from posref.spec import REGISTRY

from ..model import Call, LoadedCase
from ..suite import tensors
from .phases import OPERATIONS

ROTATIONS = tuple(op for op in OPERATIONS if "inverse" in REGISTRY[op].domains)


def as_rotation(case: LoadedCase) -> LoadedCase | None:
    """Return the rotation of the cotangent that a case's gradient of x is; None if it has none."""
    call = case.calls[0]
    if case.kind != "vjp" or case.op not in ROTATIONS or "x" not in call.expected:
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


def as_output(gradients: tensors.Tensors) -> tensors.Tensors:
    """Return the gradient of x as the output of that rotation."""
    return {"out": gradients["x"]}
