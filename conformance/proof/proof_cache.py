"""
Cache of proved groups: the key covers all that a proof depends on, and an entry counts only with the right seal.

The seal takes a secret of the user's, which is kept beside the folder, so that nobody else can make an entry. A folder or a
secret that others may read or change is not used.
The key covers the group's cases with every value of them, the code that proves, and the versions of the libraries. Only workers
make entries: a process that has run for long may hold other code than the files that the key covers.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np
import safetensors

import posref
from posref import backends

from ..errors import VectorError
from ..model import Case
from ..suite import safe_files, schemas

CODE = Path(__file__).parents[1]
ROOMS = ("suite", "vocabulary", "witness", "proof")  # of conformance/, beside files at its root; cases are told by their values
WORDS = ("title", "idea", "longer")  # of `encoding`: for people only
Stamp = tuple[tuple[str, int, int, int], ...]


def identity() -> dict[str, Any]:
    """Return the hash of all code that proves and the versions that it runs on: the same proof, if both are the same."""
    digest = hashlib.sha256()
    for name, path in _files():
        digest.update(f"{name}\0{hashlib.sha256(_computing(path.read_bytes())).hexdigest()}\n".encode())
    return {"code": digest.hexdigest(), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that proved values and their files come from."""
    import flint  # what only checks needs neither
    import mpmath

    return {
        "python": sys.version,
        "numpy": np.__version__,
        "python-flint": f"{flint.__version__} with FLINT {flint.__FLINT_VERSION__}",
        "mpmath": mpmath.__version__,
        "gmpy2": _gmpy2(),
        "array-api-compat": array_api_compat.__version__,
        "safetensors": safetensors.__version__,
    }


def stamp() -> Stamp | None:
    """Return sizes and times of that code, which change when a file is edited; None while one is being replaced."""
    try:
        return tuple((name, s.st_mtime_ns, s.st_size, s.st_ino) for name, path in _files() for s in (path.stat(),))
    except OSError:
        return None


def _gmpy2() -> str:
    """Return the version of gmpy2 and of its library if mpmath computes with it."""
    import mpmath

    if mpmath.libmp.BACKEND != "gmpy":
        return "not used"
    import gmpy2

    return f"{gmpy2.version()} with {gmpy2.mp_version()}"


def _computing(source: bytes) -> bytes:
    """Return a file as it is, but a definition without docstring, title and idea: a changed sentence needs no new proof."""
    if b"\n@encoding(" not in source:
        return source
    starts = [0, 0]  # of each line, which are counted from 1
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in reversed(_said(ast.parse(source))):
        begin, end = starts[node.lineno] + node.col_offset, starts[node.end_lineno or 0] + (node.end_col_offset or 0)
        source = source[:begin] + source[end:]
    return source


