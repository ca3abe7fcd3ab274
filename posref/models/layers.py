"""
Which layers of a model rotate, and the type of each layer.

The rules are from transformers 5.23.0: the value that its configuration classes give a missing key, and what its attention does
with that value. Layers count from 0. A model type names its rules in words, in the ``layers`` of its row (tables/types.json):

- ``types``, a word of `TYPES`, gives the types of layers where the file does not list them; ``key`` and ``n``, of "every", are
  the key that has the period and its default, ``key`` of "numbers" that of the numbers; ``last`` is the type of the last layer.
  With "listed" the file must list them.
- ``rotates``, a word of `ROTATES`, says which layers rotate. ``never`` means that none does.
- ``names`` are the names of types in the parameters by layer type, where these differ ("*" for all others).
- ``empty`` is what an empty list of layers means; ``switch``, false if a window needs no use_sliding_window; ``beside``, a
  word that files list after each layer and count as one (Dory's "mlp").

Other encodings than rotations are on the layers that a word of `ON` says.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from posref.models.fields import integer, refuse
from posref.models.model_types import model_type

FULL, SLIDING = "full_attention", "sliding_attention"
WITHOUT = ("linear_attention", "conv", "mamba", "recurrent")  # layer types that have nothing to rotate
SLIDES, CHUNKED = (SLIDING, "hybrid_sliding"), "chunked_attention"
COUNT = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
Config: TypeAlias = Mapping[str, Any]
Rules: TypeAlias = Mapping[str, Any]
Types: TypeAlias = Sequence[str | None]


def rules_of(config: Config) -> Rules:
    """Return the rules about layers of a config's model type."""
    rules: Rules = model_type(config.get("model_type")).get("layers", {})
    return rules


def number_of_layers(config: Config, layer: Any) -> int:
    """Return how many layers a model has. Refuse the number of a layer that it does not have."""
    count = integer(COUNT, config)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < count:
        refuse(f"layer must be an int from 0 to {count - 1}, the last layer of this config; got {layer!r}.")
    return count


def kinds_of_layers(config: Config, count: int) -> list[tuple[str | None, bool, float | None]]:
    """Return the type of every layer, whether it rotates, and its own base. Layers that agree in all three are alike."""
    layers, rules = range(count), rules_of(config)
    types = types_of_layers(config, rules, layers, count)
    bases = [base_of_layer(config, layer) for layer in layers]
    return list(zip(types, rotations(config, rules, layers, types, count), bases, strict=True))


def type_of_layer(config: Config, layer: int, count: int) -> str | None:
    """Return the type of a layer: from the file, else by the rule of its model type. None if there is neither."""
    return types_of_layers(config, rules_of(config), range(layer, layer + 1), count)[0]


def rotates(config: Config, layer: int, count: int) -> bool:
    """Return whether a layer rotates queries and keys."""
    rules, one = rules_of(config), range(layer, layer + 1)
    return rotations(config, rules, one, types_of_layers(config, rules, one, count), count)[0]


