"""JSON from strangers: small, shallow and with one meaning, or refused with the reason."""

import json
import math
from typing import Any

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