def _said(tree: ast.Module) -> list[ast.expr | ast.keyword]:
    """Return the sentences of definitions, in the order of the file."""
    said: list[ast.expr | ast.keyword] = []
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        made = [call for call in function.decorator_list if isinstance(call, ast.Call) and ast.unparse(call.func) == "encoding"]
        said += [word for call in made for word in call.keywords if word.arg in WORDS]
        if made and isinstance(first := function.body[0], ast.Expr) and ast.get_docstring(function, clean=False):
            said.append(first.value)
    return said


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the files of that code with names that are the same in a checkout and in an installed package."""
    definitions, numbers = (Path(str(package.__file__)).parent for package in (posref, backends))
    yield from _below("posref", definitions, numbers, CODE)
    yield from _below("backends", numbers)
    yield from ((f"conformance/{path.name}", path) for path in sorted(CODE.glob("*.py")))
    for room in ROOMS:
        yield from _below(f"conformance/{room}", CODE / room)


def _below(name: str, root: Path, *others: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file below `root`, except hidden ones, compiled ones and those of the packages `others`."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f[0] != "." and f != "__pycache__" and Path(folder, f) not in others)
        for file in sorted(n for n in names if n[0] != "."):
            path = Path(folder, file)
            yield f"{name}/{path.relative_to(root).as_posix()}", path


LIMIT = 256 * 2**20  # bytes of all entries; a suite has about 15 million
LARGEST = 64 * 2**20  # bytes of an entry
NAMES = frozenset(("group.json", "data.safetensors", "tolerance.safetensors"))  # of a group's files
SECRET = 32  # bytes
ABANDONED = 3600  # seconds after which a half-written entry has nobody who writes it
MAGIC = b"posref proof 2\n"


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
        self.stamp = stamp()
        self.identity = identity()
        self.secret = _secret(folder)

    def key(self, cases: Sequence[Case]) -> str:
        """Return the key of a group: of its cases, and all that proves them."""
        return hashlib.sha256(json.dumps([self.identity, _canonical(list(cases))]).encode()).hexdigest()

    def get(self, key: str) -> Product | None:
        """Return what was proved under a key; None if nothing was, or it is not as this user stored it."""
        path = self.folder / key
        try:
            head, _, body = safe_files.read(path, LARGEST).removeprefix(MAGIC).partition(b"\n")
            if self.secret is None or not hmac.compare_digest(head, self._seal(key, body)):
                return None
            about, _, rest = body.partition(b"\n")
            entry = json.loads(about)
            files, begin = {}, 0
            for name, size in entry["files"]:
                files[name], begin = rest[begin : begin + size], begin + size
            os.utime(path, follow_symlinks=False)  # used: among the last to be removed
        except (OSError, ValueError, VectorError):
            return None
        return Product(files, entry["smoke"]) if {*files} == NAMES else None

    def put(self, key: str, product: Product) -> None:
        """Store what was proved, unless code was edited since this store was opened."""
        if self.secret is None or self.stamp is None or stamp() != self.stamp:
            return
        about = {"files": [[name, len(data)] for name, data in product.files.items()], "smoke": product.smoke}
        body = json.dumps(about).encode() + b"\n" + b"".join(product.files.values())
        with contextlib.suppress(OSError):  # a full disk: proved again next time
            new = self.folder / f".new-{secrets.token_hex(8)}"
            try:
                safe_files.write(new, MAGIC + self._seal(key, body) + b"\n" + body, mode=0o600)
                os.replace(new, self.folder / key)
            finally:
                new.unlink(missing_ok=True)

    def _seal(self, key: str, body: bytes) -> bytes:
        """Return the seal of an entry under its key, which nobody can make without the secret."""
        assert self.secret is not None
        return hmac.digest(self.secret, key.encode() + b"\n" + body, "sha256").hex().encode()

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
        with os.scandir(self.folder) as listing:
            files = [e for e in listing if e.is_file(follow_symlinks=False)]
            return [(s.st_mtime, s.st_size, e.path) for e in files for s in (e.stat(follow_symlinks=False),)]


def _secret(folder: Path) -> bytes | None:
    """Return the secret of a folder, which is made with it; None if they cannot be used, or others could have made entries."""
    place = folder.with_name(f"{folder.name}.secret")
    with contextlib.suppress(OSError, VectorError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            safe_files.write(place, secrets.token_bytes(SECRET), mode=0o600)
        secret = safe_files.read(place, SECRET)
        if len(secret) == SECRET and safe_files.is_private(folder) and safe_files.is_private(place):
            return secret
    return None


def _canonical(value: Any) -> Any:
    """Return a value as JSON in which different values differ, and equal ones of different types too."""
    kind = type(value).__name__
    if is_dataclass(value):
        return [kind, [[f.name, _canonical(getattr(value, f.name))] for f in fields(value)]]
    if isinstance(value, Mapping):
        return [kind, [[_canonical(name), _canonical(inner)] for name, inner in value.items()]]
    if isinstance(value, list | tuple):
        return [kind, [_canonical(inner) for inner in value]]
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
