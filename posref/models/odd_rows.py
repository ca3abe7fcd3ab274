"""
Encodings that one model, or one family, reads from its file in its own way: a function for each.

A row of tables/types.json with ``"read": "odd"`` is read by the function that `ROWS` has for its model type and component. The
code that each follows is the ``source`` of the row, a file and line of transformers 5.23.0.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from posref.models.arguments import Entry
from posref.models.config import read_mrope, read_rope
from posref.models.fields import even, first, integer, number, refuse
from posref.models.layers import COUNT, layers_on
from posref.models.options import options_of, value_of
from posref.models.reaches import (
    MOST,
    boxes,
    halves,
    moonshine,
    of_cells,
    of_hiera,
    of_muse,
    window_around,
    window_of_gemma3n,
    window_of_two_sides,
)
from posref.models.readers import HEADS, HIDDEN, Config, Row, axial_of, head_size, rotary
from posref.models.relative import continuous, decomposed, disentangled, levit, shifts


def odd(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the encodings of a row that one model or family has."""
    return ROWS[config["model_type"], row["component"]](config, row, defaults)


def compressed(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the rotation of DeepSeek-V4's compressed layers (deepseek_v4/modeling_deepseek_v4.py)."""
    options = read_rope(config, "compress", None, None)
    return [None if options is None else Entry("rope", {**options})]


def whole_head(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return RoPE over the whole head, with the base that the row names, for encoders without a rope dict."""
    options = options_of(row, config, defaults) or {}
    return [Entry("rope", {**options, "rotary_dim": even(head_size(config, defaults)), "scaling": None})]


def memory_attention(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the axial rotation of SAM 2's memory attention, whose heads are narrower (sam2_video/modeling_sam2_video.py)."""
    width, *divisors = (
        integer((f"memory_attention_{key}",), config, defaults)
        for key in ("hidden_size", "num_attention_heads", "downsample_rate")
    )
    return axial_of(width // math.prod(divisors), config, row, defaults)


def efficientloftr(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return EfficientLoFTR's axial rotation, of all heads as one (efficientloftr/modeling_efficientloftr.py)."""
    return axial_of(integer(("hidden_size",), config, defaults), config, row, defaults)


def dab_detr(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return DETR's sines with the base of rows. If columns have another, their half is of a second call (dab_detr, 305)."""
    options = options_of(row, config, defaults) or {}
    base = number("temperature_width", ("temperature_width",), config, defaults, {"temperature_width": 20}, low=0, strict=True)
    other = f"the second half is that of a call with base {base:g}"
    return [Entry("sine_2d", options, {} if base == options["base"] else {"channels": other})]


def clvp(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return CLVP's rotation, as wide as half of a head of the projection, and at least 32 channels (clvp, 249)."""
    width = integer(("projection_dim",), config, defaults) // (2 * integer(HEADS, config, defaults))
    return [Entry("rope", {**row["options"], "rotary_dim": even(max(width, 32)), "scaling": None})]


def cohere_compass(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the M-RoPE of each layer, by its type. A type whose parameters are null has none (cohere_compass, 294)."""
    types, parameters = _by_type(config)
    same = {name: value for name, value in config.items() if name not in ("layer_types", "rope_parameters")}
    entries = {
        kind: None
        if parameters[kind] is None
        else Entry("mrope", {**read_mrope({**same, "rope_parameters": parameters[kind]}, "interleaved", "half")})
        for kind in dict.fromkeys(types)
    }
    return [entries[kind] for kind in types]


def neomme(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the axial rotation of each layer. Its type decides the base and the share of the head (neomme, 339)."""
    types, parameters = _by_type(config)
    axes, head, entries = row["axes"], integer(("head_dim",), config, defaults), {}
    for kind in dict.fromkeys(types):
        rope = parameters[kind] if isinstance(parameters[kind], dict) else {}
        share = number("partial_rotary_factor", ("partial_rotary_factor",), rope, {"partial_rotary_factor": 1.0}, low=0)
        base = number("base", ("rope_theta",), rope, low=0, strict=True)
        entries[kind] = Entry("axial_rope", {"dims": (even(int(head * share) // axes),) * axes, "base": base, **row["options"]})
    return [entries[kind] for kind in types]


def _by_type(config: Config) -> tuple[list[str], Mapping[str, Any]]:
    """Return the type of each layer, and the rope parameters of each type."""
    types, parameters = config.get("layer_types"), config.get("rope_parameters")
    listed = isinstance(types, list | tuple) and all(isinstance(kind, str) for kind in types)
    types = list(types) if listed and types is not None else []
    if not types or not isinstance(parameters, dict) or not set(types) <= set(parameters):
        refuse(f"rope_parameters must have an entry for every type in layer_types; got {parameters!r} and {types!r}.")
    return types, parameters


def inkling(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return Inkling's relative logits. They reach as far as the window in layers that have one, and further in the others."""
    far, near = (integer((key,), config, defaults) for key in ("rel_extent", "sliding_window_size"))
    sliding = layers_on("sliding", config, defaults)
    return [Entry(row["operation"], {**row["options"], "right": (near if slides else far) - 1}) for slides in sliding]


def xlnet(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return XLNet's scores, whose distances are clamped if clamp_len is above 0 (xlnet/modeling_xlnet.py, 68)."""
    clamp = value_of("clamp_len", config, defaults)
    if isinstance(clamp, int | float) and clamp < 1:
        config = {**config, "clamp_len": None}
    return [Entry(row["operation"], options_of(row, config, defaults))]


def fun_asr(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return Fun-ASR's sinusoids, as wide as all frames that are stacked (fun_asr_nano/modeling_fun_asr_nano.py, 201)."""
    options = options_of(row, config, defaults) or {}
    frames = value_of("num_stacked_frames", config, defaults)
    if isinstance(frames, bool) or not isinstance(frames, int) or frames < 1:
        refuse(f"the file must have num_stacked_frames, an int of at least 1, for dim; got {frames!r}.")
    return [Entry(row["operation"], {**options, "dim": options["dim"] * frames})]


def gpt2_scale(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the scale of GPT-2 and its kin where it is not d^-1/2: 1, or divided by the number of the layer (gpt2, 97)."""
    scaled = config.get("scale_attn_weights") is not False
    size = integer(("n_embd", "hidden_size"), config, defaults) // integer(("n_head", "num_attention_heads"), config, defaults)
    scale = size**-0.5 if scaled and size else 1.0
    if config.get("scale_attn_by_inverse_layer_idx") is True and config["model_type"] != "gpt_bigcode":
        count = min(integer(COUNT, config, defaults), MOST)
        return [Entry("attention", {"scale": scale / (layer + 1)}) for layer in range(count)]
    return [] if scaled else [Entry("attention", {"scale": scale})]


def zamba_scale(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the scale of Zamba, (D/2)^-1/2: its queries are of the hidden state and the embedding (zamba, 137)."""
    usual = 2 * integer(HIDDEN, config, defaults) // integer(HEADS, config, defaults)
    return [
        Entry(
            "attention",
            {"scale": (integer(("attention_head_dim",), config, defaults, {"attention_head_dim": usual}) / 2) ** -0.5},
        )
    ]


def cvt_scale(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the scale of each layer of CvT: of all heads of its stage together (cvt, 152)."""
    widths, depths = (value_of(key, config, defaults) for key in ("embed_dim", "depth"))
    both = [widths, depths]
    if not all(isinstance(x, list | tuple) and all(type(n) is int and 0 < n <= MOST for n in x) for x in both):
        refuse(f"embed_dim and depth must be lists of ints of at least 1, one for each stage; got {widths!r} and {depths!r}.")
    scales = [Entry("attention", {"scale": width**-0.5}) for width, depth in zip(*both, strict=False) for _ in range(depth)]
    return [*scales]


def grok_temperature(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return Grok's factor of queries beyond a length, log p / log length (SGLang, decode_attention.py, 300)."""
    length = number("attn_temperature_len", ("attn_temperature_len",), config, low=-1)
    if length <= 1:  # -1 is off
        return []
    return [Entry(row["operation"], {**row["options"], "beta": 1 / math.log(length), "original_length": int(length)})]


def kimi_k3(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the axial rotation of Kimi K3's images, whose heads are of qkv_hidden_size (SGLang, kimi_k3_vl.py)."""
    heads = integer(("num_attention_heads",), config, defaults)
    return axial_of(integer(("qkv_hidden_size", "hidden_size"), config, defaults) // heads, config, row, defaults)


def deepseek_v41_vision(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the axial rotation of DeepSeek-V4.1's images, from vision_config or flat keys (SGLang, deepseek_v41.py)."""
    names = {"hidden_size": "vision_dim", "num_attention_heads": "vision_n_heads", "rope_theta": "vision_rope_theta"}
    inner = config.get("vision_config") or {}
    values = {name: first((name,), inner) or value_of(flat, config, defaults) for name, flat in names.items()}
    heads = integer(("num_attention_heads",), values)
    return axial_of(integer(("hidden_size",), values) // heads, {"rope_theta": values["rope_theta"]}, row, {})


def baichuan(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return RoPE for Baichuan 7B, whose width is 4096, and ALiBi for all others (SGLang, baichuan.py, 443)."""
    if integer(("hidden_size",), config) == 4096:
        return rotary(config, row, defaults)
    return [Entry("alibi", {"heads": integer(("num_attention_heads",), config), "form": "key"})]


def bailing_linear(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the rotation of each layer: latent attention pairs neighbours, the others rotate halves of a share of the head."""
    same = {name: value for name, value in config.items() if name != "qk_rope_head_dim"}
    full = linear = rotary(same, row, defaults)[0]
    if config.get("kv_lora_rank") and linear is not None:
        lanes = even(integer(("qk_rope_head_dim",), config, {"qk_rope_head_dim": 64}))
        full = Entry("rope", {**(linear.options or {}), "layout": "interleaved", "rotary_dim": lanes})
    linear = linear if config.get("linear_rope") is not False else None
    return [full if kind == "full_attention" else linear for kind in config["layer_types"]]


def lightning_scale(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the scale of MiniCPM-SALA's layers: lightning layers have a word or number of the file (SGLang, minicpm.py)."""
    head = head_size(config, defaults)
    rule, width = config.get("lightning_scale", "1/sqrt(d)"), config.get("lightning_head_dim") or head
    if rule not in ("1/sqrt(d)", "1/d") and (isinstance(rule, bool) or not isinstance(rule, int | float)):
        refuse(f"lightning_scale must be '1/sqrt(d)', '1/d' or a number; got {rule!r}.")
    scale = width**-0.5 if rule == "1/sqrt(d)" else 1 / width if rule == "1/d" else float(rule)
    scales = [scale if kind == "lightning_attention" else head**-0.5 for kind in config["layer_types"]]
    return [Entry("attention", {"scale": number}) for number in scales]


def phi3small_scale(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the scale of Phi-3 small, mup_attn_multiplier / D unless mup_use_scaling is false (mlx-lm, phi3small.py, 74)."""
    if config.get("mup_use_scaling") is False:
        return []
    factor = number("mup_attn_multiplier", ("mup_attn_multiplier",), config, {"mup_attn_multiplier": 1.0}, low=0)
    return [Entry("attention", {"scale": factor / head_size(config, defaults)})]


SAM = (
    *("deepseek_ocr2_sam_vision_model", "got_ocr2_vision", "pp_chart2table_vision", "pp_formulanet_vision"),
    *("sam_hq_vision_model", "sam_vision_model", "slanext_vision", "unlimited_ocr_sam_vision_model"),
)
VISION, MASK, TEXT = "vision attention", "vision mask", "text attention"
ROWS: dict[tuple[str, str], Callable[..., list[Entry | None]]] = {
    ("clap_audio_model", "audio mask"): partial(shifts, side="smaller", rounded="up"),
    ("clvp_encoder", "encoder"): clvp,
    ("cohere_compass_text", "text"): cohere_compass,
    ("dab-detr", "vision"): dab_detr,
    ("deberta", TEXT): partial(disentangled, in_buckets=False),
    ("deberta-v2", TEXT): partial(disentangled, in_buckets=True),
    **{(model, part): compressed for model in ("deepseek_v4", "deepseek_v41") for part in ("indexer", "compressed keys")},
    ("donut-swin", MASK): partial(shifts, side="smaller", rounded="down"),
    **{(model, "text scale"): gpt2_scale for model in ("decision_transformer", "gpt2", "gpt_bigcode", "imagegpt")},
    **{(model, "memory attention"): memory_attention for model in ("edgetam_video", "sam2_video", "sam3_tracker_video")},
    ("efficientloftr", "vision"): efficientloftr,
    ("fun_asr_nano_encoder", "audio"): fun_asr,
    ("bailing_moe_linear", "text"): bailing_linear,
    ("baichuan", "text"): baichuan,
    ("cvt", "vision scale"): cvt_scale,
    ("deepseek_v41", "vision attention"): deepseek_v41_vision,
    ("grok", "text temperature"): grok_temperature,
    ("kimi_k3_vision", VISION): kimi_k3,
    ("minicpm_sala", "text scale"): lightning_scale,
    ("phi3small", "text scale"): phi3small_scale,
    **{(model, "text scale"): zamba_scale for model in ("zamba", "zamba2")},
    **{(model, MASK): partial(of_cells, listed="global_attn_indexes") for model in SAM},
    ("sam3_vit_model", MASK): partial(of_cells, listed="global_attn_indexes", silent=(7, 15, 23, 31)),
    ("vitdet", MASK): partial(of_cells, listed="window_block_indices", windowed=True),
    **{
        (model, MASK): partial(of_cells, listed="fullatt_block_indexes", over=("patch_size",))
        for model in ("exaone4_5_vision", "qwen2_5_omni_vision_encoder", "qwen2_5_vl_vision")
    },
    **{(model, MASK): of_muse for model in ("muse_glimmer_vision", "muse_spark_vision")},
    ("gemma3n_audio", "audio mask"): window_of_gemma3n,
    ("sam2_hiera_det_model", MASK): of_hiera,
    ("gemma4_audio", "audio mask"): window_of_two_sides,
    **{(model, "text"): inkling for model in ("inkling2_loop_text", "inkling2_text", "inkling_text")},
    ("led", "encoder mask"): halves,
    ("levit", "vision"): levit,
    ("longformer", "text mask"): halves,
    ("maskformer-swin", MASK): partial(shifts, side="always", rounded="up"),
    ("moonshine_streaming_encoder", "audio mask"): moonshine,
    ("neomme", "text"): neomme,
    ("qwen2_5_omni_dit", "attention"): whole_head,
    **{(model, VISION): partial(decomposed, listed="global_attn_indexes", windowed=False) for model in SAM},
    ("saprot", "text"): whole_head,
    ("seamless_m4t", "speech encoder"): whole_head,
    ("seggpt", VISION): partial(decomposed, listed=None, windowed=False),
    ("sew-d", "audio attention"): partial(disentangled, in_buckets=True),
    ("swin", MASK): partial(shifts, side="smaller", rounded="up"),
    ("swin2sr", VISION): partial(continuous, rounded="not"),
    ("swin2sr", MASK): partial(shifts, side="height", rounded="not"),
    ("swinv2", VISION): partial(continuous, rounded="down"),
    ("swinv2", MASK): partial(shifts, side="height", rounded="down"),
    ("t5gemma2_text", "text mask"): window_around,
    ("udop", "encoder"): partial(boxes, kind="1d"),
    ("udop", "encoder horizontal"): partial(boxes, kind="horizontal"),
    ("udop", "encoder vertical"): partial(boxes, kind="vertical"),
    ("vitdet", VISION): partial(decomposed, listed="window_block_indices", windowed=True),
    ("wav2vec2-bert", "audio"): whole_head,
    ("wav2vec2-conformer", "audio"): whole_head,
    ("xlnet", "text"): xlnet,
}
