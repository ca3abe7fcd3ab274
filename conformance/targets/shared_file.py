"""A file that two processes have open, in which each in turn puts the bytes of tensors."""

from __future__ import annotations

import base64
import os
import tempfile
from typing import Any

from ..suite.safe_files import PrivateFile

ALIGNED = 16
LARGE = 1 << 24  # bytes after which memory is given back
POSITIONED = hasattr(os, "pread")  # not on Windows


class SharedFile:
    """
    An open file by its descriptor or its path. It is in memory where the system has that, and then has no name.

    What is got is a copy, which the other process cannot change.
    """

    def __init__(self, place: int | str, private: PrivateFile | None = None) -> None:
        self.place, self._private = place, private
        self._file = open(place, "r+b", buffering=0)  # noqa: SIM115
        self._end = 0  # of what was put last
        self._most = 0  # bytes that were put or got since the file was given back

    @classmethod
    def new(cls, *, inherited: bool) -> SharedFile:
        """Return a new file; one with a name in a folder of this user's unless a process can be given open files."""
        if not inherited:
            private = PrivateFile()
            return cls(str(private.path), private)
        if hasattr(os, "memfd_create"):  # of Linux; /dev/shm may be small
            return cls(os.memfd_create("posref"))
        with tempfile.TemporaryFile() as file:
            return cls(os.dup(file.fileno()))

    def begin(self) -> None:
        """Let the next bytes be put at the beginning: what lies there is needed no more."""
        self._end = 0
        if self._most > LARGE:
            self._file.truncate(0)
            self._most = 0

    def put(self, data: bytes) -> dict[str, Any]:
        """Write bytes behind the last ones, and return their place as a tensor says it; the bytes where they find none."""
        at = self._end
        try:
            self._write(data, at)
        except OSError:  # a limit on the size of files holds for this one too
            return {"data": base64.b64encode(data).decode("ascii")}
        self._end += -(-len(data) // ALIGNED) * ALIGNED
        self._most = max(self._most, self._end)
        return {"at": at}

    def get(self, at: int, size: int) -> bytes:
        """Return at most `size` bytes from a place on."""
        self._most = max(self._most, at + size)
        if POSITIONED:
            return os.pread(self._file.fileno(), size, at)
        self._file.seek(at)
        return self._file.read(size)

    def _write(self, data: bytes, at: int) -> None:
        """Write all bytes to a place."""
        left = memoryview(data)
        while left:
            if POSITIONED:
                count = os.pwrite(self._file.fileno(), left, at)
            else:
                self._file.seek(at)
                count = self._file.write(left)
            left, at = left[count:], at + count

    def close(self) -> None:
        """Let go of it, and remove it if it has a name."""
        self._file.close()
        if self._private is not None:
            self._private.remove()
