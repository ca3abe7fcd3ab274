"""JSON schemas of documents, and a record of documents that passed, which are not validated again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import shown
from . import safe_files

if TYPE_CHECKING:
    from jsonschema import ValidationError

FOLDER = safe_files.OURS / "schema"
LIMIT = 10_000  # documents that are remembered; a suite has about 400
_VALID: set[str] = set()  # those of this process


def caches() -> Path:
    """Return where the user's caches of posref go: ``$XDG_CACHE_HOME/posref``, or ``~/.cache/posref``."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".cache") / "posref"


def validate_once(name: str, document: Any, data: bytes, path: Path) -> None:
    """Validate what was read from `data`, unless the same bytes were found right before, by this or by another process."""
    key = hashlib.sha256(b"\0".join([name.encode(), _text(name), data])).hexdigest()
    if key in _VALID:
        return
    with contextlib.suppress(OSError, RuntimeError):  # a cache that cannot be used is an empty one
        if (caches() / "valid" / key).exists():
            _VALID.add(key)
            return
    validate(name, document, path)
    _VALID.add(key)
    with contextlib.suppress(OSError, RuntimeError):
        _remember(caches() / "valid", key)


def _remember(folder: Path, key: str) -> None:
    """Keep an empty file named `key`; where there are too many, all of them are forgotten first."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = os.listdir(folder)
    for other in kept if len(kept) >= LIMIT else ():
        (folder / other).unlink(missing_ok=True)
    safe_files.write(folder / key, b"")


def validate(name: str, document: Any, path: Path) -> None:
    """Raise `VectorError` with the first place where `document` is not as its schema says."""
    for error in validator(name).iter_errors(document):
        place = "/".join(str(part) for part in error.absolute_path) or "the top level"
        raise safe_files.refusal(path, f"at {shown(place)}: {shown(error.message)}")


@cache
def validator(name: str) -> Any:
    """Return the validator of the schema called `name`."""
    import jsonschema  # takes long to load, and is not needed for a suite that is known

    strict = {"pattern": _pattern, "uniqueItems": _unique}
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, strict)(json.loads(_text(name)))


@cache
def _text(name: str) -> bytes:
    return (FOLDER / f"{name}.json").read_bytes()


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    """Yield an error unless a word is of a pattern, as JSON Schema has it: ``$`` is the end, not a line break before it."""
    from jsonschema import ValidationError

    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique(_: Any, unique: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    """Yield an error unless a list is of different words; in time that does not grow with the square."""
    from jsonschema import ValidationError

    if unique and isinstance(instance, list) and not all(isinstance(item, str) for item in instance):
        yield ValidationError("must be a list of words")
    elif unique and isinstance(instance, list) and len(set(instance)) != len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")
