"""Attention of transformers: whole attention modules run, their projections and norms taken out."""

import functools
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, DeepseekV3Config, DeepseekV4Config, Llama4TextConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4Attention
from transformers.models.llama4.modeling_llama4 import Llama4TextAttention
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale

from ._shared import lacks
from ._transformers_modules import Scaling, kept_module


def rotated_values(
    weights: Tensor, v: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, layout: str, base: float,
    rotary_dim: int | None = None, scaling: Scaling = None, lanes: str = "leading",
) -> Tensor:  # fmt: skip
    """DeepseekV4Attention.forward, its projections and norms taken out, with these weights in place of its softmax's."""
    dim = v.shape[-1] if rotary_dim is None else rotary_dim
    if layout != "interleaved" or (lanes != "trailing" and dim < v.shape[-1]):
        lacks("DeepSeek-V4 rotates trailing channels, interleaved")
    if not weights.numel() or not v.numel():
        lacks("its module has a query and a key at least")
    (*lead, queries, keys), width = weights.shape, v.shape[-1]
    heads, groups = lead[-1] if lead else 1, v.shape[-3] if v.ndim > 2 else 1
    attention = weights.reshape(-1, heads // groups, queries, keys)  # its one key head is a row of the batch
    values = v.reshape(-1, keys, width)
    rows = [_of_rows(p, lead[:-1]).repeat_interleave(groups, 0) for p in (q_positions, k_positions)]
    places = torch.cat(rows, -1)  # all tokens in one sequence: queries, then keys
    cos, sin = kept_module(dim, base, scaling)(values, places)
    table = {"main": (cos[..., : dim // 2], sin[..., : dim // 2])}
    tokens = torch.nn.functional.pad(values, (0, 0, queries, 0))
    attention = torch.nn.functional.pad(attention, (queries, 0, 0, keys))
    out, _ = _attention_v4(heads // groups, width)(tokens, table, places, None, given=attention)
    out = out[:, :queries].unflatten(-1, (-1, width)).transpose(1, 2)
    return out.reshape(*lead, queries, width)


def mla_logits(
    q_nope: Tensor, q_rope: Tensor, k_nope: Tensor, k_rope: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, layout: str,
    base: float, scaling: Scaling = None, scale: float | None = None,
) -> Tensor:  # fmt: skip
    """DeepseekV3Attention.forward, its projections and norms taken out, up to its softmax; a `scale` replaces its own."""
    (*lead, heads, queries, content), (keys, width) = q_nope.shape, k_rope.shape[-2:]
    if not q_nope.numel() or not keys:
        lacks("its module has a query, a key and a lane of each kind at least")
    q = torch.cat((q_nope, q_rope), -1).reshape(-1, heads, queries, content + width).transpose(1, 2).flatten(2)
    k = k_nope.reshape(-1, heads, keys, content).transpose(1, 2).flatten(2)
    k = torch.cat((k, k_rope.reshape(-1, keys, width)), -1)
    pad = torch.nn.functional.pad  # all tokens in one sequence: queries, then keys
    tokens = torch.cat((pad(q, (0, 0, 0, keys)), pad(k, (0, 0, queries, 0))), -1)
    places = torch.cat([_of_rows(p, lead) for p in (q_positions, k_positions)], -1)
    attention = _attention_v3(heads, content, width, layout != "half")
    attention.scaling = attention.qk_head_dim**-0.5 if scale is None else scale
    _, logits = attention(tokens, kept_module(width, base, scaling)(tokens, places), None)
    return logits[..., :queries, queries:].reshape(*lead, heads, queries, keys)


def attention_temperature(
    positions: Tensor, /, *, form: str, beta: float, original_length: int, offset: int, dtype: torch.dtype | None = None
) -> Tensor:
    """Ministral 3's get_llama_4_attn_scale (offset 0); or the queries of Llama4TextAttention, which were ones (1)."""
    if form != "steps" or offset > 1:
        lacks(f"no form {form!r} with offset {offset} as a function of its own")
    if positions.numel() and int(positions.min()) < 0:
        lacks("positions are natural numbers")
    flat = positions.reshape(1, -1)
    scale = _llama_4_queries(flat[0], beta, original_length) if offset else get_llama_4_attn_scale(flat, beta, original_length)
    return scale.reshape(positions.shape).to(dtype or torch.get_default_dtype())


def _llama_4_queries(positions: Tensor, beta: float, length: int) -> Tensor:
    """Return the queries that a layer without RoPE hands to its attention, one call for each position."""
    config = Llama4TextConfig(
        hidden_size=2, num_attention_heads=1, num_key_value_heads=1, head_dim=2, num_hidden_layers=1, attn_scale=beta,
        floor_scale=length, no_rope_layers=[0],
    )  # fmt: skip
    AttentionInterface.register("posref_queries", lambda module, query, *rest, **options: (query.transpose(1, 2), None))
    config._attn_implementation = "posref_queries"
    layer = Llama4TextAttention(config, 0)
    for projection in (layer.q_proj, layer.o_proj):
        projection.weight.data = torch.eye(2)

    def of(position: Tensor) -> Tensor:
        cache = SimpleNamespace(
            get_seq_length=lambda layer: position,
            update=lambda key, value, layer, **options: (key, value),  # transformers 5.24 also passes kwargs
        )
        return layer(torch.ones(1, 1, 2), None, None, cache)[0][0, 0, 0]

    return torch.stack([of(position) for position in positions]) if len(positions) else positions.to(torch.float32)


def _of_rows(positions: Tensor, lead: Any) -> Tensor:
    """Return positions as (rows of the batch, tokens), where all heads have the same."""
    if positions.ndim > len(lead) + 1 and positions.shape[-2] != 1:
        lacks("all heads of a token have one position")
    if positions.ndim > len(lead) + 1:
        positions = positions[..., 0, :]
    return torch.broadcast_to(positions, (*lead, positions.shape[-1])).reshape(-1, positions.shape[-1])


def _part(start: int = 0, end: int | None = None, times: int = 1) -> nn.Module:
    """Return a module that gives some of the channels, over and over: in the place of a projection."""
    part = nn.Identity()
    part.forward = lambda x: torch.cat([x[..., start:end]] * times, -1)
    return part


def _mixed(module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, *, given: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """Return the values mixed by weights that are given, where a model has its softmax."""
    return (given @ v).transpose(1, 2), given


def _stopped(
    module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, *, scaling: float, **options: Any
) -> tuple[Tensor, Tensor]:
    """Return the logits, where a model has its softmax."""
    return v.transpose(1, 2), q @ k.transpose(-1, -2) * scaling


ALL_ATTENTION_FUNCTIONS.register("posref_mixed", _mixed)

ALL_ATTENTION_FUNCTIONS.register("posref_stopped", _stopped)


@functools.lru_cache(maxsize=64)
def _attention_v4(heads: int, width: int) -> DeepseekV4Attention:
    """Return the attention of a sliding layer, of whose forward only rotations and the mixing are left."""
    config = DeepseekV4Config(
        hidden_size=width, num_attention_heads=heads, head_dim=width, num_hidden_layers=1, layer_types=["sliding_attention"],
        q_lora_rank=1, o_groups=1, o_lora_rank=1,
    )  # fmt: skip
    config._attn_implementation = "posref_mixed"
    attention = DeepseekV4Attention(config, 0)
    attention.q_b_proj = _part(times=heads)
    for name in ("q_a_proj", "q_a_norm", "q_b_norm", "kv_proj", "kv_norm", "o_a_proj", "o_b_proj"):
        setattr(attention, name, nn.Identity())
    return attention


@functools.lru_cache(maxsize=64)
def _attention_v3(heads: int, content: int, width: int, interleave: bool) -> DeepseekV3Attention:
    """Return the attention, of whose forward only rotations and the putting together of channels are left."""
    config = DeepseekV3Config(
        hidden_size=1, num_attention_heads=heads, num_key_value_heads=heads, num_hidden_layers=1, q_lora_rank=None,
        kv_lora_rank=heads * content, qk_rope_head_dim=width, qk_nope_head_dim=content, v_head_dim=1,
        rope_interleave=interleave,
    )  # fmt: skip
    config._attn_implementation = "posref_stopped"
    attention = DeepseekV3Attention(config, 0)
    attention.v_head_dim = 0
    whole = heads * (content + width)
    attention.q_proj, attention.kv_a_proj_with_mqa = _part(end=whole), _part(start=whole)
    attention.kv_a_layernorm = attention.kv_b_proj = attention.o_proj = nn.Identity()
    return attention
