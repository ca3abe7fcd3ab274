"""The rope dict of a config.json, for one layer type, and what it and the rest of the file say of layout, base and lanes."""

from collections.abc import Mapping
from typing import Any

from posref.config_reading import even, first, integer, number, refuse
from posref.config_scaling import COMMON, rope_type, rotated_share
from posref.config_values import BY_LAYER, CHOOSES, DEFAULTS, LAYOUTS, MROPE, SILENT_ROPE

WORDS = ("half", "interleaved", "interleaved_to_half")


def check(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return `config` and what a silent file of its model type means; refuse a model that has no RoPE of its own."""
    if not isinstance(config, Mapping):
        refuse(f"config must be a mapping, the parsed config.json; got {type(config).__name__}.")
    model = str(config.get("model_type"))
    if "text_config" in config and model not in LAYOUTS:
        refuse(f"config must be that of the text model; got {config.get('model_type')!r}. Pass config['text_config'].")
    if config.get("alibi") is True:
        refuse("config must be of a model with rotary embeddings; got 'alibi': True.")
    if model == "chatglm" and (config.get("kv_channels") is None or config.get("original_rope") is False):
        refuse("config of 'chatglm' must have kv_channels, and original_rope not false (ChatGLM2 and later); got another.")
    return config, DEFAULTS.get(model, {})


def rope_dict(config: Mapping[str, Any], defaults: Mapping[str, Any], layer_type: str | None) -> dict[str, Any]:
    """Return the one dict of rope parameters that `layer_type` means, without the keys that are null."""
    key = "rope_scaling" if config.get("rope_scaling") is not None else "rope_parameters"
    given = config.get(key)
    if given is None:
        given = _silent(config)
    if not isinstance(given, Mapping):
        refuse(f"config[{key!r}] must be a dict or null; got {given!r}.")
    layers: dict[str, Any] = {}
    local = BY_LAYER.get(str(config.get("model_type")))
    if any(isinstance(value, Mapping) for value in given.values()):
        layers = _layers(given)
    elif local is not None:
        if key == "rope_parameters" and given:
            refuse(f"config['rope_parameters'] must be a dict by layer type for this model; got {dict(given)!r}.")
        full = first(("global_rope_theta", "rope_theta"), config, defaults)
        shared = given if local == "local_rope_theta" else {}
        layers["full_attention"] = {**given, "rope_theta": full}
        layers["sliding_attention"] = {**shared, "rope_theta": first((local,), config, defaults)}
    if not layers and layer_type is not None:
        refuse(f"layer_type must be None, since all layers of this config are alike; got {layer_type!r}.")
    if layers and not isinstance(layers.get(str(layer_type)), Mapping):
        known = tuple(name for name, value in layers.items() if isinstance(value, Mapping))
        refuse(f"layer_type must be one of {known}, the layer types of this config; got {layer_type!r}.")
    rope = layers[str(layer_type)] if layers else given
    return {name: value for name, value in rope.items() if value is not None}


def _silent(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dict of a file that has none; refuse a base that transformers would pass over."""
    given = SILENT_ROPE.get(str(config.get("model_type")), {})
    base, known = config.get("rope_theta"), given.get("rope_theta")
    layered = any(isinstance(value, Mapping) for value in given.values())
    if base is not None and (layered or (known is not None and base != known)):
        meant = "by layer type" if layered else known
        refuse(f"rope_theta without a rope dict must be {meant} for this model, as in transformers; got {base!r}.")
    return given


def _layers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return dicts by layer type; a key beside them may only be one that each of them has for itself."""
    beside = sorted(name for name, value in given.items() if value is not None and not isinstance(value, Mapping))
    strange = [name for name in beside if name not in COMMON]
    if strange:
        refuse(f"parameters beside those by layer type must be among {COMMON}; got {strange}. Move them inside.")
    return {name: value for name, value in given.items() if name not in beside}


def layout_of(config: Mapping[str, Any], layout: str | None) -> str:
    """Return the given layout, or that of the model type."""
    model = str(config.get("model_type"))
    if layout is None and model not in LAYOUTS and model not in MROPE:
        known = ", ".join(sorted(LAYOUTS))
        refuse(f"config['model_type'] must be a known one; got {model!r}. Pass layout, one of {WORDS}. Known: {known}.")
    if layout is not None and layout not in WORDS:
        refuse(f"layout must be one of {WORDS} or None; got {layout!r}.")
    if layout is not None:
        return layout
    if model in MROPE:
        return MROPE[model][1]
    return "half" if model in CHOOSES and config.get("rope_interleave") is False else LAYOUTS[model]


def base_of(rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> float:
    """Return the base: of the dict, then of the file, then of a silent file; or ChatGLM's multiple of 10000."""
    names, model = ("rope_theta", "rotary_emb_base"), str(config.get("model_type"))
    if first(("rope_ratio",), config, defaults) is not None:
        beside = first(names, rope, config)
        if beside is not None:
            refuse(f"a model with rope_ratio must have no rope_theta, since its base is 10000 rope_ratio; got {beside!r}.")
        return 10_000 * number("rope_ratio", ("rope_ratio",), config, defaults, low=0, strict=True)
    silent = {"rope_theta": 10_000.0} if model in LAYOUTS or model in MROPE else {}
    return number("base", names, rope, config, defaults, silent, low=0, strict=True)


def rotary_dim_of(
    rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any], layer_type: str | None
) -> int:
    """Return the rotated lanes: MLA's slice, else a fraction of the head, else GPT-J's own key, else the head."""
    if first(("qk_rope_head_dim",), config, defaults):
        return even(integer(("qk_rope_head_dim",), config, defaults))
    if rope_type(rope, str(config.get("model_type"))) == "proportional":
        return even(_head_dim(config, defaults, layer_type))
    silent = first(("partial_rotary_factor", "rotary_pct"), rope) is None
    if silent and first(("rotary_dim",), config, defaults) is not None:
        return even(integer(("rotary_dim",), config, defaults))
    return even(int(_head_dim(config, defaults, layer_type) * rotated_share(rope, config, defaults)))


