"""Connection to the process that computes for a Python target: requests by a pipe, tensors by shared memory."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import Stopped, TargetError, shown
from ..suite.safe_files import Exchange
from .limits import GOODBYE, REPLY
from .program_process import Child, process_kind, run_program

if TYPE_CHECKING:
    import numpy.typing as npt

MAIN = "posref.conformance.targets.child_process"  # the main program of the process
OF_LOADING, OF_A_CALL = ("ok", "refused"), ("ok", "unsupported", "fail", "error")  # the status of a reply
NUMBERS = re.compile(r"<f(?:2|4|8|16)|[<|][iu](?:1|2|4|8)|\|b1")  # dtypes of which tensors are read
OTHERS = re.compile(r"[<>=|]?[a-zA-Z][0-9]{0,5}")  # dtypes of which no value is accepted
DIGITS = 20  # of the size of a request
NAME = 100  # characters of a dtype's name at most


def ahead(memory: float) -> Connection | None:
    """
    Return a process that is a copy of this one, which spares it the imports, or None where a new one must be started later.

    A copy has what this process has in its memory: it is made only while there is no NumPy here, and so no expected value. From
    Python 3.12 on there is none, since NumPy has threads, and Python warns of copies beside threads.
    """
    if (
        sys.platform != "linux"
        or process_kind() != "limited"
        or sys.version_info >= (3, 12)
        or threading.active_count() > 1
        or "numpy" in sys.modules
    ):
        return None
    return Connection(memory, copy_of=import_module(MAIN).main)


class Connection:
    """
    One run of the process. `memory` limits it, in GiB; 0 is no limit.

    Replies are one line of JSON each. The tensors of a reply lie in a file without a name, in memory where the system has that;
    in one with a name where a process cannot be given open files.
    """

    def __init__(self, memory: float, *, copy_of: Callable[[], None] | None = None) -> None:
        self._exchange = None if process_kind() == "limited" else Exchange()
        self.file: int | str = str(self._exchange.path) if self._exchange else _unnamed_file()  # as the process is told
        shared = (self.file,) if isinstance(self.file, int) else ()
        command = copy_of or [sys.executable, "-P", "-m", MAIN]
        self.child: Child | None = None
        try:
            self.child = run_program(command, memory=memory, aloud=True, shared=shared)
        finally:
            if self.child is None:
                self._let_go()
        self.seq = 0

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Return the reply to a request; `Stopped` if there is none that can be read, and the process is killed then."""
        if self.child is None:
            raise Stopped(verdict="crash", message="its process was killed")
        self.seq += 1
        try:
            message = _message({**request, "seq": self.seq})
        except Exception as error:
            msg = f"check: what is given to a target of its name must be a word or a number: {shown(str(error))}."
            raise TargetError(msg) from error
        try:
            line = self.child.ask(message, seconds=seconds, limit=REPLY)
            return _reply(line, self.seq, OF_LOADING if request["do"] == "load" else OF_A_CALL)
        except Stopped as stopped:
            self.kill()
            if stopped.verdict == "crash":
                raise Stopped(verdict="crash", message=f"its process {stopped}") from None
            raise
        except BaseException:
            self.kill()
            raise

    def tensor(self, told: Any, most: int) -> tuple[npt.NDArray[Any], str | None]:
        """
        Return one tensor of a reply, copied, and the name of its dtype; `ValueError` if what is told of it is not right.

        Of one with more than `most` numbers, or with other things than numbers, there are only shape and dtype.
        """
        import numpy as np

        name, kind, shape, at = told
        if not (name is None or (isinstance(name, str) and len(name) <= NAME and name.isprintable())):
            msg = "the name of a dtype"
            raise ValueError(msg)
        if not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in (*shape, at))):
            msg = "a shape, or a place in the file"
            raise ValueError(msg)
        if not (isinstance(kind, str) and OTHERS.fullmatch(kind)):
            msg = "a dtype"
            raise ValueError(msg)
        dtype, count = np.dtype(kind), math.prod(shape)
        if count > most or not NUMBERS.fullmatch(kind):
            return np.broadcast_to(np.zeros((), dtype), shape), name
        data = self._read(count * dtype.itemsize, at)  # a copy, which the process cannot change
        return np.frombuffer(data, dtype, count).reshape(shape), name

    def stop(self) -> None:
        """Let the process end by itself, and leave nothing of it behind."""
        if self.child is not None:
            self.child.stop(b"\n", seconds=GOODBYE)
        self.kill()

    def kill(self) -> None:
        """Leave nothing of the process behind."""
        if self.child is not None:
            child, self.child = self.child, None
            child.kill()
            self._let_go()

    def _let_go(self) -> None:
        """Close the file of tensors."""
        if self._exchange is not None:
            self._exchange.close()
        elif isinstance(self.file, int):
            os.close(self.file)

    def _read(self, size: int, at: int) -> bytes:
        if self._exchange is not None:
            return self._exchange.read(size, at)
        assert isinstance(self.file, int)
        return os.pread(self.file, size, at)


def _message(request: Mapping[str, Any]) -> memoryview:
    """Return a request with its size before it; its arrays, which may be large, are copied once."""
    file = io.BytesIO()
    file.write(b"%*d\n" % (DIGITS, 0))
    pickle.dump(request, file, protocol=5)
    size = file.tell() - DIGITS - 1
    file.seek(0)
    file.write(b"%*d" % (DIGITS, size))
    return file.getbuffer()


def _unnamed_file() -> int:
    """Return the descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):  # of Linux; /dev/shm may be small
        return os.memfd_create("posref")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _reply(line: bytes, seq: int, statuses: tuple[str, ...]) -> dict[str, Any]:
    """Return a reply read from its line, to the request of that number, with one of these statuses."""
    try:
        reply: dict[str, Any] = json.loads(line)
        answers = type(reply["seq"]) is int and reply["seq"] == seq
        known = reply["status"] in statuses and isinstance(reply.get("message", ""), str)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Stopped(verdict="protocol", message=unreadable(error)) from error
    if not answers:
        raise Stopped(verdict="protocol", message=f"its reply cannot be read: seq must be {seq}, as in the request")
    if not known:
        msg = f"its reply cannot be read: status must be one of {', '.join(statuses)}, and a message must be text"
        raise Stopped(verdict="protocol", message=msg)
    return reply


def unreadable(error: Exception) -> str:
    """Return that a reply cannot be read, and why."""
    return shown(f"its reply cannot be read: {type(error).__name__}: {error}", 300)
