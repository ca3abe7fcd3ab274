"""
transformers, by its own code paths: the functions and modules that its models call; only shapes and names are adapted.

`rope` keeps one rotary module for each set of parameters, as a model does, so that dynamic NTK has its real memory;
`reset` forgets them. Every position is one token of one sequence to these functions, which changes no number.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, DeepseekV3Config, DeepseekV4Config, Llama4TextConfig, LlamaConfig, T5Config
from transformers.masking_utils import (
    chunked_causal_mask_function,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, apply_rotary_pos_emb_interleave
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4Attention
from transformers.models.deepseek_v4.modeling_deepseek_v4 import apply_rotary_pos_emb as apply_v4
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings
from transformers.models.ernie4_5_vl_moe import Ernie4_5_VLMoeTextConfig
from transformers.models.ernie4_5_vl_moe import modeling_ernie4_5_vl_moe as ernie
from transformers.models.gemma4 import Gemma4VisionConfig
from transformers.models.gemma4 import modeling_gemma4 as gemma4
from transformers.models.glm.modeling_glm import apply_rotary_pos_emb as apply_glm
from transformers.models.glm4v import Glm4vTextConfig
from transformers.models.glm4v import modeling_glm4v as glm4v
from transformers.models.glm4v_moe import Glm4vMoeTextConfig
from transformers.models.glm4v_moe import modeling_glm4v_moe as glm4v_moe
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as apply_neox
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as apply_gptj
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.kimi_k25 import Kimi_K25VisionConfig
from transformers.models.kimi_k25 import modeling_kimi_k25 as kimi
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as apply_llama
from transformers.models.llama4.modeling_llama4 import Llama4TextAttention
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.nanochat.modeling_nanochat import apply_rotary_pos_emb as apply_nanochat
from transformers.models.pixtral import PixtralVisionConfig
from transformers.models.pixtral import modeling_pixtral as pixtral
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen3_5
from transformers.models.sam3.configuration_sam3 import Sam3ViTConfig
from transformers.models.sam3.modeling_sam3 import Sam3ViTRotaryEmbedding
from transformers.models.sam3.modeling_sam3 import apply_rotary_pos_emb_2d as apply_sam3
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.whisper.modeling_whisper import sinusoids
from transformers.utils import logging

from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKAlpha, Proportional, YaRN

from ..errors import Unsupported
from ._shared import lacks

logging.set_verbosity_error()  # it warns about configurations that are asked on purpose

PACKAGE = "transformers"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")  # angles are float32 products whatever the dtype
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

scalings = ("Linear", "NTKAlpha", "DynamicNTK", "Llama3", "YaRN", "LongRoPE", "Proportional")
Scaling = Linear | NTKAlpha | DynamicNTK | Llama3 | YaRN | LongRoPE | Proportional | None
LIMIT = 1 << 18  # rows of a table that is built to look up a few


def rope_frequencies(dim: int, /, *, base: float, scaling: Scaling = None, length: int | None = None) -> tuple[Tensor, float]:
    """ROPE_INIT_FUNCTIONS, or the Llama module's own default, or HunYuan's own for an alpha."""
    config = _config(dim, base, scaling)
    kind = config.rope_parameters["rope_type"]
    if isinstance(scaling, NTKAlpha):
        inv_freq, factor = HunYuanDenseV1RotaryEmbedding.compute_ntk_alpha_rope_parameters(config)
        return inv_freq, factor
    default = LlamaRotaryEmbedding.compute_default_rope_parameters
    inv_freq, factor = default(config) if kind == "default" else ROPE_INIT_FUNCTIONS[kind](config, seq_len=length)
    return inv_freq, factor


def rope_table(
    positions: Tensor, inv_freq: Tensor, /, *, attention_factor: float = 1.0, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """LlamaRotaryEmbedding.forward with these frequencies, and the first half of its columns, which come twice."""
    pairs = inv_freq.shape[0]
    module = LlamaRotaryEmbedding(_config(2 * pairs, 10_000.0, None))
    module.inv_freq, module.attention_scaling = inv_freq.to(torch.float32), attention_factor
    like = torch.empty((), dtype=dtype or torch.get_default_dtype())
    cos, sin = module(like, positions)
    return cos[..., :pairs], sin[..., :pairs]


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """The function of a model with that layout, on tables in the dtype of `x`, as LlamaRotaryEmbedding makes them."""
    rows, pairs = x.shape[:-1], cos.shape[-1]
    cos, sin = (torch.broadcast_to(table, (*rows, pairs)).reshape(1, -1, pairs).to(x.dtype) for table in (cos, sin))
    return _rotate(x, torch.cat((cos, cos), -1), torch.cat((sin, sin), -1), layout, lanes, inverse)


def rope(
    x: Tensor,
    positions: Tensor,
    /,
    *,
    layout: str,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling = None,
    length: int | None = None,
    lanes: str = "leading",
    inverse: bool = False,
) -> Tensor:
    """LlamaRotaryEmbedding, one for each set of parameters and kept, then `apply_rope`'s functions."""
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    _check_length(scaling, positions, length)
    cos, sin = _module(dim, base, scaling)(x, torch.broadcast_to(positions, x.shape[:-1]).reshape(1, -1))
    return _rotate(x, cos, sin, layout, lanes, inverse)


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling = None, length: int | None = None,
) -> Tensor:  # fmt: skip
    """The rotary module and the apply function of a model that arranges its axes so; see `AXES`."""
    if (arrangement, layout) not in AXES or len(sections) != 3:
        lacks(f"no model has {len(sections)} axes that are {arrangement!r}, with layout {layout!r}")
    make, kind, apply = AXES[arrangement, layout]
    dim, rows = 2 * sum(sections), x.shape[:-1]
    if arrangement == "ernie" and (scaling is not None or dim != x.shape[-1]):
        lacks("ERNIE 4.5-VL refuses scalings, and rotates the whole head")
    if isinstance(scaling, NTKAlpha):
        lacks("an alpha is HunYuan's, whose image positions are no rotation")
    _check_length(scaling, positions, length)
    listed = [*sections[1:], sections[0]] if arrangement == "ernie" else list(sections)
    parameters, original = _parameters(scaling)
    config = make(
        hidden_size=dim, num_attention_heads=1, max_position_embeddings=original,
        rope_parameters={"rope_theta": base, "partial_rotary_factor": 1.0, "mrope_section": listed, **parameters},
    )  # fmt: skip
    config.head_dim = dim
    where = torch.stack([torch.broadcast_to(axis, rows).reshape(1, -1) for axis in positions])
    flat = x.reshape(1, 1, -1, x.shape[-1])
    out, _ = apply(flat, flat, *kind(config)(x, where))
    return out.reshape(x.shape)


