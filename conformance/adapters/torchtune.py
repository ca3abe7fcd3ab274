"""torchtune: its rotary modules of Llama 2, Llama 3.1 and Phi-3, with the positions as input_pos."""

import torch
from torch import Tensor
from torchtune.models.llama3_1 import Llama3ScaledRoPE
from torchtune.models.phi3 import Phi3RotaryPositionalEmbeddings
from torchtune.modules import RotaryPositionalEmbeddings

from posref.scaling import Llama3, Scaling

from ._shared import lacks

PACKAGE = "torchtune"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT = 1 << 26  # elements of a table of which a few rows are looked up


def rope(x: Tensor, positions: Tensor, /, *, layout: str, base: float, scaling: Scaling | None = None) -> Tensor:
    """The module of a model with that layout, on one sequence of one head whose cache reaches the largest position."""
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    if where.is_floating_point() or where.numel() == 0 or int(where.min()) < 0:
        lacks("the cache has rows only for integers from 0 on")
    rows, dim = int(where.max()) + 1, x.shape[-1]
    if rows * dim > LIMIT:
        lacks(f"a cache of {rows} rows is too large here")
    match scaling, layout:
        case None, "interleaved":
            module = RotaryPositionalEmbeddings(dim, rows, base)
        case None, "half":
            module = Phi3RotaryPositionalEmbeddings(dim, rows, base)
        case Llama3(factor, original, low, high), "interleaved":
            module = Llama3ScaledRoPE(dim, rows, base, factor, low, high, original)
        case _:
            lacks(f"no {scaling!r} with layout {layout!r}")
    return module(x.reshape(1, -1, 1, dim), input_pos=where[None]).reshape(x.shape)


# Read and run in torchtune 0.6.1 with torch 2.13.0 and torchao 0.9.0 on a CPU.
NOTES = (
    "The modules cast queries to float32 (modules/position_embeddings.py:102), Phi-3's by promotion in the product "
    "(models/phi3/_position_embeddings.py:118), and round once.",
)
