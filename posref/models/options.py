"""
The options of a row of tables/types.json, with a file's values for its keys.

An option is a value, or a dict: ``key``, the key that has it, or several, of which the first that is not null counts; ``type``,
"int" or "float"; ``silent``, the value without any key, which may be null; ``least``, below which a value counts as null;
``item``, the place in a list; ``over`` and ``plus``, what an int is divided by, a number or another key, rounded down, and
what is added to it; ``times``, another key that multiplies it; ``power``, the power of a float.
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
    return {name: _resolved(name, given, config, defaults) for name, given in row["options"].items()}


def _resolved(name: str, given: Any, config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    if not isinstance(given, dict):
        return given
    names = [given["key"]] if isinstance(given["key"], str) else given["key"]
    values = (_item(value_of(key, config, defaults), given) for key in names)
    value = next((v for v in values if v is not None and not _is_below(v, given.get("least"))), given.get("silent"))
    if value is None and "silent" in given:
        return None
    wanted = given.get("type", "int")
    if isinstance(value, bool) or not isinstance(value, int if wanted == "int" else int | float):
        refuse(f"the file must have {' or '.join(names)}, of type {wanted}, for {name}; got {value!r}.")
    if wanted == "int":
        factor = _number(name, given["times"], given, config, defaults) if "times" in given else 1
        return value * factor // _divisor(name, given, config, defaults) + given.get("plus", 0)
    return float(value) ** given.get("power", 1)


def _item(value: Any, given: Mapping[str, Any]) -> Any:
    return value[given["item"]] if isinstance(value, list | tuple) and value and "item" in given else value


def _is_below(value: Any, least: int | None) -> bool:
    return least is not None and isinstance(value, int | float) and value < least


def _divisor(name: str, given: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> int:
    over = given.get("over", 1)
    return _number(name, over, given, config, defaults) if isinstance(over, str) else int(over)


def _number(name: str, key: str, given: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> int:
    found = _item(value_of(key, config, defaults), given)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        refuse(f"the file must have {key}, an int of at least 1, for {name}; got {found!r}.")
    return int(found)
