"""
Read the config.json of a model of diffusers: its encodings by component, by its ``_class_name``.

A row of tables/diffusers.json is a class of diffusers 0.42.1. For each component it has ``operation``; ``options``;
``positions``, the rule of positions in words, since pipelines choose them; ``note``; ``source``, a file and line of
src/diffusers. An option is a value, or a dict: ``key`` and ``default``, or ``expr``, arithmetic on ``keys``, which have their
defaults. ``when`` is a key that must not be null. ``by`` has the class that diffusers loads in place of this one, by the value
of a key.
"""

import ast
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import refuse
from posref.models.model_types import table, why_not
from posref.spec import REGISTRY

CLASS = "_class_name"
NEVER = ("when", "head_dim")  # options of rows that are no arguments of operations
SIZES = ("dim", "dims", "rotary_dim", "window", "sections")
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def read_diffusers(config: Mapping[str, Any]) -> dict[str, list[Entry | None]]:
    """Return the encodings of a model of diffusers, by component, with the rule of positions as a convention."""
    rows = table("diffusers")
    name = config[CLASS]
    for key, classes in rows.get(str(name), {}).get("by", {}).items():
        name = classes.get(config.get(key), name)
    if not isinstance(name, str) or name not in rows:
        whole = " It is a pipeline: give the config.json of its transformer or unet." if str(name).endswith("Pipeline") else ""
        refuse(f"config[{CLASS!r}] must be a class of diffusers with positions that is known; got {name!r}.{whole}")
    result: dict[str, list[Entry | None]] = {}
    for component, row in rows[name].items():
        when = {} if component == "by" else row["options"].get("when", {})
        if component != "by" and not (when and config.get(when["key"], when["default"]) is None):
            beside = {key: row[key] for key in ("positions", "note") if key in row} | why_not(row["operation"])
            result[component] = [Entry(row["operation"], _options(row, config), beside)]
    return result


def _options(row: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a row. None if posref has no such operation, or the file does not decide them."""
    if row["operation"] not in REGISTRY:
        return None
    known = inspect.signature(REGISTRY[row["operation"]].function).parameters
    arrays = REGISTRY[row["operation"]].arrays
    options = {name: option for name, option in row["options"].items() if name in known and name not in (*NEVER, *arrays)}
    try:
        return {name: _value(name, option, config) for name, option in options.items()}
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, SyntaxError):
        return None


def _value(name: str, option: Any, config: Mapping[str, Any]) -> Any:
    """Return the value of an option in this file. Numbers are ints where they are whole, but bases and scales are floats."""
    if isinstance(option, dict):
        if "key" in option:
            value = config.get(option["key"])
            option = option["default"] if value is None else value
        else:
            names = {key: config.get(key) if config.get(key) is not None else silent for key, silent in option["keys"].items()}
            option = _computed(ast.parse(option["expr"], mode="eval").body, names)
    elif isinstance(option, str) and any(sign in option for sign in "*/("):
        msg = f"{option!r} is words"  # posref has the operation, but no option for this
        raise ValueError(msg)
    if option is None or (name in SIZES and not isinstance(option, int | float | list | tuple)):
        msg = f"{name} is not told"
        raise ValueError(msg)
    if isinstance(option, list | tuple):
        return tuple(_value(name, entry, config) for entry in option)
    if name in ("base", "scale"):
        return float(option)
    if isinstance(option, float) and option == int(option):
        return int(option)
    return option


def _computed(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an arithmetic expression."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.Tuple():
            return tuple(_computed(inner, names) for inner in node.elts)
        case ast.Subscript():
            return _computed(node.value, names)[_computed(node.slice, names)]
        case ast.Call(func=ast.Name("sum")):
            return sum(_computed(node.args[0], names))
        case ast.BoolOp(op=ast.Or()):
            return next((value for value in (_computed(inner, names) for inner in node.values) if value), None)
        case ast.BinOp():
            return ARITHMETIC[type(node.op)](_computed(node.left, names), _computed(node.right, names))
        case ast.UnaryOp(op=ast.USub()):
            return -_computed(node.operand, names)
        case _:
            msg = f"unknown expression {ast.dump(node)}"
            raise ValueError(msg)
