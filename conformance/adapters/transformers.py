"""
transformers, by its own code paths: the functions and modules that its models call; only shapes and names are adapted.

`rope` keeps one rotary module for each set of parameters, as a model does, so that dynamic NTK has its real memory;
`reset` forgets them. Every position is one token of one sequence to these functions, which changes no number. Functions of
queries and keys get both, in several heads: row i of a result is a query if i is even, else a key.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import MptConfig, MptModel, T5Config
from transformers.masking_utils import (
    chunked_causal_mask_function,
    sliding_window_bidirectional_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.deepseek_v3.modeling_deepseek_v3 import apply_rotary_pos_emb_interleave
from transformers.models.deepseek_v4.modeling_deepseek_v4 import apply_rotary_pos_emb as apply_v4
from transformers.models.glm.modeling_glm import apply_rotary_pos_emb as apply_glm
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as apply_neox
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as apply_gptj
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as apply_llama
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.nanochat.modeling_nanochat import apply_rotary_pos_emb as apply_nanochat
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.wav2vec2_conformer import Wav2Vec2ConformerConfig
from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerRelPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids
from transformers.utils import logging

from posref.scaling import NTKAlpha

from ._shared import lacks, of_both
from ._transformers_absolute import (  # noqa: F401  (operations of this adapter, as below)
    axial_learned,
    conv_positions,
    layout_2d,
    learned,
    peg,
    positions_from_tokens,
    resample,
    sine_2d,
    sinusoidal_nd,
)
from ._transformers_absolute import supports as supports_absolute
from ._transformers_attention import attention_temperature, mla_logits, rotated_values  # noqa: F401
from ._transformers_axes import axial_rope, mrope  # noqa: F401
from ._transformers_modules import Scaling, check_length, kept_module, llama_config, scalings
from ._transformers_relative import (  # noqa: F401
    bias_gate,
    deberta_rows,
    deberta_scores,
    decomposed_bias,
    decomposed_rows,
    relative_shift,
    shaw_scores,
    shaw_values,
    shifted_window_mask,
    transformer_xl_scores,
    window_bias,
)

logging.set_verbosity_error()  # it warns about configurations that are asked on purpose

PACKAGE = "transformers"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")  # angles are float32 products whatever the dtype
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT = 1 << 18  # rows of a table that is built to look up a few

LAYOUTS: list[dict[str, Any]] = [  # what no function rotates
    {"layout": "interleaved_to_half", "partial": True},
    {"layout": "interleaved_to_half", "inverse": True},
    {"layout": "half", "partial": True, "inverse": True},
    {"layout": "half", "partial": True, "lanes": "trailing"},
    {"layout": "interleaved", "partial": True, "inverse": True, "lanes": "leading"},
]
SEEN = ["DynamicNTK", "LongRoPE"]  # their length is the largest position of the call plus 1
LENGTHS: list[dict[str, Any]] = [
    {"scaling": SEEN, "other_length": True},
    {"scaling": SEEN, "empty": ["tokens", "heads", "batch"]},
]
ONE_LENGTH: list[str | None] = [None, *(name for name in scalings if name not in SEEN)]
WITHOUT_MSCALE = {"LongRoPE.short_mscale": ["default"], "LongRoPE.long_mscale": ["default"]}
NATURAL = {"numbers": ["integers"], "negative": False, "empty": False, "position": {"max": LIMIT - 1}}

supports: dict[str, dict[str, Any]] = {
    **supports_absolute,
    "sinusoidal": {
        "layout": ["sin_cos", "interleaved"],
        "odd": ["refused"],
        "scale": ["default"],
        **NATURAL,
        "not": [{"layout": "interleaved", "endpoint": True}, {"endpoint": False, "base": "given"}],
    },
    "rope_frequencies": WITHOUT_MSCALE,
    "rope_table": {"gradient": False},
    "apply_rope": {"not": LAYOUTS},
    "rope": {**WITHOUT_MSCALE, "not": [*LAYOUTS, *LENGTHS]},
    "mrope": {
        "axes": [3],
        "arrangement": ["chunked", "interleaved", "ernie"],
        "layout": ["half", "interleaved"],
        "inverse": [False],
        "scaling": [None, *(name for name in scalings if name != "NTKAlpha")],
        **WITHOUT_MSCALE,
        "not": [
            {"arrangement": "interleaved", "layout": "interleaved"},
            {"arrangement": "ernie", "layout": "half"},
            {"arrangement": "ernie", "partial": True},
            {"arrangement": "ernie", "scaling": list(scalings)},
            *LENGTHS,
        ],
    },
    "axial_rope": {
        "axes": [2],
        "unequal": False,
        "partial": False,
        "unit": ["radians"],
        "inverse": [False],
        "not": [
            {"allocation": "shared", "arrangement": "round_robin"},
            {"allocation": "shared", "layout": ["interleaved", "half_by_axis"]},
            {"arrangement": "round_robin", "layout": ["interleaved", "half_by_axis"]},
            {"layout": "interleaved", "empty": ["tokens", "heads", "batch"]},
        ],
    },
    "alibi_slopes": {"first": ["default"], "count": ["default"]},
    "alibi": {"form": ["key"], "max_bias": {"min": 1, "multiple_of": 1}, "first": ["default"], "count": ["default"], **NATURAL},
    "t5_buckets": {},
    "t5_bias": {},
    "shaw_scores": {"order": ["key_minus_query"], "terms": ["query"], "empty": False},
    "shaw_values": {"order": ["key_minus_query"], "outside": ["zero"], "empty": False},
    "bias_gate": {"empty": False},
    "deberta_rows": {},
    "deberta_scores": {"p2c": ["code"], "empty": False},
    "window_bias": {"depth": [1], "order": ["query_minus_key"]},
    "shifted_window_mask": {},
    "decomposed_rows": {"q_size": {"max": 1024}, "k_size": {"max": 1024}},  # it makes a table of both
    "decomposed_bias": {"empty": False},
    "relative_shift": {"empty": False},
    "transformer_xl_scores": {
        "base": ["default"],
        "endpoint": [False],
        "empty": False,
        "not": [{"layout": "interleaved", "max_distance": "given"}],
    },
    "rotated_values": {
        "layout": ["interleaved"],
        "empty": False,
        "scaling": ONE_LENGTH,
        "not": [{"lanes": "leading", "partial": True}],
    },
    "mla_logits": {"empty": False, "length": ["default"], "scaling": ONE_LENGTH},
    "sliding_window": {
        "not": [
            {"counting": "without_query", "sides": "causal"},
            {"counting": "with_query", "sides": "both"},
            {"sides": "both", "negative": True},
        ]
    },
    "chunked_window": {"sides": ["causal"]},
    "attention_temperature": {"form": ["steps"], "offset": {"max": 1}, "negative": False},
}


def rope_frequencies(dim: int, /, *, base: float, scaling: Scaling = None, length: int | None = None) -> tuple[Tensor, float]:
    """ROPE_INIT_FUNCTIONS, or the Llama module's own default, or HunYuan's own for an alpha."""
    config = llama_config(dim, base, scaling)
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
    module = LlamaRotaryEmbedding(llama_config(2 * pairs, 10_000.0, None))
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
    check_length(scaling, positions, length)
    cos, sin = kept_module(dim, base, scaling)(x, torch.broadcast_to(positions, x.shape[:-1]).reshape(1, -1))
    return _rotate(x, cos, sin, layout, lanes, inverse)


def sinusoidal(
    positions: Tensor, dim: int, /, *, layout: str, base: float = 1e4, endpoint: bool = False, dtype: Any = None
) -> Tensor:
    """Whisper's table (endpoint), GPT-J's (sines, then cosines) or Wav2Vec2-Conformer's (interleaved)."""
    rows = _rows(positions)
    if (layout, endpoint) == ("sin_cos", True):
        table = sinusoids(rows, dim, base)
    elif base != 10_000.0:
        lacks("without endpoint the base is fixed at 10000")
    elif (layout, endpoint) == ("sin_cos", False):
        table = create_sinusoidal_positions(rows, dim)
    elif (layout, endpoint) == ("interleaved", False):
        config = Wav2Vec2ConformerConfig(hidden_size=dim, max_source_positions=rows)
        table = Wav2Vec2ConformerRelPositionalEmbedding(config).pe[0, :rows].flip(0)  # its last row is position 0
    else:
        lacks(f"no table of layout {layout!r} with endpoint={endpoint}")
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


