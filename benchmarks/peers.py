"""What users call instead of posref: released libraries as they run, and the formulas as people write them."""

import importlib
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posref.conformance.adapters._shared import only_package

from .lines import Missing


def module(name: str) -> Any:
    """Return a module of a peer. timm's are imported without the models around them, which need torchvision."""
    try:
        return _without_models(name) if name.startswith("timm.") else importlib.import_module(name)
    except Exception as error:
        package = name.split(".", maxsplit=1)[0]
        lacks = isinstance(error, ModuleNotFoundError) and error.name in (package, name)
        raise Missing(f"{package} is not installed" if lacks else f"{package}: {str(error).splitlines()[0]}") from error


def _without_models(name: str) -> Any:
    """Return a module whose package is a stub, and forget the stub: other libraries ask whether timm is installed."""
    result, package = only_package(name), name.split(".", maxsplit=1)[0]
    for other in [other for other in sys.modules if other.split(".", maxsplit=1)[0] == package]:
        del sys.modules[other]
    return result


def llama(heads: int, width: int, scaling: dict[str, Any] | None = None) -> tuple[Any, Any]:
    """Return transformers' rotary module of Llama, and the function that applies its tables."""
    modeling = module("transformers.models.llama.modeling_llama")
    config = module("transformers").LlamaConfig(
        hidden_size=heads * width,
        num_attention_heads=heads,
        max_position_embeddings=16_384,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, **(scaling or {})},
    )
    return modeling.LlamaRotaryEmbedding(config), modeling.apply_rotary_pos_emb


def gpt_neox(heads: int, width: int, part: float) -> tuple[Any, Any]:
    """Return transformers' rotary module of GPT-NeoX, which rotates a part of the channels, and the function beside it."""
    modeling = module("transformers.models.gpt_neox.modeling_gpt_neox")
    config = module("transformers").GPTNeoXConfig(
        hidden_size=heads * width,
        num_attention_heads=heads,
        max_position_embeddings=16_384,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": part},
    )
    return modeling.GPTNeoXRotaryEmbedding(config), modeling.apply_rotary_pos_emb


def t5(heads: int) -> Any:
    """Return transformers' attention of T5, whose bias has 32 buckets, without gradients."""
    config = module("transformers").T5Config(d_model=8 * heads, d_kv=8, num_heads=heads)
    layer = module("transformers.models.t5.modeling_t5").T5Attention(config, has_relative_attention_bias=True)
    return layer.requires_grad_(False)


def naive_table(positions: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of angles in float32."""
    inv_freq = 1.0 / 10_000.0 ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = positions[:, None].float() * inv_freq
    return angles.cos(), angles.sin()


def naive_table_numpy(positions: Any, width: int) -> tuple[Any, Any]:
    """Return cosines and sines of angles in float32."""
    inv_freq = np.float32(1.0) / np.float32(10_000.0) ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width))
    angles = positions[:, None].astype(np.float32) * inv_freq
    return np.cos(angles), np.sin(angles)


def naive_sinusoidal(positions: Tensor, dim: int) -> Tensor:
    """Return sines in even channels and cosines in odd ones, as PyTorch's tutorial on transformers has it."""
    div_term = torch.exp(torch.arange(0, dim, 2) * (-np.log(10_000.0) / dim))
    result = torch.zeros(len(positions), dim)
    result[:, 0::2] = torch.sin(positions[:, None] * div_term)
    result[:, 1::2] = torch.cos(positions[:, None] * div_term)
    return result


def naive_alibi(q: Tensor, k: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """Return minus slope times distance."""
    slopes = (2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)).to(dtype)
    return -slopes[:, None, None] * (q[:, None] - k[None, :]).abs().to(dtype)
