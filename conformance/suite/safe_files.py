"""
Safe files: reads other people's files within limits, and writes posref's own whole or not at all.

A file is opened once, through no link, and is never longer than announced; JSON has one meaning. Everything that is written is
made in a scratch folder beside its place, ``.NAME.posref-xxxxxxxx``, brought to the disk, and moved into place. A process that
is killed leaves that folder behind and nothing else; the next one that writes NAME removes it. The lock that a living process
holds on its scratch folder ends with the process.
"""

import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import VectorError

try:
    import fcntl
except ImportError:  # not on Windows: there nothing is locked, and nothing removed that another process has left
    fcntl = None  # type: ignore[assignment]

OURS = Path(__file__).parents[1] / "vectors"  # comes as this code does: some package managers install files as links
FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


# ---- limits: how many bytes, and how much inside, posref reads of a file; targets/limits.py has those of a target ----------
# Bytes of files, by what they are
SUITE_FILE = 64 * 2**20  # of any file of a suite
SUITE_DOCUMENT = 4 * 2**20  # of a JSON file of a suite
NAMED_FILE = 1 << 28  # that a user names
REPORT = 1 << 26  # of an earlier check
ANSWERS = 1 << 22  # about an implementation that answered elsewhere

# JSON
JSON_DOCUMENT = 16 * 2**20  # bytes of a document; the parsed objects may take about twenty times as much
DEPTH = 32  # of objects and lists inside one another; tensors have at most 8 axes
PARTS = 1 << 20  # objects and lists of a document, each of which takes as much time and memory as 100 characters
OPERATIONS = 2000  # of a report, an operation in one dtype each
DIGITS = 20  # no 64-bit integer has more, and longer ones take time that grows with the square

# Tensors (safetensors)
TENSOR_NAME = 255  # bytes
TENSOR_AXES = 8
TENSOR_HEADER = 2**20  # bytes
EMPTY_TENSOR = 2**20  # places of the other axes of a tensor without values
REFUSED_CALL = 2**16  # places of an axis in a call to be refused, where no expected values bound them

# GGUF
GGUF_HEADER = 1 << 28  # bytes: vocabularies take some millions
GGUF_ARRAY = 1 << 12  # elements of an array; longer ones are vocabularies, and are not kept
GGUF_ELEMENTS = 1 << 20  # of all arrays that are kept
GGUF_PAIRS, GGUF_TENSORS = 1 << 14, 1 << 17
GGUF_STRINGS = 1 << 22  # of a vocabulary
GGUF_AXES = 4


# ---- reading --------------------------------------------------------------------------------------------------------------


