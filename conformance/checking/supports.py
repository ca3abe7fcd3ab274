"""A scope as it is stated: the JSON of `supports`, checked, and in the terms of traits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posref.spec import REGISTRY

from ..errors import TargetError
from .scope import Bound
from .traits import DEFAULT, FORMS, GIVEN, LISTS, defaults, vocabulary

Stated = Mapping[str, Mapping[str, Any]]  # by operation: allowed words, bounds, and under "not" pairs


def read(name: str, document: Mapping[str, Any]) -> Stated:
    """
    Return a stated scope by operation; what "*" says holds for every operation that has the axis.

    Raises
    ------
    TargetError
        If it names an operation, an axis or a word that does not exist.
    """
    general = document.get("*", {})
    for axis, value in general.items():
        known = [op for op in REGISTRY if axis in vocabulary(op)]
        if axis != "not" and not known:
            raise TargetError(_unknown(name, "*", axis, {a for op in REGISTRY for a in vocabulary(op)}))
        if isinstance(value, list) and axis != "not" and not any(_some(op, axis, value) for op in known):
            _allowed(name, known[0], axis, value)
    unknown = [op for op in document if op != "*" and op not in REGISTRY]
    if unknown:
        msg = f"{name}: supports must name operations, or * for all: {', '.join(REGISTRY)}; got {unknown[0]!r}."
        raise TargetError(msg)
    found = {}
    for op in REGISTRY if "*" in document else document:
        shared = {axis: _some(op, axis, value) for axis, value in general.items() if axis in vocabulary(op)}
        shared = {axis: value for axis, value in shared.items() if value != [] or general[axis] == []}
        merged = {**shared, **document.get(op, {})}
        excluded = [pair for pair in general.get("not", ()) if all(axis in vocabulary(op) for axis in pair)]
        excluded += document.get(op, {}).get("not", [])
        found[op] = {axis: _allowed(name, op, axis, value) for axis, value in merged.items() if axis != "not"}
        if excluded:
            found[op]["not"] = [
                {axis: _allowed(name, op, axis, _listed(op, axis, w)) for axis, w in p.items()} for p in excluded
            ]
    return found


def _some(op: str, axis: str, value: Any) -> Any:
    """Return what "*" says of an axis of one operation: of a list, the words that it has."""
    words = vocabulary(op)[axis]
    return [w for w in value if w in words] if isinstance(value, list) and words is not None else value


def _listed(op: str, axis: str, word: Any) -> Any:
    """Return a word of a pair as an axis has it alone."""
    return word if isinstance(word, list) or vocabulary(op).get(axis) == (True,) else [word]


def _unknown(name: str, op: str, axis: str, known: set[str]) -> str:
    listed = [a for a in sorted(known) if "." not in a]
    return f"{name}: supports of {op} must name {', '.join(listed)}, or a field such as YaRN.mscale; got {axis!r}."


def _allowed(name: str, op: str, axis: str, value: Any) -> Any:
    """Return what an axis allows, as a set of words or a bound; `TargetError` for what does not exist."""
    known = vocabulary(op)
    if axis not in known:
        raise TargetError(_unknown(name, op, axis, set(known)))
    words = known[axis]
    if axis == "positions":
        return Bound(high=float(_form(name, op, value)))
    number = words == (DEFAULT, GIVEN) and axis in defaults(op)  # told in words, or in numbers
    if number and isinstance(value, list) and value and not {DEFAULT, GIVEN} & {*value}:
        words = None
    if isinstance(value, dict):
        if words is not None and not number:
            raise TargetError(_wrong(name, op, axis, f"a list of {_of(words)}", value))
        return Bound(value.get("min"), value.get("max"), value.get("multiple_of"))
    if isinstance(value, bool):
        if axis in ("expanded", "gradient", "per_head", *LISTS):
            return frozenset(words or ()) if value else frozenset()
        if words != (True,):
            raise TargetError(_wrong(name, op, axis, f"a list of {_of(words)}", value))
        return frozenset({True} if value else ())
    return _list(name, op, axis, value, words)


def _list(name: str, op: str, axis: str, value: Any, words: tuple[Any, ...] | None) -> frozenset[Any]:
    """Return a list of words as a set."""
    if not isinstance(value, list) or words == (True,):
        wanted = "true or false" if words == (True,) else f"a list of {_of(words)}"
        raise TargetError(_wrong(name, op, axis, wanted, value))
    if words is None:
        if not all(isinstance(w, int | float) and not isinstance(w, bool) for w in value):
            raise TargetError(_wrong(name, op, axis, "a list of numbers, or an object with min and max", value))
        return frozenset(value)
    for word in value:
        if not any(word is w or (word == w and type(word) is type(w)) for w in words):
            raise TargetError(_wrong(name, op, axis, f"one of {_of(words)}", word))
    return frozenset(value)


def _form(name: str, op: str, value: Any) -> int:
    if value not in FORMS:
        raise TargetError(_wrong(name, op, "positions", f"one of {', '.join(map(repr, FORMS))}", value))
    return FORMS.index(value)


def _of(words: tuple[Any, ...] | None) -> str:
    return "numbers" if words is None else ", ".join("null" if w is None else str(w) for w in words)


def _wrong(name: str, op: str, axis: str, wanted: str, value: Any) -> str:
    return f"{name}: supports of {op}: {axis} must be {wanted}; got {str(value)[:80]!r}."


def implied(op: str, stated: Mapping[str, Any], scalings: tuple[str, ...], gradients: bool) -> dict[str, Any]:
    """Return a stated scope with what an implementation says elsewhere: its scalings, and whether it has gradients."""
    found = dict(stated)
    if "scaling" in vocabulary(op) and "scaling" not in found:
        found["scaling"] = frozenset({None, *scalings})
    if not gradients:
        found["gradient"] = frozenset[Any]()
    return found
