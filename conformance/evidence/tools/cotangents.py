"""
Cases of kind vjp: gradients of an operation that takes arrays of reals.

They are small, since the second witness calls the operation twice for every number in which it differentiates.
"""

from typing import Any

from ...model import Case
from .numbers import reals


def gradient(
    op: str, name: str, inputs: dict[str, Any], cotangents: dict[str, tuple[int, ...]], comment: str = "", *,
    wrt: str = "", bits: int = 8, view: str = "", **params: Any,
) -> Case:  # fmt: skip
    """Return a case with cotangents of these shapes (negative sizes repeat one row)."""
    drawn = {out: reals(f"{op}{name}ct{out}", *shape, bits=bits) / 2 for out, shape in cotangents.items()}
    return Case(f"{op}/gradient/{name}", params, inputs, comment, "vjp", cotangents=drawn, wrt=tuple(wrt.split()), form=view)
