"""
Files of models that write in their own keys what other files write in the usual ones: a function for each.

`FILES` has the function that writes the usual keys into a file, by model type; `PARENTS` the one that writes its parts first.
`CHECKS` has the one that refuses a file whose model does not rotate, or not in a way that its row tells. Each names the file of
transformers 5.23.0 that it follows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from posref.models import served_files
from posref.models.fields import first, refuse
from posref.models.rope_scaling import ALIASES, rope_type

Config = Mapping[str, Any]
DICTS = ("rope_scaling", "rope_parameters")


def kv_channels(config: Config) -> Config:
    """Take kv_channels for the size of a head: ChatGLM (code with its weights), JetMoE (jetmoe/modeling_jetmoe.py)."""
    return {**config, "head_dim": first(("head_dim", "kv_channels"), config)}


def zamba2(config: Config) -> Config:
    """Take the head of Zamba2, whose attention reads the input beside the state (zamba2/configuration_zamba2.py)."""
    head = first(("head_dim", "attention_head_dim"), config)
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if head is None and all(type(size) is int and size > 0 for size in (hidden, heads)):
        head = 2 * int(str(hidden)) // int(str(heads))
    return {**config, "head_dim": head}


def dbrx(config: Config) -> Config:
    """Take the base from attn_config, where DBRX has it (dbrx/configuration_dbrx.py)."""
    inner = config.get("attn_config")
    if first(("rope_theta", "rotary_emb_base"), config) is not None or not isinstance(inner, dict):
        return config
    return {**config, "rope_theta": first(("rope_theta", "rotary_emb_base"), inner)}


def phi3(config: Config) -> Config:
    """Take YaRN for LongRoPE, as the configuration class of Phi-3 does (phi3/configuration_phi3.py)."""

    def longrope(rope: Any) -> Any:
        if not isinstance(rope, dict):
            return rope
        named = rope.get("rope_type", rope.get("type"))
        mislabelled = isinstance(named, str) and ALIASES.get(named, named) == "yarn"
        named = {"rope_type": "longrope"} if mislabelled else {}
        return {**{name: longrope(value) for name, value in rope.items()}, **named}

    return {**config, **{key: longrope(config[key]) for key in DICTS if key in config}}


def deepseek_v4(config: Config) -> Config:
    """
    Take one dict of DeepSeek-V4 for all of its layer types, and the types of layers from compress_ratios.

    The code has no factor on cos and sin (deepseek_v4/modeling_deepseek_v4.py).
    """
    ratios = config.get("compress_ratios")
    count = config.get("num_hidden_layers")
    count = count if type(count) is int and count > 0 else None
    if config.get("layer_types") is None and isinstance(ratios, list | tuple):
        config = {**config, "layer_types": ["compressed" if ratio else "sliding_attention" for ratio in ratios[:count]]}
    rope = first(DICTS, config)
    if not isinstance(rope, dict) or not rope or any(isinstance(value, dict) for value in rope.values()):
        return config
    factor = {"attention_factor": 1.0} if rope_type(rope) == "yarn" else {}
    return {**config, "rope_parameters": None, "rope_scaling": {**factor, **rope}}


def llama4(config: Config) -> Config:
    """Take an empty no_rope_layers for none (llama4/configuration_llama4.py)."""
    return {**config, "no_rope_layers": None} if config.get("no_rope_layers") == [] else config


def dory(config: Config) -> Config:
    """Leave out the types "mlp" that Dory's files list after each layer, and count the others as layers."""
    listed = config.get("layer_types")
    if not isinstance(listed, list | tuple) or "mlp" not in listed:
        return config
    return {**config, "layer_types": listed[::2], "num_hidden_layers": len(listed[::2])}


def blip(config: Config) -> Config:
    """Write the class of a text that writes captions: it sees earlier tokens only (blip/modeling_blip_text.py, 537)."""
    text = config.get("text_config") or {}
    if not isinstance(text, dict) or config.get("architectures") != ["BlipForConditionalGeneration"]:
        return config
    return {**config, "text_config": {**text, "architectures": ["BlipTextLMHeadModel"]}}


def chatglm(config: Config) -> None:
    """Refuse ChatGLM before version 2, which rotates by two positions."""
    if config.get("kv_channels") is None or config.get("original_rope") is False:
        refuse(
            "config of 'chatglm' must have kv_channels, and original_rope not false (ChatGLM2 and later); got kv_channels "
            f"{config.get('kv_channels')!r} and original_rope {config.get('original_rope')!r}."
        )


def _switched(config: Config, key: str, on: Any) -> None:
    """Refuse a file that does not switch rotation on."""
    if config.get(key) != on:
        model = str(config.get("model_type"))
        refuse(f"config of {model!r} must have {key} {on!r}, or the model has no rotation; got {config.get(key)!r}.")


# what writes parts of a file, before they are read
PARENTS: dict[str, Callable[[Config], Config]] = {"blip": blip, **served_files.PARENTS}
FILES: dict[str, Callable[[Config], Config]] = {
    **served_files.FILES,
    "chatglm": kv_channels,
    "dbrx": dbrx,
    "deepseek_v4": deepseek_v4,
    "deepseek_v41": lambda config: deepseek_v4(served_files.deepseek_v41(config)),
    "dory": dory,
    "jetmoe": kv_channels,
    "llama4_text": llama4,
    "phi3": phi3,
    "phi3_v": phi3,
    "phi4mm": phi3,
    "phi4_multimodal": phi3,
    "zamba2": zamba2,
}
CHECKS: dict[str, Callable[[Config], None]] = {
    "chatglm": chatglm,
    "esm": lambda config: _switched(config, "position_embedding_type", "rotary"),  # esm/modeling_esm.py, 370
    "granitemoehybrid": lambda config: _switched(config, "position_embedding_type", "rope"),  # granitemoehybrid, 167
    "zamba2": lambda config: _switched(config, "use_mem_rope", True),  # zamba2/modeling_zamba2.py, 307
}
