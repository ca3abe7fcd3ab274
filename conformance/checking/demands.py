"""What a scope is required to have: read from words or a file, and compared with the scope that was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY

from ..errors import TargetError, VectorError
from ..model import Record
from ..suite import safe_reading
from ..suite.reading import DOCUMENT, load_manifest, parse
from ..target.base import settle_supports
from . import supports
from .scope import Bound
from .supports import Stated
from .traits import FORMS

TERM = re.compile(r"([A-Za-z_][\w.]*)(=|<=|>=)(.+)")
WORDS = {"null": None, "none": None, "true": True, "false": False}


@dataclass(frozen=True)
class Demands:
    """A scope that is required, by operation, and the operations that were named."""

    scope: Stated = field(default_factory=dict)
    named: tuple[str, ...] = ()


def read(
    required: str | Mapping[str, Any] | None, suite: Path, *, op: str | Collection[str] | None, case: str | None, tier: str
) -> Demands:
    """
    Return what is required of a check of some operations: a scope, the name of a JSON file that holds one, or words.

    Words are operations (all, if there are none) and what their scope must have: ``"rope layout=half,interleaved
    scaling=none,YaRN position<=131071 positions=any gradient=x"``.

    Raises
    ------
    TargetError
        If it names an operation, an axis or a word that does not exist or is not asked, or the file cannot be read.
    """
    if required is None:
        return Demands()
    if case is not None or tier == "smoke":
        msg = "require: a scope is known only when all core cases of an operation are asked; drop --case and --tier smoke."
        raise TargetError(msg)
    document = settle_supports("require", required if isinstance(required, Mapping) else _file(required) or _words(required))
    named = tuple(op for op in document or () if op != "*")
    scope = supports.read("require", document or {})
    held = {entry["op"] for entry in load_manifest(suite)["groups"]}
    asked = held if op is None else held & ({op} if isinstance(op, str) else {*op})
    strange = [name for name in named if name not in asked]
    if strange:
        msg = f"require: must name operations that are asked; got {strange[0]!r}."
        raise TargetError(msg)
    return Demands(scope, named)


def _file(required: str) -> Any:
    """Return the content of a JSON file, or None if no file is named."""
    if not required.endswith(".json"):
        return None
    try:
        return parse(Path(required), safe_reading.read(Path(required), DOCUMENT))
    except VectorError as error:
        raise TargetError(str(error)) from error


def _words(required: str) -> dict[str, Any]:
    """Return words as a scope."""
    ops: list[str] = []
    axes: dict[str, Any] = {}
    for word in re.split(r"[\s;]+", required.strip()):
        term = TERM.fullmatch(word)
        if term is not None:
            axis, sign, value = term.groups()
            axes[axis] = _bound(axis, sign, value, axes.get(axis)) if sign != "=" else _value(axis, value)
        elif word in REGISTRY:
            ops.append(word)
        else:
            msg = f"require: must be operations and terms such as layout=half,interleaved or position<=4096; got {word!r}."
            raise TargetError(msg)
    return dict.fromkeys(ops or ["*"], axes)


def _value(axis: str, text: str) -> Any:
    if axis == "positions":
        return next((form for form in FORMS if form.replace(" ", "_") == text.replace("-", "_")), text)
    words = [_word(word) for word in text.split(",")]
    options = {name for record in REGISTRY.values() for name in record.domains}
    return words[0] if axis not in options and len(words) == 1 and isinstance(words[0], bool) else words


def _word(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text


def _bound(axis: str, sign: str, value: str, before: Any) -> dict[str, Any]:
    try:
        limit = float(value)
    except ValueError:
        msg = f"require: {axis}{sign} must be followed by a number; got {value!r}."
        raise TargetError(msg) from None
    return {**(before if isinstance(before, dict) else {}), "max" if sign == "<=" else "min": limit}


# ---- comparison -----------------------------------------------------------------------------------------------------------
def unmet(required: Demands, report: Record) -> tuple[str, ...]:
    """Return what is required of a scope and not in it, in words."""
    scopes = report.scopes
    found = [f"{op} is not offered" for op in required.named if op in report.missing]
    if not report.complete:
        return ()
    if required.scope and not any(required.scope.get(scope.op) or scope.op in required.named for scope in scopes):
        found.append("no operation that is offered has what is required")
    for scope in scopes:
        wanted = required.scope.get(scope.op, {})
        has = supports.read(scope.op, {scope.op: scope.supports}).get(scope.op, {})
        found += [f"{scope.op} lacks {text}" for text in _lacking(wanted, has)]
        if wanted and not scope.answered:
            found.append(f"{scope.op} answers nothing")
    return tuple(found)


def _lacking(wanted: Mapping[str, Any], has: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wanted of one operation and not there."""
    for axis, wish in wanted.items():
        if axis == "not" or axis not in has:
            continue
        if isinstance(wish, Bound):
            for end, sign in ((wish.low, "from"), (wish.high, "up to")):
                if end is not None and not _allows(has[axis], end):
                    yield f"{axis} {sign} {FORMS[int(end)] if axis == 'positions' else f'{end:g}'}"
        else:
            lacking = [word for word in wish if not _allows(has[axis], word)]
            if lacking:
                yield f"{axis} {', '.join(sorted('none' if w is None else str(w) for w in lacking))}"
    for pair in has.get("not", ()):
        if all(axis in wanted and not isinstance(wanted[axis], Bound) and wanted[axis] & words for axis, words in pair.items()):
            told = (f"{axis} {', '.join(sorted(map(str, words & wanted[axis])))}" for axis, words in pair.items())
            yield " with ".join(told)


def _allows(allowed: Any, word: Any) -> bool:
    """Return whether an axis allows a word or a number."""
    return allowed.holds((word, word)) if isinstance(allowed, Bound) else word in allowed