def alibi(
    q_positions: Tensor, k_positions: Tensor, /, *, heads: int, form: str, max_bias: float = 8, dtype: torch.dtype | None = None
) -> Tensor:
    """BLOOM's build_alibi_tensor of an all-true mask, at the keys' positions; with a max_bias, what MPT's layers are given."""
    if form != "key":
        lacks(f"no form {form!r}: BLOOM and MPT add one row, m*j or m*(j - last), to all queries")
    rows, dtype = _rows(k_positions), dtype or torch.get_default_dtype()
    if max_bias == 8:
        bias = build_alibi_tensor(torch.ones(1, rows, dtype=torch.int64), heads, dtype)[:, 0]
    else:
        bias = _bias_of_mpt(rows, heads, max_bias).to(dtype)
    return torch.movedim(bias[:, k_positions], 0, -2)[..., None, :]


def _bias_of_mpt(rows: int, heads: int, max_bias: float) -> Tensor:
    """What MptModel gives its first layer, m*(j - last), as m*j: last to first, and negated."""
    if max_bias != int(max_bias):
        lacks(f"no max_bias {max_bias}: alibi_bias_max is an int")
    attention = {"alibi_bias_max": int(max_bias)}
    model = MptModel(MptConfig(d_model=heads, n_heads=heads, n_layers=1, max_seq_len=rows, vocab_size=2, attn_config=attention))
    seen: list[Tensor] = []
    model.blocks[0].register_forward_pre_hook(lambda _, given, named: seen.append(named["position_bias"]), with_kwargs=True)
    with torch.no_grad():
        model(torch.zeros(1, 1, dtype=torch.int64))
    return -seen[0][:, 0].flip(-1)


