"""
The rules about layers that several model types share, by the words of their rows in tables/types.json.

The rules are from transformers 5.23.0: the value that its configuration classes give a missing key, and what its attention does
with that value. Layers count from 0. Rules of one model are in `posref.models.odd_layers`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from posref.models.fields import integer, refuse
from posref.models.model_types import model_type

FULL, SLIDING = "full_attention", "sliding_attention"
WITHOUT = ("linear_attention", "conv", "mamba", "recurrent")  # layer types that have nothing to rotate
Config: TypeAlias = Mapping[str, Any]
Rules: TypeAlias = Mapping[str, Any]
Types: TypeAlias = Sequence[str | None]
Able = Sequence[tuple[int, str | None]]  # layers that have something to rotate, with their types


def rules_of(config: Config) -> Rules:
    """Return the rules about layers of a config's model type."""
    rules: Rules = model_type(config.get("model_type")).get("layers", {})
    return rules


def base_of_layer(config: Config, layer: int | None) -> float | None:
    """Return a layer's own base: 0 if it does not rotate, None if it has none. Without `layer`, return the only base."""
    bases = config.get("layer_rope_theta")
    if not bases:
        return None
    rule = rules_of(config).get("rotates", "")
    if not rule.startswith("bases"):
        model = str(config.get("model_type"))
        refuse(f"layer_rope_theta must be null for {model!r}, whose code is not known to read it; got {bases!r}.")
    if not isinstance(bases, list | tuple) or not all(isinstance(b, int | float) and b >= 0 for b in bases):
        refuse(f"layer_rope_theta must be a list of numbers of at least 0, one for each layer; got {bases!r}.")
    from_the_last = rule == "bases, from the last"  # here only 0 has a meaning (muse_glimmer modeling, 511)
    if layer is not None:
        if layer >= len(bases):
            refuse(f"layer_rope_theta must have an entry for every layer; got {len(bases)} entries for layer {layer}.")
        return None if from_the_last and bases[layer] else float(bases[layer])
    different = sorted({float(base) for base in bases if base})
    if different and from_the_last:
        return None
    if len(different) > 1:
        refuse(f"layer must be given, since layer_rope_theta has several bases, {different}; got None.")
    return different[0] if different else 0.0


def listed(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether no_rope_layers has a 1: despite its name, 1 rotates (configuration of llama4, 170; of smollm3, 101)."""
    flags = config.get("no_rope_layers")
    if flags is None:
        interval = integer(("no_rope_layer_interval",), config, {"no_rope_layer_interval": 4})
        return [(layer + 1) % interval != 0 for layer, _ in layers]
    if not isinstance(flags, list | tuple) or len(flags) != count or not all(g in (0, 1) for g in flags):
        received = f"{len(flags)} for {count}" if isinstance(flags, list | tuple) else repr(flags)
        refuse(f"no_rope_layers must have num_hidden_layers entries, 1 where a layer rotates; got {received}.")
    return [bool(flags[layer]) for layer, _ in layers]


def _bases(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer has a base. Without a list, Muse counts from the last (configuration, 157); all others rotate."""
    if config.get("layer_rope_theta"):
        return [base_of_layer(config, layer) != 0 for layer, _ in layers]
    return [rules["rotates"] == "bases" or (count - 1 - layer) % 4 != 0 for layer, _ in layers]


def sliding(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer is sliding. Without a window no layer rotates."""
    return [has_window(config) and kind == SLIDING for _, kind in layers]


def _sliding_or_no_window(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether a layer is sliding. Without a window every layer rotates."""
    return [not has_window(config) or kind == SLIDING for _, kind in layers]


def unless_null(config: Config, rules: Rules, layers: Able, count: int) -> list[bool]:
    """Return whether the parameters of a layer's type are not null. If they are, it does not rotate."""
    parameters = config.get("rope_parameters")
    if not isinstance(parameters, dict):
        return [True] * len(layers)
    return [not (kind in parameters and parameters[kind] is None) for _, kind in layers]


def has_window(config: Config) -> bool:
    """Return whether the file has a window."""
    return config.get("sliding_window") is not None  # defaults are filled in already


ROTATES: dict[str, Callable[[Config, Rules, Able, int], list[bool]]] = {
    "bases": _bases,
    "bases, from the last": _bases,
    "listed": listed,
    "sliding": sliding,
    "sliding, or all without a window": _sliding_or_no_window,
    "sliding, window or not": lambda config, rules, layers, count: [kind == SLIDING for _, kind in layers],
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


def _every_from_the_first(config: Config, rules: Rules, layers: range, count: int) -> Types:
    n = integer(("global_attn_every_n_layers",), config, {"global_attn_every_n_layers": rules.get("n", 3)})
    return [FULL if layer % n == 0 else SLIDING for layer in layers]


def _from_max_window_layers(config: Config, rules: Rules, layers: range, count: int) -> Types:
    """Return the types of layers of Qwen2 and its kin: full below max_window_layers, and everywhere without a window."""
    on = bool(config.get("use_sliding_window", rules["types"].endswith("without a switch"))) and has_window(config)
    first_sliding = config.get("max_window_layers", count)
    return [SLIDING if on and layer >= first_sliding else FULL for layer in layers]


def _fourth_from_the_last(config: Config, rules: Rules, layers: range, count: int) -> Types:
    return [FULL if (count - 1 - layer) % 4 == 0 else SLIDING for layer in layers]


TYPES: dict[str, Callable[[Config, Rules, range, int], Types]] = {
    "every": _every,
    "every fourth from the last": _fourth_from_the_last,
    "every, from the first": _every_from_the_first,
    "from max_window_layers": _from_max_window_layers,
    "from max_window_layers, without a switch": _from_max_window_layers,
}
