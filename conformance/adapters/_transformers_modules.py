"""The rotary modules of transformers for the parameters of a call, and the configurations that make them."""

import functools
from typing import Any

from torch import Tensor
from transformers import LlamaConfig
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKAlpha, Proportional, YaRN

from ._shared import hf_parameters, lacks

scalings = ("Linear", "NTKAlpha", "DynamicNTK", "Llama3", "YaRN", "LongRoPE", "Proportional")

Scaling = Linear | NTKAlpha | DynamicNTK | Llama3 | YaRN | LongRoPE | Proportional | None


@functools.lru_cache(maxsize=64)
def kept_module(dim: int, base: float, scaling: Scaling) -> Any:
    """Return the rotary module for these parameters, made once, as a model has one."""
    kind = HunYuanDenseV1RotaryEmbedding if isinstance(scaling, NTKAlpha) else LlamaRotaryEmbedding
    return kind(llama_config(dim, base, scaling))


def check_length(scaling: Scaling, positions: Tensor, length: int | None) -> None:
    """Refuse a `length`: its modules see positions alone."""
    if isinstance(scaling, DynamicNTK | LongRoPE) and (not positions.numel() or length != float(positions.max()) + 1):
        lacks("the length of dynamic NTK and of LongRoPE is always the largest position of the call plus 1")


def llama_config(dim: int, base: float, scaling: Scaling) -> LlamaConfig:
    """Return the configuration of a Llama with one head of `dim` lanes."""
    parameters, original = hf_parameters(scaling)
    return LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        head_dim=dim,
        max_position_embeddings=original,
        rope_parameters={"rope_theta": base, **parameters},
    )