def read(path: Path, limit: int, *, root: Path | None = None) -> bytes:
    """
    Return the bytes of a regular file of at most `limit` bytes.

    Kind, size and contents are those of one open file, so that nothing can be exchanged between the question and the answer. A
    pipe or a device is refused unopened; so is a link, and a linked folder between `root` and the file.

    `VectorError` if there is no such file, or it is not of this kind.
    """
    try:
        place = _resolved(path) if _below(path, OURS) else os.fspath(path)
        _no_links(place, root)
        if not stat.S_ISREG(os.lstat(place).st_mode):  # opening some devices does something
            raise refusal(path, "must be a regular file", root)
        with os.fdopen(os.open(place, FLAGS), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                raise refusal(path, f"must be a regular file of at most {limit} bytes; got {status.st_size}", root)
            data = b"".join(iter(lambda: file.read(status.st_size + 1), b""))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise refusal(path, f"cannot be read: {getattr(error, 'strerror', None) or error}", root) from error
    if len(data) != status.st_size:
        raise refusal(path, "was written to while it was read", root)
    return data


def _resolved(path: Path) -> str:
    """Return where a file of ours is, through links; those of its folder are followed once, which takes long."""
    place = os.path.join(_resolved_folder(os.path.dirname(path)), os.path.basename(path))
    return os.path.realpath(place) if os.path.islink(place) else place


_resolved_folder = functools.lru_cache(maxsize=16)(os.path.realpath)


def read_named(path: Path, limit: int = NAMED_FILE) -> bytes:
    """
    Return the bytes of a file that the user names, which may be a link to it: a regular file of at most `limit` bytes.

    `VectorError` if there is no such file, or it is a folder, a pipe or a device.
    """
    try:
        return read(Path(os.path.realpath(path)), limit)
    except (VectorError, ValueError) as error:  # ValueError: a NUL in the name
        msg = f"{path}: {str(error).partition(': ')[2] or error}"
        raise VectorError(msg) from error


@contextlib.contextmanager
def open_named(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Yield a file that the user names, and its size, where only its beginning is read; `VectorError` unless it is regular."""
    try:
        place = Path(os.path.realpath(path))
        regular = stat.S_ISREG(place.stat().st_mode)  # opening some devices does something
        with os.fdopen(os.open(place if regular else os.devnull, FLAGS), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise refusal(path, "must be a regular file")
            yield file, status.st_size
    except OSError as error:
        raise refusal(path, f"cannot be read: {error.strerror or error}") from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file that the user names, such as a config.json; `VectorError` if it is anything else."""
    try:
        result = loads(read_named(path, JSON_DOCUMENT), encoding="utf-8", lenient=True)
    except ValueError as error:
        raise refusal(path, f"is not JSON that can be read: {error}") from error
    if not isinstance(result, dict):
        raise refusal(path, f"must hold a JSON object; got a {type(result).__name__}")
    return result


HERE = os.path.join(os.curdir, "")  # no path that pathlib writes begins with it


def _below(path: str | Path, folder: str | Path) -> bool:
    """Return whether a path, as it is written, lies in a folder."""
    written, above = os.fspath(path), os.path.join(folder, "")  # pathlib takes long, and a suite has thousands of files
    if above == HERE:
        return written not in ("", os.curdir) and not os.path.isabs(written)
    return written != above and written.startswith(above)


def _no_links(path: str, root: Path | None) -> None:
    """Raise if the file, or a folder between it and `root`, is a symbolic link."""
    place = path
    while place == path or (root is not None and _below(place, root)):
        if os.path.islink(place):
            raise refusal(place, "must not be a symbolic link: a suite holds files", root)
        place = os.path.dirname(place)


def refusal(path: str | Path, why: str, root: Path | None = None) -> VectorError:
    """Return the error for a file, which a suite in `root` has to have."""
    return VectorError(f"{path}: {why}." + ("" if root is None else " Fetch the suite again."))


# ---- JSON: small, shallow and with one meaning, or refused with the reason -------------------------------------------------
CONTAINERS = (dict, list)


def loads(data: bytes, *, limit: int = JSON_DOCUMENT, encoding: str = "ascii", lenient: bool = False) -> Any:
    """
    Return the document in `data`; with `lenient` numbers may be NaN, infinite or large, as models' files have them.

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
    parts = text.count("[") + text.count("{")
    if parts > PARTS:
        msg = f"it has {parts} objects and lists, more than {PARTS}"
        raise ValueError(msg)
    try:
        document = (LENIENT if lenient else STRICT).decode(text)
    except RecursionError:
        document = None
        deep = True
    else:
        deep = parts > DEPTH and _deep(document)
    if deep:
        msg = f"it is nested more than {DEPTH} deep"
        raise ValueError(msg)
    if "\\u" in text:
        json.dumps(document, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded: UnicodeError is a ValueError
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        msg = "an object repeats a key"
        raise ValueError(msg)
    return result


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
    value = int(text) if len(text) <= DIGITS else 2**63
    if not -(2**63) <= value < 2**63:
        msg = f"the integer {text[:40]} is beyond 64 bits"
        raise ValueError(msg)
    return value


STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant, parse_float=_real, parse_int=_integer)
LENIENT = json.JSONDecoder(object_pairs_hook=_unique)


def _deep(document: Any) -> bool:
    """Return whether a document is nested too deeply, level by level, so that the question itself cannot recurse."""
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(DEPTH):
        if not level:
            return False
        parts = (c.values() if isinstance(c, dict) else c for c in level)
        level = [value for part in parts for value in part if isinstance(value, CONTAINERS)]
    return any(level)


# ---- writing: whole or not at all -----------------------------------------------------------------------------------------
STANDARD_OUTPUT = ("-", "/dev/stdout")  # names of standard output, wherever a file is asked for
LONGEST = 200  # bytes of a name in the name of its scratch folder: a name has at most 255 on most systems


def write(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a new file with at most the permissions of `mode`; what is there is not written to, and no link is followed."""
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)


class PrivateFile:
    """An empty file, in a folder of this user's alone."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="posref-"))
        _OPEN[self._folder] = self._folder
        self.path = self._folder / "tensors"
        write(self.path, b"", mode=0o600)

    def remove(self) -> None:
        """Remove it and its folder."""
        _clear(self._folder, self._folder)


def is_private(path: Path) -> bool:
    """Return whether a file or folder is this user's, and nobody else may read or change it; no link is one."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return False
    return os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)


