"""The rotary modules of transformers for the parameters of a call, and the configurations that make them."""

import functools
import math
from typing import Any

from torch import Tensor
from transformers import LlamaConfig
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKAlpha, Proportional, YaRN

from ..errors import Unsupported
from ._shared import lacks

scalings = ("Linear", "NTKAlpha", "DynamicNTK", "Llama3", "YaRN", "LongRoPE", "Proportional")

Scaling = Linear | NTKAlpha | DynamicNTK | Llama3 | YaRN | LongRoPE | Proportional | None


@functools.lru_cache(maxsize=64)
def kept_module(dim: int, base: float, scaling: Scaling) -> Any:
    """Return the rotary module for these parameters, made once, as a model has one."""
    kind = HunYuanDenseV1RotaryEmbedding if isinstance(scaling, NTKAlpha) else LlamaRotaryEmbedding
    return kind(llama_config(dim, base, scaling))


def check_length(scaling: Scaling, positions: Tensor, length: int | None) -> None:
    """Refuse a `length` that its modules cannot be told: they see positions alone."""
    if isinstance(scaling, DynamicNTK | LongRoPE) and (not positions.numel() or length != float(positions.max()) + 1):
        lacks("the length of dynamic NTK and of LongRoPE is always the largest position of the call plus 1")


def llama_config(dim: int, base: float, scaling: Scaling) -> LlamaConfig:
    """Return the configuration of a Llama with one head of `dim` lanes."""
    parameters, original = parameters_of(scaling)
    return LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        head_dim=dim,
        max_position_embeddings=original,
        rope_parameters={"rope_theta": base, **parameters},
    )


def parameters_of(scaling: Scaling) -> tuple[dict[str, Any], int]:
    """Return the rope parameters that a record of posref.scaling means, and max_position_embeddings."""
    match scaling:
        case None:
            return {"rope_type": "default"}, 2048
        case Linear(factor):
            return {"rope_type": "linear", "factor": factor}, 2048
        case DynamicNTK(factor, original):
            return {"rope_type": "dynamic", "factor": factor}, original
        case NTKAlpha(alpha):
            return {"rope_type": "dynamic", "alpha": alpha, "factor": 1.0}, 2048
        case Proportional(rotated, factor):
            return {"rope_type": "proportional", "partial_rotary_factor": rotated, "factor": factor}, 2048
        case LongRoPE(short, long, original) if scaling.short_mscale is None and scaling.long_mscale is None:
            given = {name: getattr(scaling, name) for name in ("factor", "attention_factor")}
            lists = {"short_factor": list(short), "long_factor": list(long), "original_max_position_embeddings": original}
            parameters = {name: value for name, value in given.items() if value is not None}
            return {"rope_type": "longrope", **lists, **parameters}, scaling.max_length or original
        case Llama3() | YaRN():
            given = {name: value for name, value in vars(scaling).items() if value is not None}
            original = given.pop("original_length")
            kind = "yarn" if isinstance(scaling, YaRN) else "llama3"
            parameters = {"rope_type": kind, "original_max_position_embeddings": original, **given}
            return parameters, math.ceil(original * max(1, scaling.factor))
        case _:
            raise Unsupported(repr(scaling))
