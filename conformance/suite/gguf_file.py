"""
The header of a GGUF file: its key-value pairs, and the tensors of divisors of rotary frequencies. No weights are read.

The format is that of ggml's docs/gguf.md, versions 2 and 3. Every length is checked before it is used.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from posref.models.gguf import ALWAYS, BOTH

from ..errors import TargetError
from .safe_files import GGUF_ARRAY, GGUF_AXES, GGUF_ELEMENTS, GGUF_HEADER, GGUF_PAIRS, GGUF_STRINGS, GGUF_TENSORS, open_named

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
FLOAT32 = 0  # of tensors
VERSIONS = (2, 3)


@dataclass
class _Reader:
    """A file that is read from its beginning, at most `GGUF_HEADER` bytes of it."""

    file: BinaryIO
    size: int
    kept: int = 0  # elements of arrays

    def count(self, what: str, most: int) -> int:
        """Return the number of items that follow, at most `most`."""
        result = int(self.scalar("Q"))
        if result > most:
            msg = f"it says that it has {result} {what}, more than {most}"
            raise ValueError(msg)
        return result

    def take(self, count: int) -> bytes:
        self.require(count)
        return self.file.read(count)

    def skip(self, count: int) -> None:
        self.require(count)
        self.file.seek(count, 1)

    def require(self, count: int) -> None:
        """Raise unless so many more bytes are there."""
        end = self.file.tell() + count
        if end > self.size:
            msg = "it ends within its header"
            raise ValueError(msg)
        if end > GGUF_HEADER:
            msg = f"its header has more than {GGUF_HEADER} bytes"
            raise ValueError(msg)

    def scalar(self, kind: str) -> Any:
        return struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))[0]

    def string(self) -> str:
        return self.take(self.scalar("Q")).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        """Return a value of a type by its number; None for a long array."""
        if kind == STRING:
            return self.string()
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind != ARRAY:
            msg = f"it has a value of the unknown type {kind}"
            raise ValueError(msg)
        inner, count = self.scalar("I"), self.scalar("Q")
        if inner in SCALARS and count > GGUF_ARRAY:
            self.skip(count * struct.calcsize(SCALARS[inner]))
            return None
        if inner == ARRAY:
            msg = "it has an array of arrays"
            raise ValueError(msg)
        if inner == STRING and count > GGUF_ARRAY:
            if count > GGUF_STRINGS:
                msg = f"it says that it has an array of {count} strings, more than {GGUF_STRINGS}"
                raise ValueError(msg)
            self.require(8 * count)
            for _ in range(count):
                self.skip(self.scalar("Q"))
            return None
        self.kept += count
        if self.kept > GGUF_ELEMENTS:
            msg = f"its arrays have more than {GGUF_ELEMENTS} elements"
            raise ValueError(msg)
        return [self.value(inner) for _ in range(count)]


def read(path: Path) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """
    Return the metadata of a GGUF file, and its tensors of divisors by name, as `posref.rope_from_gguf` takes them.

    `TargetError` if it is no GGUF file, one of another version, or broken.
    """
    try:
        with open_named(path) as (file, size):
            reader = _Reader(file, size)
            tensors = _begin(reader)
            pairs = reader.count("key-value pairs", GGUF_PAIRS)
            metadata = {reader.string(): reader.value(reader.scalar("I")) for _ in range(pairs)}
            records = [_tensor(reader) for _ in range(tensors)]
            return metadata, _divisors(reader, records, metadata.get("general.alignment", 32))
    except (ValueError, OverflowError, MemoryError, struct.error) as error:
        msg = f"{path}: not a GGUF file that can be read: {error}."
        raise TargetError(msg) from error


def _begin(reader: _Reader) -> int:
    """Return the number of tensors that the file says it has."""
    magic = reader.take(4)
    if magic != b"GGUF":
        msg = f"it begins with {magic!r}, not GGUF"
        raise ValueError(msg)
    version = reader.scalar("I")
    if version not in VERSIONS:
        why = "it is big-endian" if version >> 16 else f"it is of version {version}"
        msg = f"{why}; little-endian files of versions 2 and 3 can"
        raise ValueError(msg)
    return reader.count("tensors", GGUF_TENSORS)


def _tensor(reader: _Reader) -> tuple[str, int, int, int]:
    """Return a tensor's name, number of elements, type and offset."""
    name, axes = reader.string(), reader.scalar("I")
    if axes > GGUF_AXES:
        msg = f"its tensor {name!r} has {axes} axes"
        raise ValueError(msg)
    count = 1
    for _ in range(axes):
        count *= reader.scalar("Q")
    return name, count, reader.scalar("I"), reader.scalar("Q")


def _divisors(reader: _Reader, tensors: list[tuple[str, int, int, int]], alignment: Any) -> dict[str, list[float]]:
    """Return the values of the tensors that divide frequencies."""
    if not isinstance(alignment, int) or alignment < 1:
        msg = f"general.alignment is {alignment!r}"
        raise ValueError(msg)
    begin = -(-reader.file.tell() // alignment) * alignment
    result = {}
    for name, count, kind, offset in tensors:
        if name not in (ALWAYS, *BOTH):
            continue
        if kind != FLOAT32 or count > GGUF_ARRAY or begin + offset + 4 * count > reader.size:
            msg = f"its tensor {name!r} is not in float32, is too long, or lies outside the file"
            raise ValueError(msg)
        reader.file.seek(begin + offset)
        result[name] = list(struct.unpack(f"<{count}f", reader.file.read(4 * count)))
    return result
