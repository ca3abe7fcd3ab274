"""
Liger-Kernel: its Triton kernels of RoPE, Llama 4's RoPE and M-RoPE, forward and backward, run on a CPU by Triton's interpreter.

They have no tables: RoPE's are given, and M-RoPE's have a row of transformers' LlamaRotaryEmbedding for each axis.
"""

from typing import Any

import torch
from torch import Tensor

from ._triton import CLAIMS, DTYPES  # before Triton is imported

# isort: split
from liger_kernel.ops import LigerLlama4RopeFunction, LigerQwen2VLMRopeFunction
from liger_kernel.ops.rope import LigerRopeFunction
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posref.scaling import Scaling

from ._shared import lacks, of_both

PACKAGE = "liger-kernel"
backend, dtypes, claims = "torch", DTYPES, CLAIMS
supports: dict[str, dict[str, Any]] = {
    "apply_rope": {
        "empty": False,
        "layout": ["half", "interleaved"],
        "inverse": [False],
        "gradient": ["x"],
        "not": [{"lanes": "trailing", "partial": True}, {"layout": "interleaved", "partial": True}],
    },
    "mrope": {
        "empty": False,
        "axes": [3],
        "arrangement": ["chunked"],
        "layout": ["half"],
        "partial": False,
        "scaling": [None],
        "inverse": [False],
    },
}


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """LigerRopeFunction in halves, Llama 4's function in neighbours, of all tokens as one sequence of several heads."""
    width = 2 * cos.shape[-1]
    partial = width != x.shape[-1]
    if layout not in ("half", "interleaved") or inverse or (partial and (lanes == "trailing" or layout == "interleaved")):
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: the leading channels in halves, or all; forwards")
    if not x.numel():
        lacks("an empty array")
    cos, sin = (torch.broadcast_to(t, (*x.shape[:-1], width // 2)).reshape(1, -1, width // 2) for t in (cos, sin))
    if layout == "half":
        tables = (torch.cat((t, t), -1) for t in (cos, sin))
        return of_both(x, lambda q, k: LigerRopeFunction.apply(q, k, *tables))
    table = torch.complex(cos.float(), sin.float())

    def llama4(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:  # tokens before heads
        q, k = LigerLlama4RopeFunction.apply(q.transpose(1, 2), k.transpose(1, 2), table)
        return q.transpose(1, 2), k.transpose(1, 2)

    return of_both(x, llama4)


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, length: int | None = None, inverse: bool = False,
) -> Tensor:  # fmt: skip
    """LigerQwen2VLMRopeFunction with tables of LlamaRotaryEmbedding, a sequence for each axis."""
    if len(sections) != 3 or arrangement != "chunked" or layout != "half" or 2 * sum(sections) != x.shape[-1] or inverse:
        lacks(f"{len(sections)} axes that are {arrangement!r}, with layout {layout!r}: three chunks of all channels")
    if scaling is not None or not x.numel():
        lacks(f"no mRoPE with {scaling!r} is asked, nor an empty array")
    config = LlamaConfig(
        hidden_size=x.shape[-1], num_attention_heads=1, rope_parameters={"rope_type": "default", "rope_theta": base}
    )
    where = torch.stack([torch.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions])
    tables = [table[:, None] for table in LlamaRotaryEmbedding(config)(x, where)]  # (3, 1, T, D)
    return of_both(x, lambda q, k: LigerQwen2VLMRopeFunction.apply(q, k, *tables, list(sections)))


# Read and run in liger-kernel 0.8.5 with triton 3.9.0 and torch 2.13.0 on a CPU; paths in liger_kernel/ops.
NOTES = (
    "The kernels run in Triton's interpreter (TRITON_INTERPRET=1), not compiled. It truncates to bfloat16, so bfloat16 is not "
    "asked.",
    "Values take the dtype of the tables (rope.py:83, qwen2vl_mrope.py:74): in half precision every product is rounded if the "
    "tables are in the dtype of the queries.",
    "Queries and keys are overwritten where they arrive as the transpose of contiguous (B, T, H, D) (rope.py:153-198). So are "
    "their gradients (rope.py:216-262): a term that was added to the rotated queries, and has the same gradient, can get the "
    "rotated one.",
    "apply_liger_kernel_to_qwen2_vl replaces apply_multimodal_rotary_pos_emb (transformers/monkey_patch.py:2058), which "
    "transformers 5.23 does not have: its module gives one table for all axes. The kernel reads a table for each axis.",
    "RMSNorm is not asked: its kernel calls a method of eps (rms_norm.py:125), which the interpreter passes as a Python float.",
)
