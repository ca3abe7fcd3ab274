"""Attention, whose logits posref holds: it is a reference, and not a fused kernel."""

import torch

from posref import attention

from .lines import Line, Work


def of_heads(small: bool, dtype: torch.dtype) -> Work:
    """Attend from 1024 tokens to as many, in 4 heads of 64 channels."""
    q, k, v = torch.randn(3, 1, 4, 32 if small else 1024, 64).to(dtype)
    return Work(lambda: attention(q, k, v), lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))


def held(small: bool) -> Work:
    """Do so for its memory. The peer holds the logits once, in float32."""
    tokens = 32 if small else 1024
    return Work(of_heads(small, torch.float32).ours, lambda: torch.ones(1, 4, tokens, tokens))


LINES = (
    Line("attention 4 x 1024 x 64 float32", "PyTorch's SDPA", 1.8, lambda s: of_heads(s, torch.float32)),
    Line("attention 4 x 1024 x 64 bfloat16", "PyTorch's SDPA", 1.5, lambda s: of_heads(s, torch.bfloat16)),
    Line("attention 4 x 1024 x 64 float32, memory", "float32 logits, once", None, held, memory=1.5),
)