def sliding_window(q_positions: Tensor, k_positions: Tensor, /, *, window: int, counting: str, sides: str) -> Tensor:
    """The mask functions of masking_utils: the causal one counts the query, the one on both sides does not."""
    if (counting, sides) == ("with_query", "causal"):
        allowed = sliding_window_causal_mask_function(window)
    elif (counting, sides) == ("without_query", "both"):
        allowed = sliding_window_bidirectional_mask_function(window)
        if q_positions.numel() and int(q_positions.min()) < 0:
            lacks("a query at a negative position sees no key, as one that is padding")
    else:
        lacks(f"no mask on {sides!r} sides that counts {counting!r}")
    return allowed(0, 0, q_positions[..., :, None], k_positions[..., None, :])


def chunked_window(q_positions: Tensor, k_positions: Tensor, /, *, chunk_size: int, sides: str) -> Tensor:
    """The mask function of masking_utils, without padding: positions here count from the first token."""
    if sides != "causal":
        lacks("chunks are causal")
    allowed = chunked_causal_mask_function(chunk_size, torch.zeros(1, dtype=torch.int64))
    return allowed(0, 0, q_positions[..., :, None], k_positions[..., None, :])


def reset() -> None:
    """Forget every rotary module, and with it the longest sequence that dynamic NTK has seen."""
    kept_module.cache_clear()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: str, lanes: str, inverse: bool) -> Tensor:
    """Rotate `x` by tables of shape (1, rows, d) whose columns are there twice, as the modules return them."""
    pairs, full = cos.shape[-1] // 2, cos.shape[-1] == x.shape[-1]
    flat, half = x.reshape(1, 1, -1, x.shape[-1]), (cos[..., :pairs], sin[..., :pairs])
    if inverse and layout == "half" and full:
        return of_both(x, lambda q, k: apply_nanochat(q, k, cos, sin))
    if inverse and layout == "interleaved" and (full or lanes == "trailing"):
        return apply_v4(flat, half[0], -half[1]).reshape(x.shape)  # as it turns the attention's output back
    if inverse:
        lacks("NanoChat rotates whole heads in halves, DeepSeek-V4 trailing channels, interleaved")
    if lanes == "trailing" and layout == "interleaved":
        return apply_v4(flat, *half).reshape(x.shape)
    if lanes == "trailing" and not full:
        lacks(f"no function rotates trailing channels with layout {layout!r}")
    if layout == "interleaved" and full:
        return apply_gptj(flat.transpose(1, 2), *half[::-1]).reshape(x.shape)
    if layout == "half":
        apply = apply_llama if full else apply_neox
    elif layout == "interleaved":
        apply = apply_glm
    elif layout == "interleaved_to_half" and full:
        apply = apply_rotary_pos_emb_interleave
    else:
        lacks(f"no function rotates part of a head with layout {layout!r}")
    return of_both(x, lambda q, k: apply(q, k, cos, sin))


