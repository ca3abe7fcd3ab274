"""A file that two processes share: the judge lends inputs in it, and the other process appends results."""

from __future__ import annotations

import base64
import ctypes
import mmap
import os
import stat
import sys
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends import numpy as layouts

from ..suite.safe_files import PrivateFile

ALIGNED = 64
SHARED, ANONYMOUS, WRITABLE, MOVED = 0x01, 0x22, 0x03, 0x03  # flags of mmap and mremap on Linux
FAILED = (None, ctypes.c_void_p(-1).value)  # what both return then
PIECE = 1 << 16  # bytes that are compared at once
KEPT = 1 << 23  # bytes of inputs that are kept once more, to be compared together
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
        self._lent: dict[int, npt.NDArray[Any]] = {}  # the values of inputs, in a copy of their block, by where that begins
        self._whole: bytearray | None = bytearray()  # all that was lent, as it lies in the file, unless it is large
        self._mapped = (0, 0)  # the address and the length of its memory, in the process that computes
        self._block: ctypes.Array[ctypes.c_char] | None = None  # the memory of the inputs there, while a call has it

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

    @classmethod
    def offered(cls, place: int | str) -> SharedFile | None:
        """Return the file at a place, a descriptor or its number in words, or a path; None where there is no such file."""
        try:
            if not isinstance(place, int) and not place.isdecimal():
                return cls(place)
            state = os.fstat(int(place))
            return cls(int(place)) if stat.S_ISREG(state.st_mode) and not state.st_nlink else None  # another file has a name
        except OSError:  # a process between the two has closed it
            return None

    def begin(self, at: int = 0) -> None:
        """Let the next bytes be put at a place: what lies from there on is needed no more."""
        self._end = at
        self._lent.clear()
        self._whole = bytearray()
        if not at and self._most > LARGE:
            self._file.truncate(0)
            self._most = 0

    def put(self, array: npt.NDArray[Any]) -> dict[str, Any]:
        """Write an array behind the last one, and return its place as a tensor says it; its bytes where they find none."""
        data = _bytes_of(array).data
        at = self._put(data)
        return {"data": base64.b64encode(data).decode("ascii")} if at is None else {"at": at}

    def _put(self, data: bytearray | memoryview) -> int | None:
        """Write bytes behind the last ones, and return their place; None where files may not be that large."""
        at = self._end
        try:
            self._write(data, at)
        except OSError:
            return None
        self._end += -(-len(data) // ALIGNED) * ALIGNED
        self._most = max(self._most, self._end)
        return at

    # ---- the judge ----------------------------------------------------------------------------------------------------------
    def lend(self, array: npt.NDArray[Any], form: str) -> dict[str, Any]:
        """Put an input inside a larger block of memory, and return its place and this block."""
        values = layouts.strided(array) if form == "non-contiguous" and array.ndim else layouts.guarded(array)
        owner = _owner(values)
        at = self._put(self._padded(_bytes_of(owner).data))
        if at is None:
            return self.put(array)
        self._lent[at] = values
        inside = _offset(values)
        strides = {} if values.flags.c_contiguous else {"strides": values.strides}
        return {"at": at + inside, "block": [at, owner.nbytes], **strides}

    def _padded(self, block: memoryview) -> bytearray | memoryview:
        """Return the bytes of a block with zeros up to the next one, and keep them; without zeros where all are large."""
        if self._whole is None or self._end + len(block) > KEPT:
            self._whole = None
            return block
        padded = bytearray(-(-len(block) // ALIGNED) * ALIGNED)
        padded[: len(block)] = block
        self._whole += padded
        return padded

    def lend_again(self) -> int | None:
        """Put all inputs that were lent once more behind them, and return how far; None where they are large."""
        size = self._end
        if self._whole is None or self._put(self._whole) is None:
            return None
        self._lent |= {at + size: values for at, values in self._lent.items()}
        self._whole = 2 * self._whole
        return size

    def is_unchanged(self) -> bool:
        """Return whether all that was lent is as it was, and what lies between; False where it is large."""
        return self._whole is not None and self.get(0, len(self._whole)) == self._whole

    def is_changed(self, tensor: Mapping[str, Any]) -> tuple[bool, bool]:
        """Return whether an input that was lent has other bits now, and whether the memory around it has."""
        start, size = tensor.get("block", (0, 0))
        if not size:
            return False, False
        before = self._lent[start]
        if self._has(start, _bytes_of(_owner(before))):
            return False, False
        now, block = self.get(start, size), _owner(before).tobytes()
        if len(now) != size:
            return True, True
        around = bytearray(now)
        after = np.ndarray(before.shape, before.dtype, around, _offset(before), before.strides)
        inside = after.tobytes() != before.tobytes()
        after[...] = before
        return inside, around != block

    def _has(self, at: int, block: npt.NDArray[np.uint8]) -> bool:
        """Return whether the file has these bytes at a place, piece by piece: a copy of a large one would take new memory."""
        pieces = ((at + k, block[k : k + PIECE]) for k in range(0, block.size, PIECE))
        return all(self.get(start, piece.size) == piece.tobytes() for start, piece in pieces)

    # ---- the process that computes ------------------------------------------------------------------------------------------
    def borrow(self, size: int) -> memoryview | None:
        """Return the memory of the first bytes of the file, which the judge reads after the call; None where that cannot be."""
        if MEMORY is None or not size:
            return None
        length = max(mmap.PAGESIZE, 1 << (size - 1).bit_length())  # of few different types
        if self._mapped[1] < length:
            self._unmap()
            address = MEMORY.mmap(None, length, WRITABLE, SHARED, self._file.fileno(), 0)
            if address in FAILED:
                return None
            self._mapped = (address, length)
        self._block = (ctypes.c_char * self._mapped[1]).from_address(self._mapped[0])
        return memoryview(self._block).cast("B")[:size]

    def give_back(self, size: int) -> None:
        """Let go of the memory. What an implementation keeps of it stays as it is, in memory of its own; or `MemoryError`."""
        if self._block is None:
            return
        kept = weakref.ref(self._block)
        self._block = None
        if (block := kept()) is not None:
            (address, length), self._mapped = self._mapped, (0, 0)
            weakref.finalize(block, MEMORY.munmap, address, length).atexit = False
            copy = MEMORY.mmap(None, length, WRITABLE, ANONYMOUS, -1, 0)  # one of the file would go where the file is cut
            if copy not in FAILED:
                ctypes.memmove(copy, address, size)
            if copy in FAILED or MEMORY.mremap(copy, length, length, MOVED, address) in FAILED:
                msg = "no memory is left for the inputs that it keeps"
                raise MemoryError(msg)

    def _unmap(self) -> None:
        if self._mapped[1]:
            MEMORY.munmap(*self._mapped)
            self._mapped = (0, 0)

    def get(self, at: int, size: int) -> bytes:
        """Return at most `size` bytes from a place on."""
        self._most = max(self._most, at + size)
        if POSITIONED:
            return os.pread(self._file.fileno(), size, at)
        self._file.seek(at)
        return self._file.read(size)

    def _write(self, data: bytearray | memoryview, at: int) -> None:
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
        self._unmap()
        self._file.close()
        if self._private is not None:
            self._private.remove()


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes of an array in one axis, without a copy where they lie so."""
    return array.reshape(-1).view(np.uint8)


def _owner(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array whose memory a view has."""
    assert values.base is not None
    return values.base


def _offset(values: npt.NDArray[Any]) -> int:
    """Return where an array begins in the memory of its owner."""
    place: int = values.__array_interface__["data"][0] - _owner(values).__array_interface__["data"][0]
    return place


def _memory() -> Any:
    """Return the C library with the types of its functions; None where memory is not mapped so."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *3 * (ctypes.c_int,), ctypes.c_long)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    library.mremap.restype = ctypes.c_void_p
    return library


MEMORY = _memory()
