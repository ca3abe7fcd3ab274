"""
Files of models that transformers does not have, as the serving stacks read them: a function for each.

Each writes the keys that other files have. ``stack`` of the row of a type (tables/types.json) names the code that it follows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from posref.models.fields import first, integer, number, refuse

Config = Mapping[str, Any]
FULL, SLIDING, WITHOUT = "full_attention", "sliding_attention", "linear_attention"
DICTS = ("rope_scaling", "rope_parameters")
COUNT = ("num_hidden_layers",)
MOST = 10_000
WORDS = {"attn": FULL, "swa": SLIDING, "jet": WITHOUT, "attention": FULL}
MIXERS = {
    **dict.fromkeys(("minicpm4", "minicpm", "standard", "attention", "attn"), FULL),
    **dict.fromkeys(("lightning", "lightning_attn", "lightning-attn"), "lightning_attention"),
}


def count_of(config: Config) -> int:
    """Return the number of layers."""
    count = integer(COUNT, config)
    if count > MOST:
        refuse(f"num_hidden_layers must be at most {MOST}; got {count}.")
    return count


def deepseek_v41(config: Config) -> Config:
    """Take the keys of text_config beside those of the file, which come first."""
    inner = config.get("text_config")
    return {**inner, **config} if isinstance(inner, dict) else config


def internvl(config: Config) -> Config:
    """Write the type of the text, which the code reads in its architectures (SGLang, configs/internvl.py, 308)."""
    text = config.get("llm_config")
    if not isinstance(text, dict) or not text.get("architectures"):
        return config
    (name, *_), known = text["architectures"], ("Llama", "InternLM2", "Qwen2", "Qwen3Moe", "Qwen3", "GptOss")
    kinds = {f"{kind}ForCausalLM": {"Qwen3Moe": "qwen3_moe", "GptOss": "gpt_oss"}.get(kind, kind.lower()) for kind in known}
    if name not in kinds:
        refuse(f"architectures of llm_config must begin with one of {tuple(kinds)}; got {name!r}.")
    return {**config, "llm_config": {**text, "model_type": kinds[name]}}


def internlm2(config: Config) -> Config:
    """Refuse scalings that both stacks refuse (SGLang, configs/internvl.py, 136; mlx-lm, internlm2.py, 34)."""
    scaling = config.get("rope_scaling")
    kind = first(("rope_type", "type"), scaling) if isinstance(scaling, dict) else None
    if kind not in (None, "default", "linear", "dynamic"):
        refuse(f"rope_scaling must be 'linear' or 'dynamic', as no stack reads another for this model; got {kind!r}.")
    return config


def kimi_k3(config: Config) -> Config:
    """Refuse a text that rotates, which no stack runs (vLLM, models/kimi_k3/nvidia/model.py, 744)."""
    text = config.get("text_config")
    if isinstance(text, dict) and text.get("mla_use_nope") is False:
        refuse("mla_use_nope of text_config must be true, since no stack has a rotation for this model; got False.")
    return config


def typed(config: Config) -> Config:
    """Write the words for types of layers as transformers does: Jet-Nemotron, GigaChat 3.5."""
    listed = config.get("layer_types")
    numbers = config.get("full_attention_layers")
    if listed is None and isinstance(numbers, list | tuple):
        listed = [FULL if layer in numbers else WITHOUT for layer in range(count_of(config))]
    if not isinstance(listed, list | tuple):
        return config
    return {**config, "layer_types": [WORDS.get(kind, kind) for kind in listed]}


def groups(config: Config, linear_type: str = WITHOUT) -> Config:
    """Write the types of layers: the last of every layer_group_size has attention, or those that the list has 0 for."""
    size, count = first(("layer_group_size",), config, {"layer_group_size": 1}), count_of(config)
    if isinstance(size, list | tuple):
        linear = [value == 1 for value in size]
    else:
        period = integer(("layer_group_size",), {"layer_group_size": size})
        linear = [(layer + 1) % period != 0 for layer in range(count)]
    if len(linear) != count:
        refuse(f"layer_group_size must be an int, or a list of {count}; got {size!r}.")
    return {**config, "layer_types": [linear_type if is_linear else FULL for is_linear in linear]}


def bailing_v3(config: Config) -> Config:
    """Leave out partial_rotary_factor, which the code does not read: the slice for rotation is qk_rope_head_dim wide."""
    dicts = {key: dict(config[key]) for key in DICTS if isinstance(config.get(key), dict)}
    for rope in dicts.values():
        rope.pop("partial_rotary_factor", None)
    return {**groups(config), **dicts, "partial_rotary_factor": None}


def iquest(config: Config) -> Config:
    """Write the types of layers, the flags of those that rotate, and both bases, as IQuest-Q1's configuration does."""
    count = count_of(config)
    first_, block, last = (
        first((key,), config, {key: silent})
        for key, silent in (
            ("first_layers_types", [FULL]),
            ("hybrid_layers_types_block", [FULL, *[SLIDING] * 3]),
            ("last_layers_types", [FULL] * 3),
        )
    )
    times = integer(("num_hybrid_layers_block",), config, {"num_hybrid_layers_block": 21})
    on = config.get("use_hybrid_layers") is not False and config.get("use_sliding_window") is not False
    types = [*first_, *list(block) * min(times, count), *last] if on else [FULL] * count
    if len(types) != count:
        refuse(f"the types of layers must be {count}, one for each layer; got {len(types)}.")
    numbers = config.get("no_rope_layers") or ()
    parameters = first(DICTS[::-1], config)
    parameters = parameters if isinstance(parameters, dict) else {}
    head, turns = integer(("head_dim",), config, {"head_dim": 128}), first(("rotary_dim",), config, {"rotary_dim": 32})
    rope = {
        "rope_theta": first(("rope_theta",), config, {"rope_theta": 1e6}),
        **parameters,
        "partial_rotary_factor": turns / head,
    }
    sliding = {**rope, "rope_theta": first(("swa_rope_theta",), config, {"swa_rope_theta": 10_000.0})}
    flags = [int(layer not in numbers) for layer in range(count)]
    written = {"head_dim": head, "layer_types": types, "no_rope_layers": flags, "rope_theta": None, "rotary_dim": None}
    return {**config, **written, "rope_scaling": None, "rope_parameters": {FULL: rope, SLIDING: sliding}}


