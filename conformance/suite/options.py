"""Options as JSON and back: numbers and words as they are, a scaling by its type and fields."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args, get_origin, get_type_hints

from posref import scaling


def to_json(value: Any) -> Any:
    """Return an option as JSON: numbers and words as they are, a scaling as ``{"type": ...}`` with all its fields."""
    if isinstance(value, scaling.Scaling):
        given = {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(value).items()}
        return {"type": type(value).__name__, **given}
    return value


def from_json(value: Any) -> Any:
    """Return an option from JSON; ValueError for an unknown scaling, and for a field that is not its own."""
    if not isinstance(value, dict):
        return value
    rest = dict(value)
    name = rest.pop("type", None)
    kinds = {kind.__name__: kind for kind in scaling.RECORDS}
    hints = get_type_hints(kinds[name]) if name in kinds else {}
    if name not in kinds or set(rest) != set(hints) or not all(_fits(rest[n], hint) for n, hint in hints.items()):
        msg = f"from_json: a scaling must have a type of {sorted(kinds)} and all of that record's fields; got {value!r}."
        raise ValueError(msg)
    return kinds[name](**{n: tuple(v) if isinstance(v, list) else v for n, v in rest.items()})


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value from JSON is of a field's type; an integer is a float as well, and a boolean is neither."""
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    kinds = get_args(hint) or (hint,)
    return type(value) in kinds or (type(value) is int and float in kinds)