def _rows(positions: Tensor) -> int:
    if positions.is_floating_point() or positions.numel() == 0 or int(positions.min()) < 0:
        lacks("the table has rows only for integers from 0 on")
    if int(positions.max()) >= LIMIT:
        lacks(f"a table of {int(positions.max()) + 1} rows is too large here")
    return int(positions.max()) + 1


# Read and run in transformers 5.23.0 with torch 2.13.0 on a CPU.
NOTES = (
    "Rows of decomposed tables are computed in float32 and cut off (modeling_sam.py:755, modeling_vitdet.py:154), which is one "
    "row too small for some cells of 289 of the 4096 pairs of sizes up to 64: 8 queries and 6 keys, 16 and 15. In SAM, ViTDet "
    "and SegGPT both sizes are alike, where the rows are right.",
    "MPT's alibi_bias_max changes nothing (modeling_mpt.py:317 builds the bias without it): alibi with another is asked "
    "of MptModel, alibi_slopes of the function that it calls, which knows it.",
    "Ministral 3 and Llama 4 divide positions in float32 (modeling_ministral3.py:105, modeling_llama4.py:363), which rounds "
    "those beyond 2**24: with a length of 2**24, position 2**25 - 1 already has the factor of 2**25.",
    "Dynamic NTK keeps the frequencies of the longest call until one is shorter than the original length: "
    "modeling_rope_utils.py:113 resets on <, not <=. With 8 channels, factor 4 and original length 64, after positions "
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
    "0.5 and 64 channels they are 32 and 16 frequencies, and the 16 do not fit its apply function.",
    "Phi-3 renames rope_type yarn to longrope (configuration_phi3.py:103): YaRN parameters end in a KeyError.",
    "DeepSeek-V4's output is rotated back by the query's position (modeling_deepseek_v4.py:879): rotated_values. Its YaRN has "
    "an attention factor of 1, which its configuration sets.",
    "DeepSeek-V3's scale has YaRN's mscale_all_dim squared (modeling_deepseek_v3.py, yarn_apply_mscale): mla_logits with that "
    "scale. It reads pairs as interleaved and writes halves, in queries and keys alike, which no logit shows.",
    "NanoChat rotates by the negative angle (modeling_nanochat.py:173): rope with inverse=True. It turns queries and "
    "keys alike, so that logits are those of the other direction with positions negated.",
    "DeepSeek-V4 rotates the trailing channels (modeling_deepseek_v4.py:368), interleaved: rope with lanes='trailing'. "
    "Gemma 4's full-attention layers rotate all channels, most by 0 (modeling_rope_utils.py, proportional): rope with "
    "scaling=Proportional.",
    "Falcon rounds slopes to bfloat16 before the product (modeling_falcon.py:176): with 71 heads its bias is off by "
    "0.3 %, at key 2048 by 2 in the logits. BLOOM, which is asked here, has float32 (modeling_bloom.py:87).",
    "Cohere2-MoE never reads rope_scaling (configuration_cohere2_moe.py:114 makes it a field that nothing reads), "
    "DBRX takes no base from attn_config (configuration_dbrx.py:28), and MiniMax-M3 rotates the whole head whatever its "
    "rotary_dim (modeling_minimax_m3_vl.py:296): rope_from_config takes these files at their word.",
    "Positions become float32 (modeling_llama.py:111), so 16777217 is 16777216, whatever the dtype of x.",
    "V-JEPA 2 rotates lanes 2i and 2i + 1 by the cosines and sines of two different frequencies (modeling_vjepa2.py:195 "
    "repeats the table as for halves, :202 pairs neighbours): no rotation, so lengths and logits depend on the position. "
    "axial_rope asks other vision encoders.",
    "SigLIP 2 and others resample tables by PyTorch's interpolate. With antialias it repeats the first row of grids one cell "
    "wide, in some memory layouts (torch 2.13.0 on a CPU: resample-column-repeated). timm is asked to resample.",
    "T5's buckets equal the definition's for all relative positions from -3000 to 3000 in 135 settings.",
)