def types_of_layers(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of some layers of `count`: see `type_of_layer`."""
    given = config.get("layer_types")
    if given is None and rules.get("types") == "compressed" and isinstance(config.get("compress_ratios"), list | tuple):
        given = ["compressed" if ratio else SLIDING for ratio in config["compress_ratios"][:count]]
    if given is None:
        given = config.get("layers_block_type")
    if given is None:
        if rules.get("types") == "listed":
            model = str(config.get("model_type"))
            refuse(f"config of {model!r} must have layer_types, since some of its layers have no attention; got none.")
        rule = TYPES.get(rules.get("types", ""))
        return [None] * len(layers) if rule is None else rule(config, rules, layers, count)
    if not isinstance(given, list | tuple) or len(given) < count or not all(isinstance(kind, str) for kind in given):
        refuse(f"layer_types must be a list of {count} words, one for each layer; got {given!r}.")
    return [str(given[layer]) for layer in layers]


def rotations(config: Config, rules: Rules, layers: range, types: Types, count: int) -> list[bool]:
    """Return whether each of some layers rotates queries and keys."""
    if rules.get("never"):
        return [False] * len(layers)
    rule = ROTATES.get(rules.get("rotates", ""), _unless_null)
    able = [(layer, kind) for layer, kind in zip(layers, types, strict=True) if kind not in WITHOUT]
    found = dict(zip((layer for layer, _ in able), rule(config, rules, able, count) if able else (), strict=True))
    return [found.get(layer, False) for layer in layers]


def layers_on(word: str, config: Config, defaults: Config) -> list[bool]:
    """Return which layers have an encoding that only some have, by a word of `ON`."""
    if word == "all" and not any(config.get(key) for key in COUNT):
        return [True]
    listed, rules = config.get("layer_types"), rules_of(config)
    count = len(listed) if isinstance(listed, list | tuple) else integer(COUNT, config, defaults)
    types = types_of_layers(config, rules, range(count), count)
    turns = rotations(config, rules, range(count), types, count)
    return [ON[word](kind, rotates) for kind, rotates in zip(types, turns, strict=True)]


def base_of_layer(config: Config, layer: int | None) -> float | None:
    """Return a layer's own base: 0 if it does not rotate, None if it has none. Without `layer`, return the only base."""
    given = config.get("layer_rope_theta")
    if not given:
        return None
    rule = rules_of(config).get("rotates", "")
    if not rule.startswith("bases"):
        model = str(config.get("model_type"))
        refuse(f"layer_rope_theta must be null for {model!r}, whose code is not known to read it; got {given!r}.")
    if not isinstance(given, list | tuple) or not all(isinstance(b, int | float) and b >= 0 for b in given):
        refuse(f"layer_rope_theta must be a list of numbers of at least 0, one for each layer; got {given!r}.")
    from_the_last = rule == "bases, from the last"  # here only 0 has a meaning (muse_glimmer modeling, 511)
    if layer is not None:
        if layer >= len(given):
            refuse(f"layer_rope_theta must have an entry for every layer; got {len(given)} entries for layer {layer}.")
        return None if from_the_last and given[layer] else float(given[layer])
    different = sorted({float(base) for base in given if base})
    if different and from_the_last:
        return None
    if len(different) > 1:
        refuse(f"layer must be given, since layer_rope_theta has several bases, {different}; got None.")
    return different[0] if different else 0.0


# ---- which layers rotate -----------------------------------------------------------------------------------------------------
Able = Sequence[tuple[int, str | None]]  # layers that have something to rotate, with their types


def _listed(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether no_rope_layers has a 1: despite its name, 1 rotates (configuration of llama4, 170; of smollm3, 101)."""
    given = config.get("no_rope_layers")
    if given is None or (given == [] and rules.get("empty") == "interval"):
        interval = integer(("no_rope_layer_interval",), config, {"no_rope_layer_interval": 4})
        return [(layer + 1) % interval != 0 for layer, _ in layers]
    if not isinstance(given, list | tuple) or len(given) != count or not all(g in (0, 1) for g in given):
        found = f"{len(given)} for {count}" if isinstance(given, list | tuple) else repr(given)
        refuse(f"no_rope_layers must have num_hidden_layers entries, 1 where a layer rotates; got {found}.")
    return [bool(given[layer]) for layer, _ in layers]


def _bases(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer has a base. Without a list, Muse counts from the last (configuration, 157); all others rotate."""
    if config.get("layer_rope_theta"):
        return [base_of_layer(config, layer) != 0 for layer, _ in layers]
    return [rules["rotates"] == "bases" or (count - 1 - layer) % 4 != 0 for layer, _ in layers]


def _sliding(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer is sliding. Without a window no layer rotates."""
    return [_has_window(config) and kind == SLIDING for _, kind in layers]


def _sliding_or_dense(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer is sliding, or has a dense MLP (Cohere2-MoE, modeling, 296)."""
    sliding = _sliding(config, rules, layers, count)
    if all(sliding) or config.get("prefix_dense_sliding_window_pattern", 1) != 1:
        return sliding
    dense = config.get("mlp_layer_types")
    if dense is None:
        leading = int(config.get("first_k_dense_replace", 0))
        return [turns or layer < leading for turns, (layer, _) in zip(sliding, layers, strict=True)]
    if not isinstance(dense, list | tuple) or len(dense) != count:
        refuse(f"mlp_layer_types must be a list of {count} words, one for each layer; got {dense!r}.")
    return [turns or bool(dense[layer] == "dense") for turns, (layer, _) in zip(sliding, layers, strict=True)]


def _sliding_or_no_window(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer is sliding. Without a window every layer rotates."""
    return [not _has_window(config) or kind == SLIDING for _, kind in layers]


def _sliding_always(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    return [kind == SLIDING for _, kind in layers]


def _with_base(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether the base is not null. A missing key means 10000."""
    return [(config.get("rope_parameters") or {}).get("rope_theta", 1) is not None] * len(layers)


def _unless_null(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether the parameters of a layer's type are not null. If they are, it does not rotate."""
    given = config.get("rope_parameters")
    if not isinstance(given, dict):
        return [True] * len(layers)
    return [not (kind in given and given[kind] is None) for _, kind in layers]


def _sliding_unless_given(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return the same, but only sliding layers rotate if the file has no parameters, as in beam (modeling, 492)."""
    if config.get("rope_parameters") is None:
        return [kind != FULL for _, kind in layers]
    return _unless_null(config, rules, layers, count)


def _has_window(config: Config) -> bool:
    return config.get("sliding_window") is not None  # defaults are filled in already


ON: dict[str, Callable[[str | None, bool], bool]] = {
    "all": lambda kind, rotates: True,
    "attention": lambda kind, rotates: kind not in WITHOUT,
    "sliding": lambda kind, rotates: kind in SLIDES,
    "full": lambda kind, rotates: kind not in (*SLIDES, *WITHOUT),
    "chunked": lambda kind, rotates: kind == CHUNKED or (kind is None and rotates),
    "still": lambda kind, rotates: kind not in WITHOUT and not rotates,
}
ROTATES: dict[str, Callable[[Config, Rules, Able, int], list[bool]]] = {
    "bases": _bases,
    "bases, from the last": _bases,
    "listed": _listed,
    "sliding": _sliding,
    "sliding or dense": _sliding_or_dense,
    "sliding unless given": _sliding_unless_given,
    "sliding, or all without a window": _sliding_or_no_window,
    "sliding, window or not": _sliding_always,
    "with a base": _with_base,
}


# ---- types of layers where the file does not list them -----------------------------------------------------------------------
def _every(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return a full layer after every n - 1 sliding ones."""
    if rules.get("rotates") == "sliding, or all without a window" and config.get("sliding_window", 0) is None:
        return [FULL] * len(layers)
    key = rules.get("key", "")
    n = integer((key,), config, {key: rules["n"]})
    last = count - 1 if rules.get("last") == "full" else None
    return [FULL if layer == last or (layer + 1) % n == 0 else SLIDING for layer in layers]


def _fourth_from_the_last(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL if (count - 1 - layer) % 4 == 0 else SLIDING for layer in layers]


def _every_from_the_first(config: Config, rules: Rules, layers: range, count: int) -> Types:
    n = integer(("global_attn_every_n_layers",), config, {"global_attn_every_n_layers": rules.get("n", 3)})
    return [FULL if layer % n == 0 else SLIDING for layer in layers]


def _after_dense(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of Cohere2-MoE. The pattern starts again after the dense layers (configuration, 140)."""
    dense = int(config.get("first_k_dense_replace", 0))
    silent = {"prefix_dense_sliding_window_pattern": 1, "sliding_window_pattern": 4}
    periods = {before: integer((key,), config, silent) for before, key in zip((True, False), silent, strict=True)
               if any((layer < dense) is before for layer in layers)}  # fmt: skip
    return [
        FULL if ((layer if layer < dense else layer - dense) + 1) % periods[layer < dense] == 0 else SLIDING for layer in layers
    ]


def _flint(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL if layer < 2 or layer % 4 == 1 or layer == count - 1 else SLIDING for layer in layers]


def _from_max_window_layers(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of Qwen2 and its kin: full below max_window_layers, and everywhere without a window."""
    on = bool(config.get("use_sliding_window", rules.get("switch") is False)) and _has_window(config)
    first_sliding = config.get("max_window_layers", count)
    return [SLIDING if on and layer >= first_sliding else FULL for layer in layers]


def _even_below(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of Qwen2-MoE: even ones below max_window_layers are sliding (configuration, 117)."""
    on, end = bool(config.get("use_sliding_window")), config.get("max_window_layers", count)
    return [SLIDING if on and layer % 2 == 0 and layer < end else FULL for layer in layers]


def _still(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of SmolLM3: with use_sliding_window those that do not rotate are sliding (configuration)."""
    on = bool(config.get("use_sliding_window")) and bool(config.get("sliding_window"))
    turns = _listed(config, rules, [(layer, None) for layer in layers], count)
    return [SLIDING if on and not rotates else FULL for rotates in turns]


def _lara(config: Config, rules: Rules, layers: range, count: int) -> Types:
    pattern = ("linear_attention", SLIDING, "linear_attention", FULL, SLIDING)
    return [pattern[layer % len(pattern)] for layer in layers]


def _sliding_types(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [SLIDING] * len(layers)


def _mimo(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL if layer == 0 or (layer + 1) % 6 == 0 else SLIDING for layer in layers]


def _lfm3(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL if layer % 4 == 2 else SLIDING if layer % 4 == 0 and layer else "conv" for layer in layers]


def _every_of_hybrid(config: Config, rules: Rules, layers: range, count: int) -> Types:
    n = integer(("full_attention_interval",), config, {"full_attention_interval": 4})
    return [FULL if (layer + 1) % n == 0 else "linear_attention" for layer in layers]


def _numbers(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of Bamba and LFM2, whose files have the numbers of full layers (configuration, 97; 83)."""
    given = config.get(rules.get("key", "attn_layer_indices"))
    if given is None:
        given = layers if rules.get("empty") == "full" else ()
    return [FULL if layer in given else "linear_attention" for layer in layers]


def _blocks(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of RecurrentGemma, whose blocks repeat (configuration, 101)."""
    blocks = config.get("block_types") or ("recurrent", "recurrent", "attention")
    return [str(blocks[layer % len(blocks)]) for layer in layers]


def _fourth_of_hybrid(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL if layer % 4 == 3 or (count < 4 and layer == count - 1) else "linear_attention" for layer in layers]


def _full(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL] * len(layers)


TYPES: dict[str, Callable[[Config, Rules, range, int], Types]] = {
    "after dense layers": _after_dense,
    "blocks": _blocks,
    "even below max_window_layers": _even_below,
    "every": _every,
    "every fourth from the last": _fourth_from_the_last,
    "every fourth of a hybrid": _fourth_of_hybrid,
    "every of a hybrid": _every_of_hybrid,
    "every, from the first": _every_from_the_first,
    "flint": _flint,
    "from max_window_layers": _from_max_window_layers,
    "full": _full,
    "lara": _lara,
    "lfm3": _lfm3,
    "mimo": _mimo,
    "numbers": _numbers,
    "sliding": _sliding_types,
    "still ones": _still,
}
