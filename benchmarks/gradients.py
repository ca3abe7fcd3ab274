"""Forward and backward of a rotation."""

from typing import Any

import torch

from posref import apply_rope, rope

from . import peers
from .lines import Line, Work
from .rotation import OPTIONS, TRANSFORMERS, tables


def backwards(small: bool, dtype: torch.dtype, *, given: bool) -> Work:
    """Rotate queries and keys, and go back from cotangents. Tables are `given`, or made in each call."""
    q, k = (torch.randn(1, 32, 8 if small else 2048, 128).to(dtype).requires_grad_() for _ in "qk")
    table, rotate = peers.llama(32, 128)
    positions = torch.arange(q.shape[-2])
    cos, sin = tables(positions, 128)
    wide = table(q, positions[None])
    cotangents = tuple(torch.randn(2, *q.shape).to(dtype))

    def back(rotated: tuple[Any, Any]) -> object:
        return torch.autograd.grad(rotated, (q, k), cotangents)

    def ours() -> object:
        if given:
            return back((apply_rope(q, cos, sin, layout="half"), apply_rope(k, cos, sin, layout="half")))
        return back((rope(q, positions, **OPTIONS), rope(k, positions, **OPTIONS)))

    return Work(ours, lambda: back(rotate(q, k, *(wide if given else table(q, positions[None])))))


F32, BF16 = torch.float32, torch.bfloat16
LINES = (
    Line("rope float32, forward and backward", TRANSFORMERS, 0.6, lambda s: backwards(s, F32, given=False), memory=0.8),
    Line("rope bfloat16, forward and backward", TRANSFORMERS, 0.6, lambda s: backwards(s, BF16, given=False), memory=0.8),
    Line("apply_rope float32, forward and backward", TRANSFORMERS, 0.6, lambda s: backwards(s, F32, given=True), memory=0.8),
    Line("apply_rope bfloat16, forward and backward", TRANSFORMERS, 0.7, lambda s: backwards(s, BF16, given=True), memory=0.8),
)
