"""Find the rope dict of a config.json for one layer type, and the layout, base and number of rotated channels."""

from collections.abc import Mapping
from typing import Any, get_args

from posref.models.fields import even, first, integer, number, refuse
from posref.models.layers import NEVER
from posref.models.rope_scaling import COMMON, rope_type, rotated_share
from posref.models.table import positions_of, remedy
from posref.models.values import (
    BY_LAYER,
    CHOOSES,
    DEFAULTS,
    FLAT_TOO,
    HEAD_KEYS,
    LAYOUTS,
    MROPE,
    SILENT_ROPE,
    SWITCHES,
)
from posref.types import Layout

WORDS: tuple[Layout, ...] = get_args(Layout)
HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads", "encoder_num_attention_heads")


def check(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return `config` and the defaults of its model type. Refuse a model without RoPE."""
    model = str(config.get("model_type"))
    if config.get("alibi") is True:
        refuse("config must describe a model with rotary embeddings; got 'alibi': True.")
    if model in NEVER:
        refuse(f"config must describe a model with rotary embeddings; got {model!r}, where no layer rotates.")
    switch, on = SWITCHES.get(model, ("", None))
    if config.get(switch) != on:
        refuse(f"config of {model!r} must have {switch} {on!r}, or the model has no rotation; got {config.get(switch)!r}.")
    if model == "chatglm" and (config.get("kv_channels") is None or config.get("original_rope") is False):
        refuse(
            "config of 'chatglm' must have kv_channels, and original_rope not false (ChatGLM2 and later); got kv_channels "
            f"{config.get('kv_channels')!r} and original_rope {config.get('original_rope')!r}."
        )
    return config, DEFAULTS.get(model, {})


def rope_dict(config: Mapping[str, Any], defaults: Mapping[str, Any], layer_type: str | None) -> dict[str, Any]:
    """Return the one dict of rope parameters for `layer_type`, without its null keys."""
    given, layers = dicts_of(config, defaults)
    if not layers and layer_type is not None:
        refuse(f"layer_type must be None, since all layers of this config are alike; got {layer_type!r}.")
    if layers and not isinstance(layers.get(str(layer_type)), Mapping):
        known = tuple(name for name, value in layers.items() if isinstance(value, Mapping))
        refuse(f"layer_type must be one of {known}, the layer types of this config; got {layer_type!r}.")
    rope = layers[str(layer_type)] if layers else given
    return {name: value for name, value in rope.items() if value is not None}


def dicts_of(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the file's dict of rope parameters, and its dicts by layer type: empty if all layers are alike."""
    key = "rope_scaling" if config.get("rope_scaling") is not None else "rope_parameters"
    given = config.get(key)
    if given is None:
        given = _silent(config)
    if not isinstance(given, Mapping):
        refuse(f"config[{key!r}] must be a dict or null; got {given!r}.")
    layers: dict[str, Any] = {}
    model = str(config.get("model_type"))
    if any(isinstance(value, Mapping) for value in given.values()):
        layers = _layers(given)
    elif model in BY_LAYER:
        if key == "rope_parameters" and given and model not in FLAT_TOO:
            refuse(f"config['rope_parameters'] must be a dict by layer type for this model; got {dict(given)!r}.")
        layers = _by_layer(model, given, config, defaults)
    elif isinstance(config.get("rope_theta"), list | tuple):
        layers = _listed(given, config)
    return given, layers


def _by_layer(model: str, given: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return dicts by layer type for a file that names one base for each type and has at most one dict for all."""
    if given and not any(theirs for _, _, theirs in BY_LAYER[model]):
        refuse(f"config['rope_scaling'] must be null or a dict by layer type for this model; got {dict(given)!r}.")
    if model == "deepseek_v4" and rope_type(given, model) == "yarn":
        given = {"attention_factor": 1.0, **given}  # its code has no factor on cos and sin
    silent = {"rope_theta": 10_000.0}
    return {
        layer: {**(given if theirs else {}), "rope_theta": first(keys, config, defaults, silent)}
        for layer, keys, theirs in BY_LAYER[model]
    }


def _listed(given: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return dicts by layer type for a file that lists bases, and perhaps shares of the head, layer by layer (Step 3.5)."""
    windows = config.get("attention_windows") or ()
    kinds = config.get("layer_types") or ["sliding_attention" if window else "full_attention" for window in windows]
    bases, shares = config["rope_theta"], config.get("partial_rotary_factors") or [1.0] * len(config["rope_theta"])
    if not kinds or not len(kinds) <= min(len(bases), len(shares)):
        refuse(f"rope_theta must be one number, or one for each of layer_types; got {len(bases)} for {len(kinds)} layers.")
    found: dict[str, Any] = {}
    for kind, base, share in zip(kinds, bases, shares, strict=False):
        own = {"rope_theta": base, "partial_rotary_factor": share}
        if found.setdefault(kind, own) != own:
            refuse(f"rope_theta must be the same in all {kind!r} layers; got {found[kind]['rope_theta']} and {base}.")
    if given:
        found["full_attention"] = {**found.get("full_attention", {}), **given}
    return found


def _silent(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the default dict for a file that has none. Refuse a base that transformers would ignore."""
    base = config.get("rope_theta")
    if isinstance(base, list | tuple):
        return {}
    given = SILENT_ROPE.get(str(config.get("model_type")), {})
    known = given.get("rope_theta")
    layered = any(isinstance(value, Mapping) for value in given.values())
    if base is not None and (layered or (known is not None and base != known)):
        meant = "by layer type" if layered else known
        refuse(f"rope_theta without a rope dict must be {meant} for this model, as in transformers; got {base!r}.")
    return given


def _layers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return dicts by layer type. Only keys in `COMMON` may stand beside them."""
    beside = sorted(name for name, value in given.items() if value is not None and not isinstance(value, Mapping))
    strange = [name for name in beside if name not in COMMON]
    if strange:
        refuse(f"parameters beside those by layer type must be among {COMMON}; got {strange}. Move them inside.")
    return {name: value for name, value in given.items() if name not in beside}


def layout_of(config: Mapping[str, Any], layout: Layout | None) -> Layout:
    """Return the given layout, or the layout of the model type."""
    model = str(config.get("model_type"))
    if layout is None and model not in LAYOUTS and model not in MROPE:
        other = positions_of(model)
        if other is not None:
            refuse(f"config of {model!r} has no rotary embedding; its positions are {other} (see from_config).")
        meant = remedy(model, [*LAYOUTS, *MROPE])
        refuse(
            f"config['model_type'] must be a known one; got {config.get('model_type')!r}. Pass layout, one of {WORDS}. {meant}"
        )
    if layout is not None and layout not in WORDS:
        refuse(f"layout must be one of {WORDS} or None; got {layout!r}.")
    if layout is not None:
        return layout
    if model in MROPE:
        return MROPE[model][1]
    return "half" if model in CHOOSES and config.get("rope_interleave") is False else LAYOUTS[model]


def base_of(rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> float:
    """Return the base: from the dict, else the file, else the model type's default. ChatGLM's is a multiple of 10000."""
    names, model = ("rope_theta", "rotary_emb_base"), str(config.get("model_type"))
    if first(("rope_ratio",), config, defaults) is not None:
        beside = first(names, rope, config)
        if beside is not None:
            refuse(f"a model with rope_ratio must have no rope_theta, since its base is 10000 rope_ratio; got {beside!r}.")
        return 10_000 * number("rope_ratio", ("rope_ratio",), config, defaults, low=0, strict=True)
    silent = {"rope_theta": 10_000.0} if model in LAYOUTS or model in MROPE else {}
    inner = config.get("attn_config") if model == "dbrx" else None
    beside = inner if isinstance(inner, Mapping) else {}
    return number("base", names, rope, config, beside, defaults, silent, low=0, strict=True)


def rotary_dim_of(
    rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any], layer_type: str | None
) -> int:
    """Return the number of rotated channels: MLA's slice, else a fraction of the head, else GPT-J's own key, else the head."""
    if first(("qk_rope_head_dim",), config, defaults):
        own = {"qk_rope_head_dim": next(iter(_own(config, layer_type, "qk_rope_head_dim")), None)}
        swa = ("swa_qk_rope_head_dim",) if layer_type == "sliding_attention" else ()
        return even(integer((*swa, "qk_rope_head_dim"), own, config, defaults))
    if rope_type(rope, str(config.get("model_type"))) == "proportional":
        return even(_head_dim(config, defaults, layer_type))
    silent = first(("partial_rotary_factor", "rotary_pct"), rope) is None
    if silent and first(("rotary_dim",), config, defaults) is not None:
        return even(integer(("rotary_dim",), config, defaults))
    return even(int(_head_dim(config, defaults, layer_type) * rotated_share(rope, config, defaults)))


def _head_dim(config: Mapping[str, Any], defaults: Mapping[str, Any], layer_type: str | None) -> int:
    """Return the head size of a layer type. Gemma 4's full layers have their own; version 5 writes it for each layer."""
    own = _own(config, layer_type, "head_dim")
    if own:
        return integer(("head_dim",), {"head_dim": own[0]})
    listed = config.get("per_layer_config") is not None
    if not listed and layer_type == "full_attention" and first(("global_head_dim",), config, defaults) is not None:
        return integer(("global_head_dim",), config, defaults)
    model = str(config.get("model_type"))
    names = ("head_dim", HEAD_KEYS[model]) if model in HEAD_KEYS else ("head_dim",)
    if first(names, config, defaults) is not None:
        return integer(names, config, defaults)
    hidden = integer(HIDDEN, config) * (2 if model == "zamba2" else 1)  # its attention reads the input beside the state
    return hidden // integer(HEADS, config)


def _own(config: Mapping[str, Any], layer_type: str | None, key: str) -> list[Any]:
    """Return, in a list, the value of `key` that `per_layer_config` gives all layers of a type. Empty if it gives none."""
    if config.get("per_layer_config") is None or layer_type is None:
        return []
    layers, types = config["per_layer_config"], config.get("layer_types")
    whole = isinstance(layers, Mapping) and all(str(i).isdigit() and isinstance(own, Mapping) for i, own in layers.items())
    if not whole or not isinstance(types, list | tuple):
        refuse(f"per_layer_config must be dicts by layer number, beside layer_types; got {layers!r} and {types!r}.")
    by_number = {int(i): own for i, own in layers.items()}
    sizes = [by_number.get(i, {}).get(key) for i, kind in enumerate(types) if kind == layer_type]
    if not sizes or any(size != sizes[0] for size in sizes):
        refuse(f"per_layer_config must give all {layer_type!r} layers of layer_types one {key}; got {sizes}.")
    return [size for size in sizes[:1] if size is not None]
