"""Read and check values from parsed configuration files. A wrong value raises an error that says why."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

BYTES, PARTS, DEPTH = 1 << 24, 1 << 18, 32  # bytes of a file; objects and lists, of which so many inside one another
LONGEST = 4000  # characters of an error, which may quote known models and the file
LARGEST, SMALLEST = float.fromhex("0x1.fffffffffffffp+1023"), float.fromhex("0x1p-1022")  # normal float64 numbers


class ConfigError(ValueError):
    """A problem with a configuration. The public function adds its own name to the message."""


def refuse(problem: str) -> NoReturn:
    """Raise a `ConfigError`, which `speaking_as` turns into the public error."""
    raise ConfigError(problem)


@contextmanager
def speaking_as(function: str) -> Iterator[None]:
    """Put the public function's name before every error message."""
    try:
        yield
    except ConfigError as problem:
        text = str(problem)
        text = text if len(text) <= LONGEST else f"{text[:400]} ... {text[400 - LONGEST :]}"
        msg = f"{function}: {text}"
        raise ValueError(msg) from None


@contextmanager
def speaking_of(part: str) -> Iterator[None]:
    """Name the part of a file in every error that does not name it."""
    try:
        yield
    except ConfigError as problem:
        text = str(problem)
        raise ConfigError(text if text.startswith(part) else f"{part}: {text}") from None


def parsed(config: Any) -> dict[str, Any]:
    """Return a configuration as a dict of dicts: its own, what its ``to_dict()`` returns, or the JSON file at a path."""
    if isinstance(config, str | PathLike):
        try:
            config = json.loads(_text(Path(config)), object_pairs_hook=_unique)
        except (OSError, ValueError, RecursionError) as error:  # ValueError: the text is not JSON, or not UTF-8
            why = getattr(error, "strerror", None) or error
            refuse(f"config must be a mapping, or the path of a config.json that can be read; got {str(config)!r}: {why}.")
    elif not isinstance(config, dict | Mapping) and hasattr(config, "to_dict"):
        config = config.to_dict()
    if not isinstance(config, dict | Mapping):
        refuse(f"config must be a mapping, the path of a config.json, or have to_dict(); got {type(config).__name__}.")
    _expect_shallow(config)
    return {name: _plain(value) for name, value in config.items()}


def _text(path: Path) -> str:
    """Return the text of a regular file of at most `BYTES` bytes."""
    if path.exists() and not path.is_file():
        msg = "it is not a regular file"
        raise ValueError(msg)
    with path.open("rb") as file:
        data = file.read(BYTES + 1)
    if len(data) > BYTES:
        msg = f"it has more than {BYTES} bytes"
        raise ValueError(msg)
    if data.count(b"{") + data.count(b"[") > PARTS:
        msg = f"it has more than {PARTS} objects and lists"
        raise ValueError(msg)
    return data.decode("utf-8")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a file, in which no key may be twice: readers differ on which of them counts."""
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        msg = f"an object repeats the key {next(name for name in names if names.count(name) > 1)!r}"
        raise ValueError(msg)
    return result


def _expect_shallow(config: Any) -> None:
    """Refuse a configuration that is nested too deeply, as one that contains itself is."""
    level = {id(config): config}
    for _ in range(DEPTH):
        values = (v for c in level.values() for v in (c.values() if isinstance(c, dict | Mapping) else c))
        level = {id(v): v for v in values if isinstance(v, dict | list | tuple | Mapping)}
    if level:
        refuse(f"config must be nested at most {DEPTH} deep.")


def _plain(value: Any) -> Any:
    """Return a value of a file, with NumPy scalars as Python numbers and NumPy arrays as lists, at any depth."""
    if isinstance(value, str | int | float | None) and type(value).__module__ != "numpy":
        return value  # the common case; the test for mappings is slow
    if isinstance(value, dict | Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.tolist() if type(value).__module__ == "numpy" else value


def first(names: tuple[str, ...], *places: Mapping[str, Any]) -> Any:
    """Return the first value that is not null, or None. Look for every name in the first place, then in the next."""
    return next((place[n] for place in places for n in names if place.get(n) is not None), None)


def number(what: str, names: tuple[str, ...], /, *places: Mapping[str, Any], low: float, strict: bool = False) -> float:
    """Return the first of `names` in `places`, which must be finite and at least `low`, or above it if `strict`."""
    value = first(names, *places)
    if value is None:
        refuse(f"the file must have {' or '.join(names)}; got none.")
    if not _is_number(value) or value < low or (strict and value < low + SMALLEST):
        value = value if not isinstance(value, int) or abs(value) < LARGEST else f"an int of {value.bit_length()} bits"
        refuse(f"{what} must be a number {'above' if strict else 'of at least'} {low}; got {value!r}.")
    return float(value)


def integer(names: tuple[str, ...], /, *places: Mapping[str, Any]) -> int:
    """Return the first of `names` in `places`, which must be an int of at least 1."""
    value = first(names, *places)
    if value is None:
        refuse(f"the file must have {' or '.join(names)}; got none.")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        refuse(f"{' or '.join(names)} must be an int of at least 1; got {value!r}.")
    if value >= 2**63:
        refuse(f"{' or '.join(names)} must be an int below 2**63; got one of {value.bit_length()} bits.")
    return value


def positives(what: str, values: Any, count: int) -> tuple[float, ...]:
    """Return a list or array of `count` numbers above 0 as a tuple."""
    values = values.tolist() if hasattr(values, "tolist") else values
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    if not listed or len(values) != count or not all(_is_number(value) and value > 0 for value in values):
        received = f"{len(values)} of them" if listed and len(values) != count else repr(values)
        refuse(f"{what} must be a list of {count} numbers above 0, one for each rotated pair; got {received}.")
    return tuple(float(value) for value in values)


def even(lanes: int) -> int:
    """Return the number of rotated channels, which must be even and at least 2."""
    if lanes < 2 or lanes % 2:
        refuse(f"the file must have an even number of rotated channels, at least 2; got {lanes}.")
    return lanes


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST
