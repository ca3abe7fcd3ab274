"""
Which layers of a model rotate, and the type of each layer.

A model type names its rules in words, in the ``layers`` of its row (tables/types.json); layers count from 0:

- ``types`` gives the types of layers where the file does not list them: a list of types in turn, or a word of
  `posref.models.layer_rules.TYPES`. ``n`` and ``key``, of "every", are the period and the key that has it; ``last`` is the type
  of the last layer. With "listed" the file must list them.
- ``rotates``, a word of `posref.models.layer_rules.ROTATES`, says which layers rotate. ``never`` means that none does.

`posref.models.odd_layers` has the rules of single models. Other encodings than rotations are on the layers that a word of `ON`
says.
"""

from collections.abc import Callable
from typing import Any

from posref.models import odd_layers
from posref.models.fields import integer, refuse
from posref.models.layer_rules import ROTATES, SLIDING, TYPES, WITHOUT, Config, Types, base_of_layer, rules_of, unless_null

SLIDES, CHUNKED = (SLIDING, "hybrid_sliding"), "chunked_attention"
COUNT = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def number_of_layers(config: Config, layer: Any) -> int:
    """Return how many layers a model has. Refuse the number of a layer that it does not have."""
    count = integer(COUNT, config)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < count:
        refuse(f"layer must be an int from 0 to {count - 1}, the last layer of this config; got {layer!r}.")
    return count


def kinds_of_layers(config: Config, count: int) -> list[tuple[str | None, bool, float | None]]:
    """Return the type of every layer, whether it rotates, and its own base. Layers that agree in all three are alike."""
    layers = range(count)
    types = types_of_layers(config, layers, count)
    bases = [base_of_layer(config, layer) for layer in layers] if config.get("layer_rope_theta") else [None] * count
    return list(zip(types, rotations(config, layers, types, count), bases, strict=True))


def rotates(config: Config, layer: int, count: int) -> bool:
    """Return whether a layer rotates queries and keys."""
    layers = range(layer, layer + 1)
    return rotations(config, layers, types_of_layers(config, layers, count), count)[0]


def types_of_layers(config: Config, layers: range, count: int) -> Types:
    """Return the types of some layers of `count`: from the file, else by the rule of the model type. None without either."""
    kinds, rules, model = config.get("layer_types"), rules_of(config), str(config.get("model_type"))
    kinds = config.get("layers_block_type") if kinds is None else kinds
    rule = rules.get("types")
    if kinds is not None:
        if not isinstance(kinds, list | tuple) or len(kinds) < count or not all(isinstance(kind, str) for kind in kinds):
            refuse(f"layer_types must be a list of {count} words, one for each layer; got {kinds!r}.")
        return [str(kinds[layer]) for layer in layers]
    if model in odd_layers.TYPES:
        return odd_layers.TYPES[model](config, layers, count)
    if rule == "listed":
        refuse(f"config of {model!r} must have layer_types, since some of its layers have no attention; got none.")
    if isinstance(rule, list):
        return [rule[layer % len(rule)] for layer in layers]
    return TYPES[rule](config, rules, layers, count) if rule is not None else [None] * len(layers)


def rotations(config: Config, layers: range, types: Types, count: int) -> list[bool]:
    """Return whether each of some layers rotates queries and keys."""
    rules, model = rules_of(config), str(config.get("model_type"))
    able = [(layer, kind) for layer, kind in zip(layers, types, strict=True) if kind not in WITHOUT]
    if rules.get("never") or not able:
        return [False] * len(layers)
    if model in odd_layers.ROTATES:
        turns = odd_layers.ROTATES[model](config, able, count)
    else:
        turns = ROTATES.get(rules.get("rotates", ""), unless_null)(config, rules, able, count)
    rotating = {layer for (layer, _), turning in zip(able, turns, strict=True) if turning}
    return [layer in rotating for layer in layers]


def layers_on(word: str, config: Config, defaults: Config) -> list[bool]:
    """Return which layers have an encoding that only some have, by a word of `ON`."""
    if word == "all" and not any(config.get(key) for key in COUNT):
        return [True]
    listed = config.get("layer_types")
    count = len(listed) if isinstance(listed, list | tuple) else integer(COUNT, config, defaults)
    types = types_of_layers(config, range(count), count)
    turns = rotations(config, range(count), types, count)
    return [ON[word](kind, turning) for kind, turning in zip(types, turns, strict=True)]


ON: dict[str, Callable[[str | None, bool], bool]] = {
    "all": lambda kind, rotates: True,
    "attention": lambda kind, rotates: kind not in WITHOUT,
    "sliding": lambda kind, rotates: kind in SLIDES,
    "full": lambda kind, rotates: kind not in (*SLIDES, *WITHOUT),
    "chunked": lambda kind, rotates: kind == CHUNKED or (kind is None and rotates),
    "still": lambda kind, rotates: kind not in WITHOUT and not rotates,
}