def whole_file(path: Path, data: str | bytes) -> None:
    """
    Write a file, text as UTF-8; what is at `path` stays as it is until the new file is complete.

    A file that is replaced keeps its permissions. ``-`` and ``/dev/stdout`` are standard output.

    Raises
    ------
    VectorError
        If there is something else than a regular file at `path`: a link, a device, a pipe or a folder.
    OSError
        If it cannot be written; the error names `path`.
    """
    body = data.encode() if isinstance(data, str) else data
    if is_standard_output(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
        return
    mode = _expect_file(path)
    with _naming(path), _beside(path.parent.resolve() / path.name) as scratch:
        new = scratch / "new"
        write(new, body)
        if mode is not None:
            new.chmod(mode)
        _sync(new)
        _expect_file(path)
        os.replace(new, path)
        _sync(path.parent)


def is_standard_output(path: Path) -> bool:
    """Return whether a path means standard output."""
    return str(path) in STANDARD_OUTPUT


def expect_writable(*paths: Path | None, read: Iterable[Path | None] = ()) -> None:
    """
    Raise what `whole_file` would raise for these paths, as far as that can be known before.

    `VectorError` too if one of them is among the files that are `read`, or is there twice.
    """
    used = {os.path.realpath(path): "replace a file that is read" for path in read if path is not None}
    for path in paths:
        if path is not None and not is_standard_output(path):
            _expect_file(path)
            with _naming(path), tempfile.TemporaryFile(dir=path.parent):
                place = os.path.realpath(path)
            if place in used:
                raise refusal(path, f"would {used[place]}. Choose another name")
            used[place] = "be written twice"


def _expect_file(path: Path) -> int | None:
    """Return the permissions of the file at `path`, None if there is nothing; raise unless it may be replaced."""
    with _naming(path):
        try:
            status = path.lstat()
        except FileNotFoundError:
            return None
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        if not stat.S_ISREG(status.st_mode):
            raise refusal(path, f"must be a regular file or new; it is {kind}. Choose another name, or - for standard output")
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return stat.S_IMODE(status.st_mode)


KINDS = {
    stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
}  # fmt: skip


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an `OSError` name the caller's path, not one that posref made of it."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    except ValueError as error:  # a NUL in the name
        raise refusal(path, f"cannot be a file's name: {error}") from error


@contextlib.contextmanager
def whole_directory(directory: Path, check: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """
    Yield a new folder that takes the place of `directory` when the block ends without an error.

    Without `check` there must be nothing at `directory`, or an empty folder. With it, a folder that is not empty is replaced
    if `check` raises no error for it, before and again after the block. It is moved aside first: a process killed in that
    instant leaves it in the scratch folder, whole, and the next writer puts it back.
    """
    with _naming(directory):
        place = Path(os.path.realpath(directory))
        if directory.is_symlink() and not place.exists():
            raise refusal(directory, "is a symbolic link to nothing. Choose another name")
        if any(p.exists() and not p.is_dir() for p in (place, place.parent)):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    _expect_replaceable(place, check)
    with _naming(directory):
        place.parent.mkdir(parents=True, exist_ok=True)
    with _beside(place) as scratch:
        with _naming(directory):
            new = scratch / "new"
            new.mkdir()
        try:
            yield new
        except OSError as error:
            if error.filename is None or str(error.filename).startswith(str(scratch)):
                error.filename, error.filename2 = str(directory), None
            raise
        with _naming(directory):
            for folder, _, files in os.walk(new, topdown=False):
                for path in (*(os.path.join(folder, name) for name in files), folder):
                    _sync(path)
        _expect_replaceable(place, check)
        with _naming(directory):
            if place.exists():
                new.chmod(stat.S_IMODE(place.stat().st_mode))
                os.rename(place, scratch / "old")
            os.rename(new, place)
            _sync(place.parent)


def _expect_replaceable(place: Path, check: Callable[[Path], None] | None) -> None:
    """Raise unless there is nothing at `place`, an empty folder, or one that `check` knows."""
    if place.exists() and any(place.iterdir()):
        if check is None:
            raise refusal(place, "must be new or empty. Choose another folder")
        check(place)


def put_aside(directory: Path) -> Path | None:
    """Return where an interrupted replacement of `directory` has left the old one, if that happened."""
    place = Path(os.path.realpath(directory))
    return next((s / "old" for s in _scratches(place) if (s / "old").exists() and not place.exists()), None)


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """Yield a locked scratch folder beside `place`, and remove those that processes without an end have left."""
    for left in _scratches(place):
        handle = _lock(left, wait=False)
        if handle is not None:
            _clear(left, place)
            os.close(handle)
    scratch = place.parent / f"{_prefix(place)}{secrets.token_hex(4)}"
    lock = None
    _OPEN[scratch] = place
    try:
        while not scratch.exists():  # not even once it is locked, if another process took it for one that was left
            scratch.mkdir(mode=0o700)
            lock = _lock(scratch, wait=True)
        yield scratch
    finally:
        try:
            _clear(scratch, place)
        finally:  # also where the first attempt was interrupted
            if scratch in _OPEN:
                _clear(scratch, place)
            if lock is not None:
                os.close(lock)


_OPEN: dict[Path, Path] = {}  # the scratch folders of this process, with the places that they are for


def clear() -> None:
    """Remove all scratch folders of this process, which is about to end."""
    for scratch, place in list(_OPEN.items()):
        _clear(scratch, place)


def _scratches(place: Path) -> list[Path]:
    """Return the scratch folders of `place` that there are."""
    pattern = re.compile(re.escape(_prefix(place)) + "[a-z0-9_]{8}")
    with contextlib.suppress(FileNotFoundError):
        return sorted(p for p in place.parent.iterdir() if pattern.fullmatch(p.name) and p.is_dir() and not p.is_symlink())
    return []


def _prefix(place: Path) -> str:
    """Return how the names of the scratch folders of `place` begin."""
    name = os.fsencode(place.name)
    short = name if len(name) <= LONGEST else name[: LONGEST // 2] + hashlib.sha256(name).hexdigest().encode()
    return f".{os.fsdecode(short)}.posref-"


def _lock(scratch: Path, *, wait: bool) -> int | None:
    """Return the lock on a scratch folder of ours; None if it is somebody else's, or there are no locks here."""
    if fcntl is None:
        return None
    try:
        handle = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(handle).st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return handle
    except OSError:  # held by a living process, or a file system without locks
        pass
    os.close(handle)
    return None


def _clear(scratch: Path, place: Path) -> None:
    """Remove a scratch folder; an old folder in it goes back if its place is empty, and else is no longer called that."""
    if (scratch / "old").exists():
        os.rename(scratch / "old", scratch / "replaced" if os.path.lexists(place) else place)
    shutil.rmtree(scratch, ignore_errors=True)
    _OPEN.pop(scratch, None)


def _sync(path: str | Path) -> None:
    """Bring a file or folder to the disk, so that no later rename overtakes its contents."""
    if os.name == "nt":  # which cannot open folders, and flushes files only through a handle that writes
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
