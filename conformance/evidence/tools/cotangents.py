"""
Cases of kind vjp: gradients of an operation that takes arrays of reals.

They are small, since the second witness calls the operation twice for every number in which it differentiates.
"""

from typing import Any

from ...model import Case, Flag
from .forms import FLAGS as FORMS
from .numbers import reals

FLAGS = {
    "vjp-sign": Flag("the cotangent rotated forwards, or by another pair's sine", "PaddlePaddle #74716"),
    "vjp-layout": Flag("the cotangent read or written in another layout than the forward's", "PaddlePaddle #74716"),
    "vjp-tail": Flag("a gradient of the channels that do not rotate that is not their cotangent", "apex #1750"),
    "vjp-lanes": Flag("the cotangent of the first channels rotated where the last ones rotate"),
    "vjp-gain": Flag("a factor dropped, or applied twice, on the way back"),
    "vjp-inverse": Flag("the gradient of the inverse rotated like that of the forward"),
    "vjp-offsets": Flag("row 0's positions used for every row on the way back", "Liger-Kernel #477"),
    "vjp-broadcast": Flag("a gradient not summed over the axes along which its input repeats", "flash-sparse-attention #194"),
    "vjp-repeat": Flag("a row that is read several times keeps its last cotangent, not their sum", "tt-metal #6232"),
    "vjp-unused": Flag("a gradient other than 0 where an input has no influence"),
    "vjp-angle": Flag("the derivative of an angle without its position, or with cosine and sine exchanged"),
    "vjp-clip": Flag("the gradient of clipped distances lost, or in another row"),
    "vjp-term": Flag("one of two terms left out on the way back"),
    "vjp-scale": Flag("the logits' scale dropped, or applied twice, on the way back"),
    "vjp-heads": Flag("gradients of shared key heads not summed over their block", "levanter #449"),
    "vjp-softmax": Flag("the softmax's own term left out: P dP for P (dP - sum P dP)", "AiDotNet.Tensors #49"),
    "vjp-mask": Flag("gradients through keys that may not be attended to"),
    "vjp-sinks": Flag(
        "no gradient of the sinks, or one that takes no part in the softmax's own term", "TransformerEngine #2541"
    ),
    "vjp-mask-row": Flag("NaN in the gradients of all where one row may attend to nothing", "PyTorch #41508"),
    "vjp-bits": Flag("24-bit inputs or cotangents narrowed on the way back"),
}


def gradient(
    op: str, name: str, flags: str, inputs: dict[str, Any], cotangents: dict[str, tuple[int, ...]], comment: str = "", *,
    wrt: str = "", bits: int = 8, **params: Any,
) -> Case:  # fmt: skip
    """Return a case with cotangents of these shapes (negative sizes repeat one row); flags are this module's, or of forms."""
    flagged = tuple(flag if flag in FORMS else f"vjp-{flag}" for flag in flags.split())
    given = {out: reals(f"{op}{name}ct{out}", *shape, bits=bits) / 2 for out, shape in cotangents.items()}
    return Case(
        f"{op}/gradient/{name}", params, inputs, flagged, comment, "vjp", cotangents=given, wrt=tuple(wrt.split())
    )  # fmt: skip