def axial_rope(
    x: Tensor, positions: Tensor, /, *, dims: list[int], base: float, allocation: str, arrangement: str, layout: str
) -> Tensor:
    """The rotary module and the apply function of a vision encoder that lays out its lanes so; see `VISION`."""
    if (allocation, arrangement, layout) not in VISION:
        lacks(f"no vision encoder that is asked here has {allocation!r}, {arrangement!r} and {layout!r}")
    if len(dims) != 2 or dims[0] != dims[1] or sum(dims) != x.shape[-1] or dims[0] % (4 if allocation == "shared" else 2):
        lacks("two axes share all lanes of a head evenly")
    make, kind, apply = VISION[allocation, arrangement, layout]
    lanes, rows = x.shape[-1], x.shape[:-1]
    where = torch.stack([torch.broadcast_to(axis, rows).reshape(-1) for axis in positions], -1)
    config = make(hidden_size=lanes, num_attention_heads=1, rope_parameters={"rope_type": "axial", "rope_theta": base})
    config.head_dim = lanes
    return apply(kind(config), x.reshape(-1, 1, lanes), where).reshape(x.shape)


def _qwen2_vl(module: Any, x: Tensor, where: Tensor) -> Tensor:
    return qwen2_vl.apply_rotary_pos_emb_vision(x, x, *module(x, where))[0]


def _pixtral(module: Any, x: Tensor, where: Tensor) -> Tensor:
    return pixtral.apply_rotary_pos_emb(x, x, *module(x, where))[0]


def _sam3(module: Any, x: Tensor, where: Tensor) -> Tensor:
    return apply_sam3(x.transpose(0, 1), x.transpose(0, 1), *module(x, where))[0].transpose(0, 1)


def _gemma4(module: Any, x: Tensor, where: Tensor) -> Tensor:
    return gemma4.apply_multidimensional_rope(x[None], *module(x, where[None]), where[None])[0]


