"""
Which layers of a model rotate, and the type of each layer.

The rules are from transformers 5.23.0: the value that its configuration classes give a missing key, and what its attention does
with that value. Layers count from 0.
"""

from collections.abc import Callable, Mapping
from typing import Any

from posref.models.fields import integer, refuse

FULL, SLIDING = "full_attention", "sliding_attention"
# In these model types no layer rotates.
NEVER = ("glm5_next_text", "inkling2_text", "inkling_text", "jamba", "kimi_linear", "nemotron_h", "zamba")
WITHOUT = ("linear_attention", "conv", "mamba", "recurrent")  # layer types that have nothing to rotate
COUNT = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
# Model types where every n-th layer is full and the others are sliding: the key that has n, and its default.
_EVERY: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("gemma3_text", "t5gemma2_decoder", "t5gemma2_text"), ("sliding_window_pattern", 6)),
    **dict.fromkeys(("cohere2", "exaone4", "exaone_moe"), ("sliding_window_pattern", 4)),
    "afmoe": ("global_attn_every_n_layers", 4), "gemma3n_text": ("", 5), "kolibri1": ("", 5), "olmo3": ("", 4),
    **dict.fromkeys(("beam", "diffusion_gemma_text", "gemma4_text", "gemma4_unified_text"), ("", 6)), "ultrabert": ("", 3),
}  # fmt: skip
_LAST_IS_FULL = ("beam", "diffusion_gemma_text", "gemma4_text", "gemma4_unified_text")
_LISTED = ("llama4_text", "mistral_large4_text", "smollm3")  # these have no_rope_layers, where 1 means that a layer rotates
_BASES = ("granite_swa", "granitemoe_swa", "muse_glimmer_text", "muse_spark_text")  # these have layer_rope_theta
_FROM_THE_LAST = ("muse_glimmer_text", "muse_spark_text")  # here only 0 has a meaning (muse_glimmer modeling, 511)
# Some layers of these have no attention, and a file without layer_types does not say which.
_MIXED = ("bailing_hybrid", "granitemoehybrid", "lfm2", "lfm2_moe", "minimax", "zamba2")
_SLIDING_ROTATE = ("cohere2", "cohere2_moe", "flint")  # full layers do not; without a window no layer does
_FULL_DO_NOT = ("exaone4", "exaone_moe", "kolibri1")  # the same, but without a window every layer rotates


def number_of_layers(config: Mapping[str, Any], layer: Any) -> int:
    """Return how many layers a model has. Refuse the number of a layer that it does not have."""
    count = integer(COUNT, config)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < count:
        refuse(f"layer must be an int from 0 to {count - 1}, the last layer of this config; got {layer!r}.")
    return count


def type_of_layer(config: Mapping[str, Any], layer: int, count: int) -> str | None:
    """Return the type of a layer: from the file, else by the rule of its model type. None if there is neither."""
    given, model = config.get("layer_types"), str(config.get("model_type"))
    if given is None and model == "deepseek_v4" and isinstance(config.get("compress_ratios"), list | tuple):
        given = ["compressed" if ratio else SLIDING for ratio in config["compress_ratios"][:count]]
    if given is None:
        given = config.get("layers_block_type")
    if given is None:
        if model in _MIXED:
            refuse(f"config of {model!r} must have layer_types, since some of its layers have no attention; got none.")
        rule = _TYPES.get(model)
        return None if rule is None else rule(config, layer, count)
    if not isinstance(given, list | tuple) or len(given) < count or not all(isinstance(kind, str) for kind in given):
        refuse(f"layer_types must be a list of {count} words, one for each layer; got {given!r}.")
    return str(given[layer])


