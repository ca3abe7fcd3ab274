"""
Which layers of one model rotate, or have which type, if no other model has its rule: a function for each.

`TYPES` has the types of layers of a file that does not list them, and `ROTATES` which layers rotate, by model type. `NAMES` has
the names of types in the parameters by layer type, where these differ. Numbers are lines of transformers 5.23.0.
"""

from collections.abc import Callable

from posref.models.fields import integer, refuse
from posref.models.layer_rules import FULL, SLIDING, Able, Config, Types, listed, rules_of, sliding, unless_null


def cohere2_moe(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of Cohere2-MoE. The pattern starts again after the dense layers (configuration, 140)."""
    dense = int(config.get("first_k_dense_replace", 0))
    silent = {"prefix_dense_sliding_window_pattern": 1, "sliding_window_pattern": 4}
    periods = {before: integer((key,), config, silent) for before, key in zip((True, False), silent, strict=True)
               if any((layer < dense) is before for layer in layers)}  # fmt: skip
    return [
        FULL if ((layer if layer < dense else layer - dense) + 1) % periods[layer < dense] == 0 else SLIDING for layer in layers
    ]


def flint(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of Flint: the first two, every fourth and the last are full (configuration_flint.py)."""
    return [FULL if layer < 2 or layer % 4 == 1 or layer == count - 1 else SLIDING for layer in layers]


def qwen2_moe(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of Qwen2-MoE: even ones below max_window_layers are sliding (configuration, 117)."""
    on, end = bool(config.get("use_sliding_window")), config.get("max_window_layers", count)
    return [SLIDING if on and layer % 2 == 0 and layer < end else FULL for layer in layers]


def smollm3(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of SmolLM3: with use_sliding_window those that do not rotate are sliding (configuration)."""
    on = bool(config.get("use_sliding_window")) and bool(config.get("sliding_window"))
    turns = listed(config, rules_of(config), [(layer, None) for layer in layers], count)
    return [SLIDING if on and not rotates else FULL for rotates in turns]


def mimo_v2(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of MiMo-V2-Flash: the first and every sixth are full (configuration_mimo_v2_flash.py)."""
    return [FULL if layer == 0 or (layer + 1) % 6 == 0 else SLIDING for layer in layers]


def lfm3(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of LFM3, which repeat after four but for the first (configuration_lfm3.py)."""
    return [FULL if layer % 4 == 2 else SLIDING if layer % 4 == 0 and layer else "conv" for layer in layers]


def gpt_neo(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of GPT-Neo: a list of words, else lists that repeat (configuration, 76 and 92)."""
    pairs = config.get("attention_types") or [[["global", "local"], 12]]
    if isinstance(config.get("attention_layers"), list):
        pairs = [[config["attention_layers"], 1]]
    try:
        listed = [word for words, times in pairs for word in [*words] * min(times, count)]
    except (TypeError, ValueError):
        refuse(f"attention_types must be a list of pairs, words and how often they come; got {pairs!r}.")
    if len(listed) != count:
        refuse(f"attention_types must have {count} words in all, one for each layer; got {len(listed)}.")
    return [SLIDING if listed[layer] == "local" else FULL for layer in layers]


def lfm3_vision(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of LFM3-VL's vision: from the third on every second one has attention (configuration, 57)."""
    return ["conv" if layer < 2 or layer % 2 else FULL for layer in layers]


def qwen3_next(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of Qwen3-Next, 3.5 and 4-Exp: one in an interval has attention (configuration, 120)."""
    n = integer(("full_attention_interval",), config, {"full_attention_interval": 4})
    return [FULL if (layer + 1) % n == 0 else "linear_attention" for layer in layers]


def bamba(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of Bamba, whose files have the numbers of full layers (configuration, 97)."""
    full = config.get("attn_layer_indices")
    return [FULL if layer in (() if full is None else full) else "linear_attention" for layer in layers]


def lfm2(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of LFM2, whose files have the numbers of full layers: none means all (configuration, 83)."""
    full = config.get("full_attn_idxs")
    return [FULL if full is None or layer in full else "linear_attention" for layer in layers]


def recurrent_gemma(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of RecurrentGemma, whose blocks repeat (configuration, 101)."""
    blocks = config.get("block_types") or ("recurrent", "recurrent", "attention")
    return [str(blocks[layer % len(blocks)]) for layer in layers]


def olmo_hybrid(config: Config, layers: range, count: int) -> Types:
    """Return the types of layers of OLMo-Hybrid: every fourth has attention, or the last of few."""
    return [FULL if layer % 4 == 3 or (count < 4 and layer == count - 1) else "linear_attention" for layer in layers]


def cohere2_moe_rotates(config: Config, layers: Able, count: int) -> list[bool]:
    """Return whether a layer is sliding, or has a dense MLP (Cohere2-MoE, modeling, 296)."""
    slides = sliding(config, rules_of(config), layers, count)
    if all(slides) or config.get("prefix_dense_sliding_window_pattern", 1) != 1:
        return slides
    dense = config.get("mlp_layer_types")
    if dense is None:
        leading = int(config.get("first_k_dense_replace", 0))
        return [turns or layer < leading for turns, (layer, _) in zip(slides, layers, strict=True)]
    if not isinstance(dense, list | tuple) or len(dense) != count:
        refuse(f"mlp_layer_types must be a list of {count} words, one for each layer; got {dense!r}.")
    return [turns or bool(dense[layer] == "dense") for turns, (layer, _) in zip(slides, layers, strict=True)]


def olmo_hybrid_rotates(config: Config, layers: Able, count: int) -> list[bool]:
    """Return whether the base of OLMo-Hybrid is not null. A missing key means 10000 (modeling_olmo_hybrid.py)."""
    return [(config.get("rope_parameters") or {}).get("rope_theta", 1) is not None] * len(layers)


def mllama_rotates(config: Config, layers: Able, count: int) -> list[bool]:
    """Return whether a layer of Llama 3.2 Vision attends to the text, not to the image (mllama, modeling, 1026)."""
    crossing = config.get("cross_attention_layers")
    images = range(3, 40, 5) if crossing is None else crossing  # configuration, 145
    return [layer not in images for layer, _ in layers]


def beam_rotates(config: Config, layers: Able, count: int) -> list[bool]:
    """Return whether a layer has parameters. Only sliding ones rotate if the file has none, as in Beam (modeling, 492)."""
    if config.get("rope_parameters") is None:
        return [kind != FULL for _, kind in layers]
    return unless_null(config, rules_of(config), layers, count)


TYPES: dict[str, Callable[[Config, range, int], Types]] = {
    "bamba": bamba,
    "cohere2_moe": cohere2_moe,
    "flint": flint,
    "gpt_neo": gpt_neo,
    "lfm2": lfm2,
    "lfm3": lfm3,
    "lfm3_vl_vision": lfm3_vision,
    "mimo_v2": mimo_v2,
    "mimo_v2_flash": mimo_v2,
    "olmo_hybrid": olmo_hybrid,
    "qwen2_moe": qwen2_moe,
    "qwen3_5_moe_text": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_next": qwen3_next,
    "qwen4_exp_text": qwen3_next,
    "recurrent_gemma": recurrent_gemma,
    "smollm3": smollm3,
}
ROTATES: dict[str, Callable[[Config, Able, int], list[bool]]] = {
    "beam": beam_rotates,
    "cohere2_moe": cohere2_moe_rotates,
    "mllama_text_model": mllama_rotates,
    "olmo_hybrid": olmo_hybrid_rotates,
}
NAMES = {name: {SLIDING: "main", "*": "compress"} for name in ("deepseek_v4", "deepseek_v41")}  # "*" for all others