def _kimi(module: Any, x: Tensor, where: Tensor) -> Tensor:
    return kimi.apply_rotary_pos_emb_vision(x, x, *module(x, where.flip(-1)))[0]  # it reverses the axes itself


# allocation, arrangement, layout: a configuration, its rotary module, and the two applied
VISION: dict[tuple[str, str, str], tuple[Any, Any, Any]] = {
    ("own", "chunked", "half"): (Qwen2VLVisionConfig, qwen2_vl.Qwen2VLVisionRotaryEmbedding, _qwen2_vl),
    ("shared", "chunked", "half"): (PixtralVisionConfig, pixtral.PixtralVisionRotaryEmbedding, _pixtral),
    ("own", "chunked", "interleaved"): (Sam3ViTConfig, Sam3ViTRotaryEmbedding, _sam3),
    ("own", "chunked", "half_by_axis"): (Gemma4VisionConfig, gemma4.Gemma4VisionRotaryEmbedding, _gemma4),
    ("own", "round_robin", "half"): (Kimi_K25VisionConfig, kimi.Kimi_K25VisionRotaryEmbedding, _kimi),
}


# arrangement, layout: a configuration, its rotary module and its apply function
AXES: dict[tuple[str, str], tuple[Any, Any, Any]] = {
    ("chunked", "half"): (Glm4vMoeTextConfig, glm4v_moe.Glm4vMoeTextRotaryEmbedding, glm4v_moe.apply_rotary_pos_emb),
    ("chunked", "interleaved"): (Glm4vTextConfig, glm4v.Glm4vTextRotaryEmbedding, glm4v.apply_rotary_pos_emb),
    ("interleaved", "half"): (Qwen3_5TextConfig, qwen3_5.Qwen3_5TextRotaryEmbedding, qwen3_5.apply_rotary_pos_emb),
    ("ernie", "interleaved"): (Ernie4_5_VLMoeTextConfig, ernie.Ernie4_5_VLMoeTextRotaryEmbedding, ernie.apply_rotary_pos_emb),
}