def rotates(config: Mapping[str, Any], layer: int, count: int) -> bool:
    """Return whether a layer rotates queries and keys."""
    model, kind = str(config.get("model_type")), type_of_layer(config, layer, count)
    if model in NEVER or kind in WITHOUT:
        return False
    if model in _LISTED:
        return _is_listed(config, model, layer, count)
    if model in _BASES:
        return base_of_layer(config, layer) != 0 if config.get("layer_rope_theta") else _rotates_by_default(model, layer, count)
    windowed = not ("sliding_window" in config and config["sliding_window"] is None)
    if model in _SLIDING_ROTATE:
        return (windowed and kind == SLIDING) or _is_forced(config, model, layer, count)
    if model in _FULL_DO_NOT:
        return not windowed or kind == SLIDING
    if model == "afmoe":
        return kind == SLIDING
    if model == "olmo_hybrid":
        return (config.get("rope_parameters") or {}).get("rope_theta", 1) is not None  # a missing key means 10000
    return not _is_null(config, kind)


def base_of_layer(config: Mapping[str, Any], layer: int | None) -> float | None:
    """Return a layer's own base: 0 if it does not rotate, None if it has none. Without `layer`, return the only base."""
    given, model = config.get("layer_rope_theta"), str(config.get("model_type"))
    if not given:
        return None
    if model not in _BASES:
        refuse(f"layer_rope_theta must be null for {model!r}, whose code is not known to read it; got {given!r}.")
    if not isinstance(given, list | tuple) or not all(isinstance(b, int | float) and b >= 0 for b in given):
        refuse(f"layer_rope_theta must be a list of numbers of at least 0, one for each layer; got {given!r}.")
    if layer is not None:
        if layer >= len(given):
            refuse(f"layer_rope_theta must have an entry for every layer; got {len(given)} entries for layer {layer}.")
        return None if model in _FROM_THE_LAST and given[layer] else float(given[layer])
    different = sorted({float(base) for base in given if base})
    if different and model in _FROM_THE_LAST:
        return None
    if len(different) > 1:
        refuse(f"layer must be given, since layer_rope_theta has several bases, {different}; got None.")
    return different[0] if different else 0.0


def _is_listed(config: Mapping[str, Any], model: str, layer: int, count: int) -> bool:
    """Return whether no_rope_layers has a 1: despite its name, 1 rotates (configuration of llama4, 170; of smollm3, 101)."""
    given = config.get("no_rope_layers")
    if given is None or (given == [] and model == "llama4_text"):
        interval = integer(("no_rope_layer_interval",), config, {"no_rope_layer_interval": 4})
        return (layer + 1) % interval != 0
    if not isinstance(given, list | tuple) or len(given) != count or not all(g in (0, 1) for g in given):
        found = f"{len(given)} for {count}" if isinstance(given, list | tuple) else repr(given)
        refuse(f"no_rope_layers must have num_hidden_layers entries, 1 where a layer rotates; got {found}.")
    return bool(given[layer])


def _rotates_by_default(model: str, layer: int, count: int) -> bool:
    """Return whether a layer rotates if the file has no layer_rope_theta. Muse counts from the last (configuration, 157)."""
    return model not in _FROM_THE_LAST or (count - 1 - layer) % 4 != 0


def _is_forced(config: Mapping[str, Any], model: str, layer: int, count: int) -> bool:
    """Return whether a full layer rotates: in Cohere2-MoE those with a dense MLP do (modeling, 296)."""
    if model != "cohere2_moe" or config.get("prefix_dense_sliding_window_pattern", 1) != 1:
        return False
    dense = config.get("mlp_layer_types")
    if dense is None:
        return layer < int(config.get("first_k_dense_replace", 0))
    if not isinstance(dense, list | tuple) or len(dense) != count:
        refuse(f"mlp_layer_types must be a list of {count} words, one for each layer; got {dense!r}.")
    return bool(dense[layer] == "dense")


def _is_null(config: Mapping[str, Any], kind: str | None) -> bool:
    """Return whether the parameters of a layer type are null. Then it does not rotate, as in beam (modeling, 492)."""
    given = config.get("rope_parameters")
    if given is None:
        return config.get("model_type") == "beam" and kind == FULL
    return isinstance(given, Mapping) and kind in given and given[kind] is None