def _head_dim(config: Mapping[str, Any], defaults: Mapping[str, Any], layer_type: str | None) -> int:
    """Return the head size of a layer type: Gemma 4's full layers have their own, which version 5 writes layer by layer."""
    if config.get("per_layer_config") is not None:
        own = _own_head_dims(config, layer_type)
        if own:
            return integer(("head_dim",), {"head_dim": own.pop()})
    elif layer_type == "full_attention" and first(("global_head_dim",), config, defaults) is not None:
        return integer(("global_head_dim",), config, defaults)
    names = ("head_dim", "kv_channels") if config.get("model_type") == "chatglm" else ("head_dim",)
    if first(names, config, defaults) is not None:
        return integer(names, config, defaults)
    hidden, heads = integer(("hidden_size", "n_embd"), config), integer(("num_attention_heads", "n_head"), config)
    return hidden // heads


def _own_head_dims(config: Mapping[str, Any], layer_type: str | None) -> list[Any]:
    """Return the one head size, if any, that `per_layer_config` gives to the layers of a type."""
    layers, types = config["per_layer_config"], config.get("layer_types")
    whole = isinstance(layers, Mapping) and all(str(i).isdigit() and isinstance(own, Mapping) for i, own in layers.items())
    if not whole or not isinstance(types, list | tuple):
        refuse(f"per_layer_config must be dicts by layer number, beside layer_types; got {layers!r} and {types!r}.")
    by_number = {int(i): own for i, own in layers.items()}
    sizes = [by_number.get(i, {}).get("head_dim") for i, kind in enumerate(types) if kind == layer_type]
    if not sizes or any(size != sizes[0] for size in sizes):
        refuse(f"per_layer_config must give all {layer_type!r} layers of layer_types one head_dim; got {sizes}.")
    return [size for size in sizes[:1] if size is not None]