def nemotron_nas(config: Config) -> Config:
    """Write the types of layers: those whose attention is left out or made linear have none; and the layout (vLLM, 110)."""
    blocks = config.get("block_configs")
    config = {**config, "pairs_neighbours": config.get("position_embedding_type") in ("mistral_yarn", "rope_llama4")}
    if blocks is None:
        return config
    if not isinstance(blocks, list | tuple) or not all(isinstance(block, dict) for block in blocks):
        refuse(f"block_configs must be a list of dicts, one for each layer; got {type(blocks).__name__}.")
    attention = [block.get("attention") or {} for block in blocks]
    none = [bool(attention_block.get("no_op") or attention_block.get("replace_with_linear")) for attention_block in attention]
    return {**config, "layer_types": [WITHOUT if attention_block else FULL for attention_block in none]}


def minicpm_sala(config: Config) -> Config:
    """Write the types of layers. Those whose switch is off do not rotate."""
    count = count_of(config)
    listed = config.get("mixer_types") or ["minicpm4"]
    if not isinstance(listed, list | tuple) or not all(kind in MIXERS for kind in listed):
        refuse(f"mixer_types must be a list of {tuple(MIXERS)}; got {listed!r}.")
    types = [MIXERS[listed[layer % len(listed)]] for layer in range(count)]
    on = {FULL: config.get("attn_use_rope") is not False, MIXERS["lightning"]: config.get("lightning_use_rope") is not False}
    written = {**config, "layer_types": types, "no_rope_layers": [int(on[kind]) for kind in types]}
    if config.get("lightning_head_dim") is None:
        return written
    head = first(("head_dim",), config) or integer(("hidden_size",), config) // integer(("num_attention_heads",), config)
    rope = {"rope_theta": first(("rope_theta",), config, {"rope_theta": 10_000.0}), **(first(DICTS, config) or {})}
    dicts = {"rope_scaling": None, "rope_theta": None, "rope_parameters": dict.fromkeys(dict.fromkeys(types), rope)}
    return with_widths({**written, **dicts, "head_dim": head}, {MIXERS["lightning"]: config["lightning_head_dim"]})


