"""The process of a program where the system has no fork, as on Windows: pipes and a deadline, without other limits."""

from __future__ import annotations

import os
import queue
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import BinaryIO

from ...errors import TargetError
from .program_process import CHUNK, CLOSING, Child, environment, kill_left

CHOICE = "POSREF_PROCESS"  # in the environment: "plain" chooses such a process on every system
WAIT = 0.2  # seconds: on Windows nothing interrupts a longer wait
CHUNKS = 16  # that are read ahead
OUT, ERR, SENT = "out", "err", "sent"


def limited() -> bool:
    """Return whether a program runs with limits: of memory, of files, and of what it starts."""
    return hasattr(os, "fork") and os.environ.get(CHOICE) != "plain"


def kind() -> str:
    """Return in which process a program computes here: a key of ``PROCESSES`` of targets."""
    return "limited" if limited() else "plain"


def run(
    command: Sequence[str] | Callable[[], object], *, memory: float, aloud: bool = False, shared: tuple[int, ...] = ()
) -> Child:
    """Return a run of a program, with limits where the system has them; `TargetError` if it cannot be started."""
    if limited():
        return Child(command, memory=memory, aloud=aloud, shared=shared)
    assert not callable(command)
    assert not shared
    return PlainChild(command, aloud=aloud)


class PlainChild(Child):
    """A run of a program with a deadline for every reply. Threads read and write its pipes."""

    def __init__(self, command: Sequence[str], *, aloud: bool = False) -> None:
        self._prepare(aloud=aloud)
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                env=environment(self.mark), start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # ctrl-c is for this process
            )  # fmt: skip
        except (OSError, ValueError) as error:  # ValueError: a NUL
            msg = f"check: cannot run {command[0]!r}: {getattr(error, 'strerror', None) or error}."
            raise TargetError(msg) from error
        self._process = process
        self._events: queue.Queue[tuple[str, bytes]] = queue.Queue(CHUNKS)
        self._unwritten: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._open = {OUT, ERR}
        self._sending, self._killed = False, False
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for work in (
            (self._write_all, process.stdin),
            (self._read_all, process.stdout, OUT),
            (self._read_all, process.stderr, ERR),
        ):
            Thread(target=work[0], args=work[1:], daemon=True).start()

    def kill(self) -> None:
        """Kill the program, and what it started as far as the system tells that; wait until it is gone."""
        if not self._killed:
            self._killed = True
            self._hang_up()
            self._process.kill()
            self._process.wait()
            kill_left(self.mark, self._others)

    def _speaks(self) -> bool:
        return OUT in self._open

    def _listens(self) -> bool:
        return bool(self._open)

    def _look(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._take(*self._events.get_nowait())

    def _hear_out(self) -> None:
        deadline = time.monotonic() + CLOSING
        while ERR in self._open and time.monotonic() < deadline:
            with suppress(queue.Empty):
                self._take(*self._events.get(timeout=WAIT / 4))

    def _hang_up(self) -> None:
        self._unwritten.put(None)

    def _exchange(self, unsent: memoryview, seconds: float | None) -> memoryview:
        """Wait until something was read or written, not long, and return what is still to be written: all or nothing."""
        if unsent and not self._sending:
            self._sending = True
            self._unwritten.put(bytes(unsent))
        with suppress(queue.Empty):
            self._take(*self._events.get(timeout=WAIT if seconds is None else min(WAIT, seconds)))
        return unsent if self._sending else memoryview(b"")

    def _take(self, kind: str, data: bytes) -> None:
        if kind == SENT:
            self._sending = False
        elif data:
            self._keep(data, of_output=kind == OUT)
        else:
            self._open.discard(kind)

    def _read_all(self, pipe: BinaryIO, kind: str) -> None:
        """Pass on what a pipe gives until its end, and close it; an empty chunk is the end."""
        with suppress(OSError, ValueError):
            while not self._killed and (data := pipe.read(CHUNK)):
                self._put(kind, data)
        self._put(kind, b"")
        pipe.close()

    def _write_all(self, pipe: BinaryIO) -> None:
        """Write messages until there is None; what the program does not read once it has closed its end is dropped."""
        while (message := self._unwritten.get()) is not None:
            with suppress(OSError, ValueError):
                left = memoryview(message)
                while left:
                    left = left[pipe.write(left) :]
            self._put(SENT, b"")
        with suppress(OSError):
            pipe.close()

    def _put(self, kind: str, data: bytes) -> None:
        while not self._killed:
            with suppress(queue.Full):
                self._events.put((kind, data), timeout=WAIT)
                return
