"""Safe reading of other people's files: no links, no more bytes than announced, and JSON with one meaning."""

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

from ..errors import VectorError

OURS = Path(__file__).parents[1] / "vectors"  # comes as this code does: some package managers install files as links
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read(path: Path, limit: int, *, root: Path | None = None) -> bytes:
    """
    Return the bytes of a regular file of at most `limit` bytes.

    Kind, size and contents are those of one open file, so that nothing can be exchanged between the question and the answer. A
    pipe or a device is refused unopened; so is a link, and a linked folder between `root` and the file.

    Raises
    ------
    VectorError
        If there is no such file, or it is not of this kind.
    """
    try:
        place = path.resolve() if path.is_relative_to(OURS) else path
        _no_links(place, root)
        if not stat.S_ISREG(place.stat(follow_symlinks=False).st_mode):  # opening some devices does something
            raise _refusal(path, "must be a regular file", root)
        with os.fdopen(os.open(place, FLAGS), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
                raise _refusal(path, f"must be a regular file of at most {limit} bytes; got {found.st_size}", root)
            data = b"".join(iter(lambda: file.read(found.st_size + 1), b""))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _refusal(path, f"cannot be read: {getattr(error, 'strerror', None) or error}", root) from error
    if len(data) != found.st_size:
        raise _refusal(path, "was written to while it was read", root)
    return data


def _no_links(path: Path, root: Path | None) -> None:
    """Raise if the file, or a folder between it and `root`, is a symbolic link."""
    folders = [] if root is None else [f for f in path.parents if f != root and f.is_relative_to(root)]
    for place in (path, *folders):
        if place.is_symlink():
            raise _refusal(place, "must not be a symbolic link: a suite holds files", root)


def _refusal(path: Path, why: str, root: Path | None) -> VectorError:
    return VectorError(f"{path}: {why}." + ("" if root is None else " Fetch the suite again."))


# ---- JSON: small, shallow and with one meaning, or refused with the reason -------------------------------------------------
LIMIT = 16 * 2**20  # bytes of a document; the parsed objects may take about twenty times as much
DEPTH = 32  # of objects and lists inside one another; tensors have at most 8 axes
DIGITS = 20  # no 64-bit integer has more, and longer ones take time that grows with the square


def loads(data: bytes, *, limit: int = LIMIT, encoding: str = "ascii") -> Any:
    """
    Return the document in `data`.

    Raises
    ------
    ValueError
        If it is not JSON, is longer than `limit`, is nested too deeply, or leaves room for two readings: a repeated key, NaN,
        a number beyond binary64 or 64-bit integers, half a surrogate pair.
    """
    if len(data) > limit:
        msg = f"it has {len(data)} bytes, more than {limit}"
        raise ValueError(msg)
    text = data.decode(encoding)
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant, parse_float=_real, parse_int=_integer)
    except RecursionError:
        document = None
        deep = True
    else:
        deep = _deep(document)
    if deep:
        msg = f"it is nested more than {DEPTH} deep"
        raise ValueError(msg)
    if "\\u" in text:
        json.dumps(document, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded: UnicodeError is a ValueError
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "an object repeats a key"
        raise ValueError(msg)
    return found


def _constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _real(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        msg = f"the number {text[:40]} is beyond binary64"
        raise ValueError(msg)
    return value


def _integer(text: str) -> int:
    if len(text) > DIGITS or not -(2**63) <= int(text) < 2**63:
        msg = f"the integer {text[:40]} is beyond 64 bits"
        raise ValueError(msg)
    return int(text)


def _deep(document: Any) -> bool:
    """Return whether a document is nested too deeply, level by level, so that the question itself cannot recurse."""
    level = [document]
    for _ in range(DEPTH + 1):
        level = [v for c in level if isinstance(c, dict | list) for v in (c.values() if isinstance(c, dict) else c)]
    return bool(level)
