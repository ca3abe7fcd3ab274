"""
Files and folders that are there whole or not at all, whatever interrupts their writing.

Everything is made in a scratch folder beside its place, ``.NAME.posref-xxxxxxxx``, brought to the disk, and moved into place.
A process that is killed leaves that folder behind and nothing else; the next one that writes NAME removes it. The lock that a
living process holds on its scratch folder ends with the process.
"""

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: there nothing is locked, and nothing removed that another process has left
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def whole_directory(directory: Path, *, replace: bool = False) -> Iterator[Path]:
    """
    Yield a new folder that takes the place of `directory` when the block ends without an error.

    Without `replace` there must be nothing at `directory`, or an empty folder. With it, the old one is moved aside first: a
    process killed in that instant leaves it in the scratch folder, whole, and the next writer puts it back.
    """
    place = Path(os.path.realpath(directory))
    if place.parent.exists() and not place.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place.parent))
    place.parent.mkdir(parents=True, exist_ok=True)
    with _beside(place) as scratch:
        new = scratch / "new"
        new.mkdir()
        yield new
        for folder, _, files in os.walk(new, topdown=False):
            for path in (*(os.path.join(folder, name) for name in files), folder):
                _sync(path)
        if place.exists():
            if replace:
                os.rename(place, scratch / "old")
            else:
                place.rmdir()
        os.rename(new, place)
        _sync(place.parent)


def whole_file(path: Path, text: str) -> None:
    """Write a text file; what is there already and is no regular file, such as /dev/stdout, is written to as it is."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    place = Path(os.path.realpath(path))
    with _beside(place) as scratch:
        new = scratch / "new"
        new.write_text(text, encoding="utf-8", newline="\n")
        _sync(new)
        os.replace(new, place)
        _sync(place.parent)


def put_aside(directory: Path) -> Path | None:
    """Return where an interrupted replacement of `directory` has left the old one, if that happened."""
    place = Path(os.path.realpath(directory))
    return next((s / "old" for s in _scratches(place) if (s / "old").exists() and not place.exists()), None)


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """Yield a locked scratch folder beside `place`; an `OSError` on the way names `place` if it names nothing."""
    for left in _scratches(place):
        handle = _lock(left, wait=False)
        if handle is not None:
            _clear(left, place)
            os.close(handle)
    scratch, lock = _create(place)
    try:
        yield scratch
    except OSError as error:
        error.filename = error.filename or str(place)
        raise
    finally:
        _clear(scratch, place)
        if lock is not None:
            os.close(lock)


def _scratches(place: Path) -> list[Path]:
    """Return the scratch folders of `place` that there are."""
    pattern = re.compile(re.escape(f".{place.name}.posref-") + "[a-z0-9_]{8}")
    with contextlib.suppress(FileNotFoundError):
        return sorted(p for p in place.parent.iterdir() if pattern.fullmatch(p.name) and p.is_dir() and not p.is_symlink())
    return []


def _create(place: Path) -> tuple[Path, int | None]:
    """Return a new scratch folder, and the lock on it where there are locks."""
    while True:
        scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}.posref-", dir=place.parent))
        lock = _lock(scratch, wait=True)
        if scratch.exists():  # else somebody took it for a dead process's before it was locked
            return scratch, lock
        if lock is not None:
            os.close(lock)


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


def _sync(path: str | Path) -> None:
    """Bring a file or folder to the disk, so that no later rename overtakes its contents."""
    if os.name == "nt":  # which cannot open folders, and flushes files only through a handle that writes
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
