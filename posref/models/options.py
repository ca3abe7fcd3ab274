"""
The options of a row of tables/types.json, with a file's values for its keys.

An option is a value, or a dict: ``key``, the key that has it, or several, of which the first that is not null counts; ``type``,
"int" or "float"; ``silent``, the value without any key, which may be null; ``item``, the place in a list; ``over`` and
``plus``, what an int is divided by, a number or another key, rounded down, and what is added to it; ``power``, of a float.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.fields import refuse


def value_of(key: str, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Return the value of a key, which may be nested ("attn_config.alibi"), or its default."""
    inside: Any = config
    for name in key.split("."):
        if not isinstance(inside, dict) or name not in inside:
            return defaults.get(key)
        inside = inside[name]
    return inside


def options_of(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a row, with each key replaced by the file's value."""
    if row.get("options") is None:
        return None
    return {name: _resolved(name, value, config, defaults) for name, value in row["options"].items()}


def _resolved(name: str, given: Any, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    if not isinstance(given, dict):
        return given
    names = [given["key"]] if isinstance(given["key"], str) else given["key"]
    values = (_item(value_of(key, config, defaults), given) for key in names)
    value = next((v for v in values if v is not None), given.get("silent"))
    if value is None and "silent" in given:
        return None
    wanted = given.get("type", "int")
    if isinstance(value, bool) or not isinstance(value, int if wanted == "int" else int | float):
        refuse(f"the file must have {' or '.join(names)}, of type {wanted}, for {name}; got {value!r}.")
    if wanted == "float":
        return float(value) ** given.get("power", 1)
    over = given.get("over", 1)
    if isinstance(over, str):
        key, over = over, _item(value_of(over, config, defaults), given)
        if isinstance(over, bool) or not isinstance(over, int) or over < 1:
            refuse(f"the file must have {key}, an int of at least 1, for {name}; got {over!r}.")
    return value // over + given.get("plus", 0)


def _item(value: Any, given: Mapping[str, Any]) -> Any:
    return value[given["item"]] if isinstance(value, list | tuple) and value and "item" in given else value
