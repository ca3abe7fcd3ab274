"""Reading files that strangers made: opened once, regular, through no link, and never more than was announced."""

import os
import stat
from pathlib import Path

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
