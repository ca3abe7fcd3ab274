"""
The parts of a nested configuration: the type of each, and what the file leaves out. The rules are those of transformers 5.23.0.

The ``parts`` of a row (tables/types.json) have a type for each key, which the parent fixes: the file's own ``model_type`` is
ignored there. Or they have a dict, with

- ``silent`` in place of ``type``: the file chooses the type, and this is the type of a file that has none;
- ``optional``: true if a part that is null or absent is none. All others then have the defaults of their class;
- ``means``: other names for a type; ``also``: another key for the same part;
- ``flat``: true if the keys of the part may stand beside those of the parent;
- ``unless``: a key, and the type of a part that has it without a value;
- ``sets``: keys that the parent sets in the part;
- ``filled``: true if a part has the parent's defaults for missing keys, not those of its class.

tables/class_defaults.json has, by type, what the configuration class gives missing keys; under ``names`` other names of keys;
and under ``parts`` what the class of the parent gives a part that is null or absent. ``python tests/model_tables.py defaults``
writes it.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.fields import first, refuse
from posref.models.model_types import model_type, table
from posref.models.odd_files import FILES

HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
DONE = " completed"  # in a file whose keys are the usual ones already; no file has it
BACKBONE = "backbone_config"  # its type is never silent (backbone_utils.py, 316)


def completed(config: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return a configuration with what the class of its type gives missing keys, and with the usual keys (`FILES`)."""
    row, defaults = model_type(model), table("class_defaults")
    like = row.get("like", model) if "stack" in row else model
    known = defaults.get(model, defaults.get(like, {}))
    names = {**known.get("names", {}), **model_type(like).get("names", {})}
    renamed = {names[name]: value for name, value in config.items() if name in names}
    whole = {name: value for name, value in known.items() if name not in ("names", "parts")} | renamed | {**config}
    rule = FILES.get(model, FILES.get(like))
    if rule is None or DONE in config:
        return whole
    return {**rule(whole), **({DONE: True} if "stack" in row else {})}


def part_of(config: Mapping[str, Any], key: str, where: str = "config") -> dict[str, Any] | None:
    """Return a part of a configuration with a known type, and that type. None if it has no such part."""
    model = str(config.get("model_type"))
    row = model_type(model_type(model).get("like", model))
    rule = row["parts"][key] if isinstance(row["parts"][key], dict) else {"type": row["parts"][key]}
    part = first((key, rule["also"]) if "also" in rule else (key,), config)
    if part is None and rule.get("optional"):
        return None
    if part is None:
        part = _absent(config, key, row, rule, where)
    elif not isinstance(part, dict):
        refuse(f"{where}[{key!r}] must be a dict or null; got {part!r}.")
    elif key == BACKBONE and part.get("model_type") is None:
        usual = f" {model!r} itself takes {rule['silent']!r} where the part is absent." if "silent" in rule else ""
        refuse(f"{where}[{key!r}] must have model_type, since it may be of any type; got none.{usual}")
    if rule.get("filled"):
        part = {**_parents(model, key), **part}
    part = {**part, **rule.get("sets", {})}
    if "unless" in rule and rule["unless"][0] in part and not part[rule["unless"][0]]:
        return {**part, "model_type": rule["unless"][1]}
    if "type" in rule:
        return {**part, "model_type": rule["type"]}
    named = rule["silent"] if part.get("model_type") is None else part["model_type"]
    return {**part, "model_type": rule.get("means", {}).get(named, named)}


def _absent(
    config: Mapping[str, Any], key: str, row: Mapping[str, Any], rule: Mapping[str, Any], where: str
) -> Mapping[str, Any]:
    """Return a part that is null or absent. Refuse keys that would be lost: those of the part beside those of the parent."""
    model = str(config.get("model_type"))
    known = table("class_defaults").get(model, {})
    lost = {name: value for name, value in config.items() if name in (*HIDDEN, *HEADS) and name not in known}
    if first(HIDDEN, lost) is not None and first(HEADS, lost) is not None:
        if rule.get("flat"):
            return {name: value for name, value in config.items() if name not in (*row["parts"], "model_type")}
        if "rows" not in row:
            refuse(
                f"{where}[{key!r}] must be given, since {model!r} does not read its keys beside it; got none, but "
                f"{sorted(lost)}. Move these and all like them into {key}."
            )
    return _parents(model, key)


def _parents(model: str, key: str) -> Mapping[str, Any]:
    """Return what the class of a parent gives a part."""
    values: Mapping[str, Any] = table("class_defaults").get(model, {}).get("parts", {}).get(key, {})
    return values
