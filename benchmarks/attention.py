"""Attention, whose logits posref holds: it is a reference, and not a fused kernel."""

import torch

from posref import attention

from .lines import Line, Work


def of_heads(small: bool, dtype: torch.dtype, *, biased: bool = False) -> Work:
    """Attend from 1024 tokens to as many, in 4 heads of 64 channels."""
    tokens = 32 if small else 1024
    q, k, v = torch.randn(3, 1, 4, tokens, 64).to(dtype)
    bias = torch.randn(1, 4, tokens, tokens).to(dtype) if biased else None
    fused = torch.nn.functional.scaled_dot_product_attention
    return Work(lambda: attention(q, k, v, bias=bias), lambda: fused(q, k, v, attn_mask=bias))


def held(small: bool) -> Work:
    """Do so for its memory. The peer holds the logits once, in float32."""
    tokens = 32 if small else 1024
    return Work(of_heads(small, torch.float32).ours, lambda: torch.ones(1, 4, tokens, tokens))


SDPA = "PyTorch's SDPA"
WHOLE = (
    "Logits in blocks of queries, which the cache holds. Products of blocks have other bits than the product of all, in "
    "many calls of NumPy and some of PyTorch."
)
LINES = (
    Line("attention 4 x 1024 x 64 float32", SDPA, 1.8, lambda s: of_heads(s, torch.float32), cost=WHOLE),
    Line("attention 4 x 1024 x 64 bfloat16", SDPA, 1.5, lambda s: of_heads(s, torch.bfloat16), cost=WHOLE),
    Line(
        "attention with bias, 4 x 1024 x 64 float32", SDPA, 1.5, lambda s: of_heads(s, torch.float32, biased=True), cost=WHOLE
    ),
    Line(
        "attention with bias, 4 x 1024 x 64 bfloat16", SDPA, 1.5, lambda s: of_heads(s, torch.bfloat16, biased=True), cost=WHOLE
    ),
    Line("attention 4 x 1024 x 64 float32, memory", "float32 logits, once", None, held, memory=1.5),
)
