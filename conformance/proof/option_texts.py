"""Options as they are written on a command line: NAME=VALUE, the value a word, a number or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import posref
from posref.spec import REGISTRY

from ..calls import parameters_of
from ..errors import TargetError
from ..suite.options import from_json

# What configurations and libraries call our options
ELSEWHERE = {
    "theta": "base", "rope_theta": "base", "freq_base": "base", "num_heads": "heads", "n_heads": "heads", "head_dim": "dim",
    "mrope_section": "sections", "rope_scaling": "scaling", "is_neox_style": "layout",
}  # fmt: skip


def options_of(command: str, op: str, texts: Sequence[str]) -> dict[str, Any]:
    """
    Return the options of an operation that are written in `texts`.

    Raises
    ------
    TargetError
        If a text is not NAME=VALUE, the operation has no such option, or a value cannot be read.
    """
    known = [n for n in parameters_of(REGISTRY[op].function) if n in REGISTRY[op].domains]
    given = {}
    for text in texts:
        name, value = pair(command, "--option", text, "NAME=VALUE")
        if name not in known:
            near = [n for n in known if n in name or n == ELSEWHERE.get(name)] or get_close_matches(name, known, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            msg = f"{command}: --option must be one of {', '.join(known)} for {op}; got {name!r}.{meant}"
            raise TargetError(msg)
        given[name] = _value(command, name, value)
    return given


def pair(command: str, option: str, text: str, form: str) -> tuple[str, str]:
    """Return both sides of NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not (name and sign):
        msg = f"{command}: {option} must be {form}; got {text!r}."
        raise TargetError(msg)
    return name, value


def _value(command: str, name: str, text: str) -> Any:
    """Return an option's value: JSON, with a record as an object that has its type; a word that is no JSON as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and "type" in value:
        kinds = {kind.__name__: kind for kind in posref.scaling.RECORDS}
        kind = kinds.get(value["type"])
        if kind is not None:
            given = {n: tuple(v) if isinstance(v, list) else v for n, v in value.items() if n != "type"}
            try:
                return kind(**given)
            except (TypeError, ValueError) as error:
                msg = f"{command}: --option {name}: {error}"
                raise TargetError(msg) from error
    try:
        return from_json(value)
    except ValueError as error:
        msg = f"{command}: --option {name}: {str(error).removeprefix('from_json: ')}"
        raise TargetError(msg) from error