def rotated_values(
    weights: Tensor, v: Tensor, q_positions: Tensor, k_positions: Tensor, /, *, layout: str, base: float,
    rotary_dim: int | None = None, scaling: Scaling = None, lanes: str = "leading",
) -> Tensor:  # fmt: skip
    """DeepseekV4Attention.forward, its projections and norms taken out, with these weights in place of its softmax's."""
    dim = v.shape[-1] if rotary_dim is None else rotary_dim
    if layout != "interleaved" or (lanes != "trailing" and dim < v.shape[-1]):
        lacks("DeepSeek-V4 rotates trailing lanes, interleaved")
    if not weights.numel() or not v.numel():
        lacks("its module has a query and a key at least")
    (*lead, queries, keys), width = weights.shape, v.shape[-1]
    heads, groups = lead[-1] if lead else 1, v.shape[-3] if v.ndim > 2 else 1
    given = weights.reshape(-1, heads // groups, queries, keys)  # its one key head is a row of the batch
    values = v.reshape(-1, keys, width)
    rows = [_of_rows(p, lead[:-1]).repeat_interleave(groups, 0) for p in (q_positions, k_positions)]
    places = torch.cat(rows, -1)  # all tokens in one sequence: queries, then keys
    cos, sin = _module(dim, base, scaling)(values, places)
    table = {"main": (cos[..., : dim // 2], sin[..., : dim // 2])}
    tokens = torch.nn.functional.pad(values, (0, 0, queries, 0))
    given = torch.nn.functional.pad(given, (queries, 0, 0, keys))
    out, _ = _attention_v4(heads // groups, width)(tokens, table, places, None, given=given)
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
    _, logits = attention(tokens, _module(width, base, scaling)(tokens, places), None)
    return logits[..., :queries, queries:].reshape(*lead, heads, queries, keys)


def sinusoidal(
    positions: Tensor, dim: int, /, *, layout: str, base: float = 1e4, endpoint: bool = False, dtype: Any = None
) -> Tensor:
    """Whisper's table (endpoint), GPT-J's (sines, then cosines) or DistilBERT's (interleaved)."""
    rows = _rows(positions)
    if (layout, endpoint) == ("sin_cos", True):
        table = sinusoids(rows, dim, base)
    elif base != 10_000.0:
        lacks("without endpoint the base is fixed at 10000")
    elif (layout, endpoint) == ("sin_cos", False):
        table = create_sinusoidal_positions(rows, dim)
    elif (layout, endpoint) == ("interleaved", False) and rows * dim <= LIMIT:  # a Python loop
        table = create_sinusoidal_embeddings(rows, dim, torch.empty(rows, dim))
    else:
        lacks(f"no table of layout {layout!r} with endpoint={endpoint} and {rows} rows")
    return table[positions].to(dtype or torch.get_default_dtype())


def t5_buckets(relative_positions: Tensor, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """T5Attention._relative_position_bucket."""
    return T5Attention._relative_position_bucket(relative_positions, bidirectional, num_buckets, max_distance)


def t5_bias(
    q_positions: Tensor, k_positions: Tensor, table: Tensor, /, *, bidirectional: bool, max_distance: int = 128
) -> Tensor:
    """T5Attention.compute_bias of one query and one key, with the cache offset that gives each distance."""
    buckets, heads = table.shape
    attention = T5Attention(
        T5Config(
            d_model=heads,
            d_kv=1,
            num_heads=heads,
            is_decoder=not bidirectional,
            relative_attention_num_buckets=buckets,
            relative_attention_max_distance=max_distance,
        ),
        has_relative_attention_bias=True,
        layer_idx=0,
    )
    del attention.relative_attention_bias.weight
    attention.relative_attention_bias.weight = table  # not a Parameter, so that gradients reach the caller's table
    relative, where = torch.unique(k_positions[..., None, :] - q_positions[..., :, None], return_inverse=True)
    if not relative.numel():  # its own function has one query and one key at least
        return table.new_zeros((*where.shape[:-2], heads, *where.shape[-2:]))
    columns = [attention.compute_bias(1, 1, past_seen_tokens=-int(r))[0, :, 0, 0] for r in relative]
    return torch.movedim(torch.stack(columns, -1)[:, where], 0, -3)


def alibi_slopes(heads: int, /, *, max_bias: float = 8) -> Tensor:
    """The slopes inside build_mpt_alibi_tensor: its bias one key before the last, negated."""
    return -build_mpt_alibi_tensor(heads, 2, alibi_bias_max=max_bias)[:, 0, 0]


def alibi(q_positions: Tensor, k_positions: Tensor, /, *, heads: int, form: str, dtype: torch.dtype | None = None) -> Tensor:
    """BLOOM's build_alibi_tensor of an all-true mask, at the keys' positions."""
    if form != "key":
        lacks(f"no form {form!r}: BLOOM and MPT add one row, m*j or m*(j - last), to all queries")
    mask = torch.ones(1, _rows(k_positions), dtype=torch.int64)
    bias = build_alibi_tensor(mask, heads, dtype or torch.get_default_dtype())[:, 0]
    return torch.movedim(bias[:, k_positions], 0, -2)[..., None, :]


def sliding_window(q_positions: Tensor, k_positions: Tensor, /, *, window: int, counting: str, sides: str) -> Tensor:
    """The mask functions of masking_utils: the causal one counts the query, the one on both sides does not."""
    if (counting, sides) == ("with_query", "causal"):
        allowed = sliding_window_causal_mask_function(window)
    elif (counting, sides) == ("without_query", "both"):
        allowed = sliding_window_bidirectional_mask_function(window)
    else:
        lacks(f"no mask on {sides!r} sides that counts {counting!r}")
    return allowed(0, 0, q_positions[..., :, None], k_positions[..., None, :])


def chunked_window(q_positions: Tensor, k_positions: Tensor, /, *, chunk: int, sides: str) -> Tensor:
    """The mask function of masking_utils, without padding: positions here count from the first token."""
    if sides != "causal":
        lacks("chunks are causal")
    allowed = chunked_causal_mask_function(chunk, torch.zeros(1, dtype=torch.int64))
    return allowed(0, 0, q_positions[..., :, None], k_positions[..., None, :])


def attention_temperature(
    positions: Tensor, /, *, form: str, beta: float, length: int, offset: int, dtype: torch.dtype | None = None
) -> Tensor:
    """Ministral 3's get_llama_4_attn_scale (offset 0); or the queries of Llama4TextAttention, which were ones (1)."""
    if form != "steps" or offset > 1:
        lacks(f"no form {form!r} with offset {offset} as a function of its own")
    if positions.numel() and int(positions.min()) < 0:
        lacks("positions are natural numbers")
    flat = positions.reshape(1, -1)
    scale = _llama_4_queries(flat[0], beta, length) if offset else get_llama_4_attn_scale(flat, beta, length)
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
        cache = SimpleNamespace(get_seq_length=lambda layer: position, update=lambda key, value, layer: (key, value))
        return layer(torch.ones(1, 1, 2), None, None, cache)[0][0, 0, 0]

    return torch.stack([of(position) for position in positions]) if len(positions) else positions.to(torch.float32)


def reset() -> None:
    """Forget every rotary module, and with it the longest sequence that dynamic NTK has seen."""
    _module.cache_clear()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: str, lanes: str, inverse: bool) -> Tensor:
    """Rotate `x` by tables of shape (1, rows, d) whose columns are there twice, as the modules return them."""
    flat, pairs, full = x.reshape(1, 1, -1, x.shape[-1]), cos.shape[-1] // 2, cos.shape[-1] == x.shape[-1]
    if inverse and layout == "half" and full:
        out, _ = apply_nanochat(flat, flat, cos, sin)
    elif inverse and layout == "interleaved" and (full or lanes == "trailing"):
        out = apply_v4(flat, cos[..., :pairs], -sin[..., :pairs])  # as it turns the attention's output back
    elif inverse:
        lacks("NanoChat turns whole heads by halves, DeepSeek-V4 trailing lanes, interleaved")
    elif lanes == "trailing" and layout == "interleaved":
        out = apply_v4(flat, cos[..., :pairs], sin[..., :pairs])
    elif lanes == "trailing" and not full:
        lacks(f"no function rotates trailing lanes with layout {layout!r}")
    elif layout == "half":
        out, _ = (apply_llama if full else apply_neox)(flat, flat, cos, sin)
    elif layout == "interleaved" and full:
        out = apply_gptj(flat.transpose(1, 2), sin[..., :pairs], cos[..., :pairs])
    elif layout == "interleaved":
        out, _ = apply_glm(flat, flat, cos, sin)
    elif layout == "interleaved_to_half" and full:
        out, _ = apply_rotary_pos_emb_interleave(flat, flat, cos, sin)
    else:
        lacks(f"no function rotates part of a head with layout {layout!r}")
    return out.reshape(x.shape)


def _of_rows(positions: Tensor, lead: Any) -> Tensor:
    """Return positions as (rows of the batch, tokens), where all heads have the same."""
    if positions.ndim > len(lead) + 1 and positions.shape[-2] != 1:
        lacks("all heads of a token have one position")
    if positions.ndim > len(lead) + 1:
        positions = positions[..., 0, :]
    return torch.broadcast_to(positions, (*lead, positions.shape[-1])).reshape(-1, positions.shape[-1])


def _part(start: int = 0, end: int | None = None, times: int = 1) -> nn.Module:
    """Return a module that gives some of the lanes, over and over: in the place of a projection."""
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
    """Return the attention, of whose forward only rotations and the putting together of lanes are left."""
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


def _rows(positions: Tensor) -> int:
    if positions.is_floating_point() or positions.numel() == 0 or int(positions.min()) < 0:
        lacks("the table has a row for every natural number, and no other")
    if int(positions.max()) >= LIMIT:
        lacks(f"a table of {int(positions.max()) + 1} rows is too large here")
    return int(positions.max()) + 1


@functools.lru_cache(maxsize=64)
def _module(dim: int, base: float, scaling: Scaling) -> Any:
    kind = HunYuanDenseV1RotaryEmbedding if isinstance(scaling, NTKAlpha) else LlamaRotaryEmbedding
    return kind(_config(dim, base, scaling))


def _check_length(scaling: Scaling, positions: Tensor, length: int | None) -> None:
    if isinstance(scaling, DynamicNTK | LongRoPE) and (not positions.numel() or length != int(positions.max()) + 1):
        lacks("the length of dynamic NTK and of LongRoPE is always the largest position of the call plus 1")


def _config(dim: int, base: float, scaling: Scaling) -> LlamaConfig:
    """Return the configuration of a Llama with one head of `dim` lanes."""
    parameters, original = _parameters(scaling)
    return LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        head_dim=dim,
        max_position_embeddings=original,
        rope_parameters={"rope_theta": base, **parameters},
    )


def _parameters(scaling: Scaling) -> tuple[dict[str, Any], int]:
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


# Read and run in transformers 5.23.0 with torch 2.13.0 on a CPU.
NOTES = (
    "Ministral 3 and Llama 4 divide positions in float32 (modeling_ministral3.py:105, modeling_llama4.py:363), which rounds "
    "those beyond 2**24: with a length of 2**24, position 2**25 - 1 already has the factor of 2**25.",
    "Dynamic NTK keeps the frequencies of the longest call until one is shorter than the original length: "
    "modeling_rope_utils.py:113 resets on <, not <=. With 8 lanes, factor 4 and original length 64, after positions "
    "0, 1, 99 the call 0, 1, 63 (exactly the limit) has a last frequency of 1/3.25 of the right one, and 0, 1, 79 has "
    "2/3.25; 0, 1, 62 is right.",
    "YaRN takes mscale=0.0 or mscale_all_dim=0.0 for not given (modeling_rope_utils.py:437): factor 4 with both 0 "
    "gives an attention factor of 1.1386 for g(0)/g(0) = 1; mscale=0.5 with mscale_all_dim=0 gives it for 1.0693.",
    "YaRN reads truncate from the outer dict (modeling_rope_utils.py:475), so a false inside a dict by layer type is "
    "not seen: gpt-oss's parameters nested so change a frequency by 76 %.",
    "YaRN and dynamic NTK read head_dim without a fallback for None (modeling_rope_utils.py:324, 415; linear and "
    "llama3 have one, :180, :638): the rotary modules of mixtral, minimax, ministral, hunyuan_v1_dense and "
    "hunyuan_v1_moe end in a TypeError, unless the configuration has head_dim.",
    "Llama's default frequencies ignore partial_rotary_factor (modeling_llama.py:101), its linear ones do not: with "
    "0.5 and 64 lanes they are 32 and 16 frequencies, and the 16 do not fit its apply function.",
    "Phi-3 renames rope_type yarn to longrope (configuration_phi3.py:103): YaRN parameters end in a KeyError.",
    "DeepSeek-V4's output is rotated back by the query's position (modeling_deepseek_v4.py:879): rotated_values. Its YaRN has "
    "an attention factor of 1, which its configuration sets.",
    "DeepSeek-V3's scale has YaRN's mscale_all_dim squared (modeling_deepseek_v3.py, yarn_apply_mscale): mla_logits with that "
    "scale. It reads pairs as interleaved and writes halves, in queries and keys alike, which no logit shows.",
    "NanoChat rotates by the negative angle (modeling_nanochat.py:173): rope with inverse=True. It turns queries and "
    "keys alike, so that logits are those of the other direction with positions negated.",
    "DeepSeek-V4 rotates the trailing lanes (modeling_deepseek_v4.py:368), interleaved: rope with lanes='trailing'. Gemma 4's "
    "full-attention layers rotate all lanes, most by 0 (modeling_rope_utils.py, proportional): rope with scaling=Proportional.",
    "Falcon rounds slopes to bfloat16 before the product (modeling_falcon.py:176): with 71 heads its bias is off by "
    "0.3 %, at key 2048 by 2 in the logits. BLOOM, which is asked here, has float32 (modeling_bloom.py:87).",
    "Cohere2-MoE never reads rope_scaling (configuration_cohere2_moe.py:114 makes it a field that nothing reads), "
    "DBRX takes no base from attn_config (configuration_dbrx.py:28), and MiniMax-M3 rotates the whole head whatever its "
    "rotary_dim (modeling_minimax_m3_vl.py:296): rope_from_config takes these files at their word.",
    "Positions become float32 (modeling_llama.py:111), so 16777217 is 16777216, whatever the dtype of x.",
    "V-JEPA 2 rotates lanes 2i and 2i + 1 by the cosines and sines of two different frequencies (modeling_vjepa2.py:195 "
    "repeats the table as for halves, :202 pairs neighbours): no rotation, so lengths and logits depend on the position. "
    "axial_rope asks other vision encoders.",
    "T5's buckets equal the definition's for all relative positions from -3000 to 3000 in 135 settings.",
)
