"""Readers for the table of model types. Each returns encodings with their options, from the keys of a configuration."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.config import read_mrope, read_rope
from posref.models.fields import even, first, integer, number, refuse
from posref.models.layers import COUNT
from posref.models.values import MROPE

Reader = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], list[Entry | None]]
MOST = 10_000  # layers of a model, since each is read
HIDDEN = ("embed_dim", "hidden_size", "d_model")
HEADS = ("num_heads", "num_attention_heads")


def value_of(key: str, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Return the value of a key, which may be nested ("attn_config.alibi"), or its default."""
    inside: Any = config
    for name in key.split("."):
        if not isinstance(inside, Mapping) or name not in inside:
            return defaults.get(key)
        inside = inside[name]
    return inside


def options_of(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a row, with each key replaced by the file's value."""
    if row.get("options") is None:
        return None
    return {name: _resolved(name, given, config, defaults) for name, given in row["options"].items()}


def _resolved(name: str, given: Any, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    if not isinstance(given, Mapping):
        return given
    names = [given["key"]] if isinstance(given["key"], str) else given["key"]
    value = next((v for v in (value_of(key, config, defaults) for key in names) if v is not None), given.get("silent"))
    if isinstance(value, list | tuple) and value and "item" in given:
        value = value[given["item"]]
    wanted = given.get("type", "int")
    if isinstance(value, bool) or not isinstance(value, int if wanted == "int" else int | float):
        refuse(f"the file must have {' or '.join(names)}, of type {wanted}, for {name}; got {value!r}.")
    return value + given.get("plus", 0) if wanted == "int" else float(value)


def _rotary(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return RoPE or M-RoPE: one entry if all layers are alike, else one for each."""
    if config["model_type"] in MROPE:
        return [Entry("mrope", {**read_mrope(config, None, None)})]
    count = integer(COUNT, config, defaults) if first(COUNT, config, defaults) is not None else None
    if count is not None and count > MOST:
        refuse(f"{' or '.join(COUNT)} must be at most {MOST}; got {count}.")
    if count is None:
        return [Entry("rope", {**found}) if (found := read_rope(config, None, None, None)) else None]
    sized = config if first(COUNT, config) is not None else {**config, "num_hidden_layers": count}
    layers = [read_rope(sized, None, layer, None) for layer in range(count)]
    entries = [None if found is None else Entry("rope", {**found}) for found in layers]
    return entries[:1] if all(entry == entries[0] for entry in entries) else entries


def _changed(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the rotation of an indexer: the text's, with another layout or other channels."""
    entries = []
    for entry in _rotary(config, row, defaults):
        options = None if entry is None else {**(entry.options or {}), **row["options"]}
        entries.append(None if entry is None else Entry(entry.operation, options))
    return entries


def _compressed(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the rotation of DeepSeek-V4's compressed layers."""
    found = read_rope(config, "compress", None, None)
    return [None if found is None else Entry("rope", {**found})]


def _plain(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return RoPE over the whole head, with the base that the row names, for encoders without a rope dict."""
    options = options_of(row, config, defaults) or {}
    return [Entry("rope", {**options, "rotary_dim": even(_head(config, defaults)), "scaling": None})]


def _axial(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return a rotation by coordinates in an image or video. The head gives its widths, the file its base."""
    axes, options = row["axes"], dict(row["options"])
    width = even(2 * (_head(config, defaults, row.get("head")) // (2 * axes)))
    rope = config.get("rope_parameters")
    if rope is not None and (not isinstance(rope, Mapping) or rope.get("rope_type", "axial") not in ("axial", "default")):
        refuse(f"rope_parameters must be null or a dict of rope_type 'axial' or 'default' here; got {rope!r}.")
    places = [] if rope is None else [rope]
    base = number("base", ("rope_theta",), *places, config, defaults, low=0, strict=True)
    return [Entry("axial_rope", {"dims": (width,) * axes, "base": base, **options})]


def _grid(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return sinusoids of rows and columns, each half as wide as the model."""
    options = options_of(row, config, defaults) or {}
    if options["widths"] % 4 or options["widths"] < 4:
        refuse(f"the width of sinusoids of rows and columns must be a multiple of 4; got {options['widths']}.")
    return [Entry("sinusoidal_nd", {**options, "widths": (options["widths"] // 2,) * 2})]


def _compass(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the M-RoPE of each layer, by its type. A type whose parameters are null has none."""
    types, given = _by_type(config)
    same = {name: value for name, value in config.items() if name not in ("layer_types", "rope_parameters")}
    found = {
        kind: None
        if given[kind] is None
        else Entry("mrope", {**read_mrope({**same, "rope_parameters": given[kind]}, "interleaved", "half")})
        for kind in dict.fromkeys(types)
    }
    return [found[kind] for kind in types]


def _by_type(config: Mapping[str, Any]) -> tuple[list[str], Mapping[str, Any]]:
    """Return the type of each layer, and the rope parameters of each type."""
    types, given = config.get("layer_types"), config.get("rope_parameters")
    listed = isinstance(types, list | tuple) and all(isinstance(kind, str) for kind in types)
    types = list(types) if listed and types is not None else []
    if not types or not isinstance(given, Mapping) or not set(types) <= set(given):
        refuse(f"rope_parameters must have an entry for every type in layer_types; got {given!r} and {types!r}.")
    return types, given


def _axial_by_type(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the axial rotation of each layer. Its type decides the base and the share of the head that rotates."""
    types, given = _by_type(config)
    axes, head, found = row["axes"], integer(("head_dim",), config, defaults), {}
    for kind in dict.fromkeys(types):
        rope = given[kind] if isinstance(given[kind], Mapping) else {}
        share = number("partial_rotary_factor", ("partial_rotary_factor",), rope, {"partial_rotary_factor": 1.0}, low=0)
        base = number("base", ("rope_theta",), rope, low=0, strict=True)
        found[kind] = Entry("axial_rope", {"dims": (even(int(head * share) // axes),) * axes, "base": base, **row["options"]})
    return [found[kind] for kind in types]


def _head(config: Mapping[str, Any], defaults: Mapping[str, Any], keys: list[str] | None = None) -> int:
    """Return the width of a head: the value of the first of `keys`, divided by those of the others."""
    if keys is not None:
        hidden, *others = (integer((key,), config, defaults) for key in keys)
        return hidden // math.prod(others)
    if first(("head_dim",), config, defaults) is not None:
        return integer(("head_dim",), config, defaults)
    hidden = integer(HIDDEN, config) if first(HIDDEN, config) is not None else integer(HIDDEN, defaults)
    return hidden // integer(HEADS, config, defaults)


READERS: dict[str, Reader] = {
    "rotary": _rotary,
    "changed": _changed,
    "compressed": _compressed,
    "plain": _plain,
    "axial": _axial,
    "axial by layer": _axial_by_type,
    "compass": _compass,
    "grid": _grid,
}
