"""
Groups that were proved before: found by a key of all that a proof depends on, believed only with the right hash.

The key covers the group's cases, every value of them, the code in `sources`, and the versions of the libraries. Entries are
made by workers alone: a process that has run for long may hold other code than the files that the key covers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..model import Case, Flag
from ..suite import schemas
from . import sources

LIMIT = 256 * 2**20  # bytes of all entries; a suite has about 15 million
ABANDONED = 3600  # seconds after which a half-written entry has nobody who writes it
MAGIC = b"posref proof 1\n"


@dataclass(frozen=True)
class Product:
    """A group's files by name, and its smoke cases as plain JSON."""

    files: Mapping[str, bytes]
    smoke: Sequence[Mapping[str, Any]]


def default_folder() -> Path:
    """Return the user's folder of proved groups."""
    return schemas.caches() / "proofs"


class Store:
    """A folder of proved groups, which several builds may use at once; one that cannot be used is an empty one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stamp = sources.stamp()
        self.identity = sources.identity()

    def key(self, cases: Sequence[Case], flags: Mapping[str, Flag]) -> str:
        """Return the key of a group: of its cases, the flags that they name, and all that proves them."""
        named = {name: flags.get(name) for case in cases for name in case.flags}
        return hashlib.sha256(json.dumps([self.identity, _told(list(cases)), _told(named)]).encode()).hexdigest()

    def get(self, key: str) -> Product | None:
        """Return what was proved under a key; None if nothing was, or it is not as it was stored."""
        path = self.folder / key
        try:
            head, _, body = path.read_bytes().removeprefix(MAGIC).partition(b"\n")
            if head.decode() != _seal(key, body):
                return None
            about, _, rest = body.partition(b"\n")
            told = json.loads(about)
            files, begin = {}, 0
            for name, size in told["files"]:
                files[name], begin = rest[begin : begin + size], begin + size
            os.utime(path)  # used: among the last to be removed
        except (OSError, ValueError):
            return None
        return Product(files, told["smoke"])

    def put(self, key: str, product: Product) -> None:
        """Store what was proved, unless code was edited since this store was opened."""
        if self.stamp is None or sources.stamp() != self.stamp:
            return
        about = {"files": [[name, len(data)] for name, data in product.files.items()], "smoke": product.smoke}
        body = json.dumps(about).encode() + b"\n" + b"".join(product.files.values())
        with contextlib.suppress(OSError):  # a full disk or a folder of somebody else's: proved again next time
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(MAGIC + _seal(key, body).encode() + b"\n" + body)
                os.replace(name, self.folder / key)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name)

    def prune(self) -> None:
        """Remove the entries not used for the longest time, so that `LIMIT` bytes are left, and what killed builds began."""
        total, now = 0, time.time()
        with contextlib.suppress(OSError):
            for used, size, path in sorted(self._entries(), reverse=True):
                total += size
                if total > LIMIT or (os.path.basename(path).startswith(".new-") and now - used > ABANDONED):
                    with contextlib.suppress(OSError):  # another build was faster
                        os.unlink(path)

    def _entries(self) -> Iterable[tuple[float, int, str]]:
        with os.scandir(self.folder) as found:
            return [(s.st_mtime, s.st_size, e.path) for e in found if e.is_file() for s in (e.stat(),)]


def _seal(key: str, body: bytes) -> str:
    """Return the hash of an entry under its key."""
    return hashlib.sha256(key.encode() + b"\n" + body).hexdigest()


def _told(value: Any) -> Any:
    """Return a value as JSON in which different values differ, and equal ones of different types too."""
    kind = type(value).__name__
    if is_dataclass(value):
        return [kind, [[f.name, _told(getattr(value, f.name))] for f in fields(value)]]
    if isinstance(value, Mapping):
        return [kind, [[_told(name), _told(inner)] for name, inner in value.items()]]
    if isinstance(value, list | tuple):
        return [kind, [_told(inner) for inner in value]]
    if isinstance(value, np.ndarray | np.generic):
        host = np.asarray(value)
        if host.dtype.kind in "biuf":
            return [kind, host.dtype.str, host.shape, hashlib.sha256(host.tobytes()).hexdigest()]
    if isinstance(value, float):
        return [kind, value.hex()]
    if value is None or isinstance(value, bool | int | str | range):
        return [kind, repr(value)]
    msg = f"a case holds {value!r}, a {kind}; it must hold numbers, words, arrays, lists and records."
    raise TypeError(msg)