def plamo2(config: Config) -> Config:
    """Write the types of layers of PLaMo 2: every mamba_step-th has attention, or the last of few (mlx-lm, is_mamba)."""
    count, step = count_of(config), integer(("mamba_step",), config, {"mamba_step": 2})
    if config.get("mamba_enabled") is False:
        types = [FULL] * count
    elif count <= step // 2:
        types = [FULL if layer == count - 1 else "mamba" for layer in range(count)]
    else:
        types = [FULL if layer % step == step // 2 else "mamba" for layer in range(count)]
    return {**config, "head_dim": config.get("hidden_size_per_head"), "layer_types": types, "rope_theta": None}


def baichuan_m1(config: Config) -> Config:
    """Write the types of layers and the width of their heads; sliding layers may have another number of heads."""
    count, hidden = count_of(config), integer(("hidden_size",), config)
    sliding = config.get("sliding_window_layers") or ()
    heads = {FULL: integer(("num_attention_heads",), config)}
    heads[SLIDING] = integer(("num_swa_attention_heads", "num_attention_heads"), config)
    types = [SLIDING if layer in sliding else FULL for layer in range(count)]
    widths = {str(layer): {"head_dim": hidden // heads[kind]} for layer, kind in enumerate(types)}
    base = number("base", ("rope_theta",), config, low=0, strict=True)
    return {
        **config,
        "layer_types": types,
        "per_layer_config": widths,
        "rope_theta": None,
        "rope_parameters": {kind: {"rope_theta": base} for kind in dict.fromkeys(types)},
    }


def phi3small(config: Config) -> Config:
    """Take the positions' factor for linear interpolation by its inverse."""
    scale = number("rope_position_scale", ("rope_position_scale",), config, {"rope_position_scale": 1.0}, low=0, strict=True)
    if scale > 1:
        refuse(f"rope_position_scale must be at most 1, since posref divides positions by a factor of at least 1; got {scale}.")
    return {**config, "rope_scaling": {"rope_type": "linear", "factor": 1 / scale} if scale < 1 else None}


def k2_horizon(config: Config) -> Config:
    """
    Take the rotation of K2-Horizon for p-RoPE ("proportional") of the whole head.

    Of the pairs (i, i + D/2) the first R/2 rotate, by base^(-2i/R). This is p-RoPE with the share R/D and base^(D/R).
    """
    head = integer(("head_dim",), config) if first(("head_dim",), config) is not None else None
    head = head or integer(("hidden_size",), config) // integer(("num_attention_heads",), config)
    lanes = integer(("rope_head_dim",), config, {"rope_head_dim": head})
    rope = first(DICTS[::-1], config)
    rope = rope if isinstance(rope, dict) else {}
    if lanes == head:
        return config
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        refuse("a file with a rope_head_dim below head_dim must have no scaling: posref has none for pairs of the whole head.")
    base = number("base", ("rope_theta",), rope, config, {"rope_theta": 1e7}, low=0, strict=True)
    parameters = {"rope_type": "proportional", "rope_theta": base ** (head / lanes), "partial_rotary_factor": lanes / head}
    return {**config, "head_dim": head, "rope_theta": None, "rope_scaling": None, "rope_parameters": parameters}


def step5(config: Config) -> Config:
    """Write the flags of layers that rotate, and a dict for each type of layer. Types of yarn_only_types alone are scaled."""
    count = count_of(config)
    types = config.get("layer_types")
    if not isinstance(types, list | tuple) or len(types) < count:
        refuse(f"layer_types must be a list of {count} words, one for each layer; got {types!r}.")
    bases, shares, flags = (
        _each(config, key, silent, count)
        for key, silent in (("rope_theta", 5e5), ("partial_rotary_factors", 1.0), ("use_rope_layers", 1))
    )
    parameters, only = first(DICTS, config) or {}, config.get("yarn_only_types")
    by_type: dict[str, Any] = {}
    for kind, base, share in zip(types, bases, shares, strict=False):
        scaled = parameters if not only or kind in only else {}
        rope = {**scaled, "rope_theta": base, "partial_rotary_factor": share}
        if by_type.setdefault(kind, rope) != rope:
            refuse(f"bases and shares must be the same in all {kind!r} layers; got {by_type[kind]} and {rope}.")
    turns = [int(bool(flag)) for flag in flags]
    return {**config, "rope_theta": None, "rope_scaling": None, "rope_parameters": by_type, "no_rope_layers": turns}


def _each(config: Config, key: str, silent: Any, count: int) -> Sequence[Any]:
    """Return a value for each layer, of a key with a list or one for all."""
    value = config.get(key)
    value = silent if value is None else value
    listed = list(value) if isinstance(value, list | tuple) else [value] * count
    if len(listed) < count:
        refuse(f"{key} must have an entry for each of {count} layers; got {len(listed)}.")
    return listed[:count]


def grok(config: Config) -> Config:
    """Write Grok's share of a head, and its scaling, which is YaRN only by two of its methods."""
    config = {**config, "partial_rotary_factor": 0.5 if config.get("rope_rotate_half_dims") else None}
    method = config.get("rope_type")
    if not method or method == "original":
        return config
    if method not in ("yarn", "yarn_linear") or first(("extrapolation_factor",), config, {"extrapolation_factor": 1}) != 1:
        refuse(f"rope_type must be null, 'original', 'yarn' or 'yarn_linear', with extrapolation_factor 1; got {method!r}.")
    keys = {"scaling_factor": "factor", "beta_fast": "beta_fast", "beta_slow": "beta_slow"}
    rope = {name: config[key] for key, name in keys.items() if config.get(key) is not None}
    if config.get("attn_factor") not in (None, 1):
        refuse(f"attn_factor must be 1, since YaRN's own factor is the other; got {config.get('attn_factor')!r}.")
    return {**config, "rope_scaling": {"rope_type": "yarn", **rope}, "rope_type": None}


def mimo_v2(config: Config) -> Config:
    """Write the types of layers and the width of their heads: hybrid_layer_pattern has 1 for sliding layers (MiMo-V2)."""
    pattern, count = config.get("hybrid_layer_pattern"), count_of(config)
    if not isinstance(pattern, list | tuple) or len(pattern) < count:
        pattern = [int(layer != 0 and (layer + 1) % 6 != 0) for layer in range(count)]
    types = config.get("layer_types") or [SLIDING if slides else FULL for slides in pattern[:count]]
    return with_widths({**config, "layer_types": types}, {SLIDING: config.get("swa_head_dim")})


def with_widths(config: Config, widths: Mapping[str, Any]) -> Config:
    """Write the width of heads of each layer, if those of a type differ."""
    usual = config.get("head_dim")
    if usual is None or all(width in (None, usual) for width in widths.values()):
        return config
    listed = {str(layer): {"head_dim": widths.get(kind) or usual} for layer, kind in enumerate(config["layer_types"])}
    return {**config, "per_layer_config": listed}


# what writes parts of a file, before they are read
PARENTS: dict[str, Callable[[Config], Config]] = {"internvl_chat": internvl}
FILES: dict[str, Callable[[Config], Config]] = {
    "bailing_moe_linear": lambda config: groups(config, MIXERS["lightning"]),  # which rotate
    "bailing_moe_v3": bailing_v3,
    "baichuan_m1": baichuan_m1,
    "gigachat3_5": typed,
    "grok": grok,
    "internlm2": internlm2,
    "iquest_q1": iquest,
    "jet_nemotron": typed,
    "k2_horizon": k2_horizon,
    "kimi_k3": kimi_k3,
    "mimo_v2": mimo_v2,
    "minicpm_sala": minicpm_sala,
    "nemotron-nas": nemotron_nas,
    "phi3small": phi3small,
    "plamo2": plamo2,
    "step5": step5,
}