# ---- types of layers where the file does not list them -----------------------------------------------------------------------
def _every(config: Mapping[str, Any], layer: int, count: int) -> str:
    model = str(config.get("model_type"))
    key, silent = _EVERY[model]
    if model in _FULL_DO_NOT and config.get("sliding_window", 0) is None:
        return FULL
    n = integer((key,), config, {key: silent})
    last = model in _LAST_IS_FULL and layer == count - 1
    return FULL if last or (layer + 1) % n == 0 else SLIDING


def _from_the_last(config: Mapping[str, Any], layer: int, count: int) -> str:
    return FULL if (count - 1 - layer) % 4 == 0 else SLIDING


def _modernbert(config: Mapping[str, Any], layer: int, count: int) -> str:
    n = integer(("global_attn_every_n_layers",), config, {"global_attn_every_n_layers": 3})
    return FULL if layer % n == 0 else SLIDING


def _cohere2_moe(config: Mapping[str, Any], layer: int, count: int) -> str:
    """Return the type of a layer. The pattern starts again after the dense layers (configuration, 140)."""
    dense = int(config.get("first_k_dense_replace", 0))
    key = "prefix_dense_sliding_window_pattern" if layer < dense else "sliding_window_pattern"
    n = integer((key,), config, {"prefix_dense_sliding_window_pattern": 1, "sliding_window_pattern": 4})
    return FULL if ((layer if layer < dense else layer - dense) + 1) % n == 0 else SLIDING


def _flint(config: Mapping[str, Any], layer: int, count: int) -> str:
    return FULL if layer < 2 or layer % 4 == 1 or layer == count - 1 else SLIDING


def _mimo(config: Mapping[str, Any], layer: int, count: int) -> str:
    return FULL if layer == 0 or (layer + 1) % 6 == 0 else SLIDING


def _lfm3(config: Mapping[str, Any], layer: int, count: int) -> str:
    return FULL if layer % 4 == 2 else SLIDING if layer % 4 == 0 and layer else "conv"


def _qwen3_next(config: Mapping[str, Any], layer: int, count: int) -> str:
    n = integer(("full_attention_interval",), config, {"full_attention_interval": 4})
    return FULL if (layer + 1) % n == 0 else "linear_attention"


def _bamba(config: Mapping[str, Any], layer: int, count: int) -> str:
    """Return the type of a layer of Bamba (configuration, 97)."""
    return FULL if layer in (config.get("attn_layer_indices") or ()) else "linear_attention"


def _recurrent_gemma(config: Mapping[str, Any], layer: int, count: int) -> str:
    """Return the type of a layer of RecurrentGemma, whose blocks repeat (configuration, 101)."""
    blocks = config.get("block_types") or ("recurrent", "recurrent", "attention")
    return str(blocks[layer % len(blocks)])


def _olmo_hybrid(config: Mapping[str, Any], layer: int, count: int) -> str:
    return FULL if layer % 4 == 3 or (count < 4 and layer == count - 1) else "linear_attention"


_TYPES: dict[str, Callable[[Mapping[str, Any], int, int], str]] = {
    **dict.fromkeys(_EVERY, _every),
    **dict.fromkeys(_FROM_THE_LAST, _from_the_last),
    **dict.fromkeys(("modernbert", "modernbert-decoder"), _modernbert),
    **dict.fromkeys(("laguna", "mellum"), lambda config, layer, count: FULL),
    "bamba": _bamba,
    "cohere2_moe": _cohere2_moe,
    "flint": _flint,
    "lfm3": _lfm3,
    "mimo_v2_flash": _mimo,
    "olmo_hybrid": _olmo_hybrid,
    "qwen3_next": _qwen3_next,
    "recurrent_gemma": _recurrent_gemma,
}
