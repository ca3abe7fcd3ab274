"""
The process of a program: three pipes, a deadline for every reply, and a kill that leaves no descendants.

Where the system has no fork, as on Windows, there are no other limits.
"""

from __future__ import annotations

import ctypes
import os
import queue
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from ..errors import Stopped, TargetError, shown
from . import supervisor
from .limits import LINE, NOISE, REPEATED, TAIL

SUPERVISOR = Path(__file__).with_name("supervisor.py")
MARK = "POSREF_PROGRAM"  # in the environment of everything that a program starts
OFFERED = "POSREF_MEMORY"  # in the environment of a program: the place of a file with the bytes of tensors
CHUNK = 1 << 16
CLOSING = 0.5  # seconds for a program to end that has closed its standard output
_ADOPTING = False
SPARED: set[int] = set()  # children of this process that no program started
PATIENCE = 3.0  # seconds for the supervisor to end: longer than its own
CHOICE = "POSREF_PROCESS"  # in the environment: "plain" chooses a process without limits on every system
WAIT = 0.2  # seconds: on Windows nothing interrupts a longer wait
CHUNKS = 16  # that are read ahead
OUT, ERR, SENT = "out", "err", "sent"


def process_kind() -> str:
    """Return in which process a program computes here: a key of ``PROCESSES`` of targets."""
    return "limited" if hasattr(os, "fork") and os.environ.get(CHOICE) != "plain" else "plain"


def can_be_copied() -> bool:
    """
    Return whether a copy of this process may compute for a target, which spares it the imports.

    A copy has what this process has in its memory: it is made only while there is no NumPy here, and so no expected value. From
    Python 3.12 on there is none, since NumPy has threads, and Python warns of copies beside threads.
    """
    alone = threading.active_count() == 1 and "numpy" not in sys.modules
    return sys.platform == "linux" and process_kind() == "limited" and sys.version_info < (3, 12) and alone


def run_program(
    command: Sequence[str] | Callable[[], object], *, memory: float, aloud: bool = False, shared: tuple[int, ...] = (),
    offered: str = "",
) -> Child:  # fmt: skip
    """Return a run of a program, with limits where the system has them; `TargetError` if it cannot be started."""
    kind = Child if process_kind() == "limited" else PlainChild
    return kind(command, memory=memory, aloud=aloud, shared=shared, offered=offered)


class Child:
    """
    One run of a program. `ask` raises `Stopped`, timeout, crash or protocol, after which only `kill` makes sense.

    With `aloud`, what it writes to standard error also goes to that of this process, as it comes. It also has the open
    files `shared`, and the name of one that it is `offered` in its environment.
    """

    _process: _Forked | subprocess.Popen[bytes]

    def __init__(
        self, command: Sequence[str] | Callable[[], object], *, memory: float, aloud: bool = False,
        shared: tuple[int, ...] = (), offered: str = "",
    ) -> None:  # fmt: skip
        self.offered = {OFFERED: offered} if offered else {}
        self.mark, self.aloud = uuid.uuid4().hex, aloud
        self.noise: deque[bytes] = deque(maxlen=5)
        self.errors, self.repeated, self.noisy = b"", 0, 0
        self._asked, self._writing = False, False
        self._buffer, self._searched = bytearray(), 0
        self._open = {OUT, ERR}  # pipes that are not read to their end
        self._others = _children()
        self._start(command, int(memory * 2**30), shared)

    def _start(self, command: Sequence[str] | Callable[[], object], limit: int, shared: tuple[int, ...]) -> None:
        """Start the program under its supervisor."""
        held, self._lifeline = os.pipe()
        theirs, ours = zip(*(os.pipe()[::step] for step in (1, -1, -1)), strict=True)
        try:
            if callable(command):
                self._process = _forked(command, self.mark, limit, held, theirs, shared)
            else:
                supervised = [sys.executable, "-I", "-S", str(SUPERVISOR), str(held), str(limit), *command]
                self._process = subprocess.Popen(
                    supervised, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2],
                    env=environment(self.mark) | self.offered, pass_fds=(held, *shared), start_new_session=True,
                )  # fmt: skip
        finally:
            for end in (held, *theirs):
                os.close(end)
        self._in, *read = ours
        self._ends = dict(zip((OUT, ERR), read, strict=True))
        self._selector = selectors.DefaultSelector()
        for end in ours:
            os.set_blocking(end, False)
        for kind, end in self._ends.items():
            self._selector.register(end, selectors.EVENT_READ, kind)

    def ask(
        self, message: bytes | memoryview, *, seconds: float, limit: int, meanwhile: Callable[[], None] | None = None
    ) -> bytes:
        """
        Send a line, or nothing, and return the next line that begins with a brace; no line may have more than `limit` bytes.

        While the program computes, what has to be done `meanwhile` is done; its time is not the program's.
        """
        if self._asked and message:
            self._refuse_more(limit)
        self._asked = True
        deadline = time.monotonic() + seconds
        unsent, reply, self.noisy = memoryview(message), None, 0
        while True:
            reply = reply or self._line(limit)
            if reply is not None and not unsent:
                return reply
            if meanwhile is not None and not unsent:
                begun = time.monotonic()
                meanwhile()
                deadline, meanwhile = deadline + time.monotonic() - begun, None
            if OUT not in self._open:
                raise Stopped(verdict="crash", message=self._end())
            left = deadline - time.monotonic()
            if left <= 0:
                raise Stopped(verdict="timeout", message=f"no reply within {seconds:g} s{self._last_output()}")
            unsent = self._exchange(unsent, left)

    def stop(self, message: bytes, *, seconds: float) -> bool:
        """Send a last line, close the program's input, and return whether it then ended by itself in time."""
        deadline = time.monotonic() + seconds
        unsent = memoryview(message)
        while (unsent or self._open) and (left := deadline - time.monotonic()) > 0:
            unsent = self._exchange(unsent, left)
            self._buffer.clear()
            if not unsent:
                self._hang_up()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))
        return self._process.returncode is not None

    def kill(self) -> None:
        """Kill the program and all that it started, and wait until they are gone."""
        if self._lifeline < 0:
            return
        os.close(self._lifeline)
        self._lifeline = -1
        self._selector.close()
        self._hang_up()
        for end in self._ends.values():
            os.close(end)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # the program has stopped its supervisor
            self._process.kill()
            self._process.wait()
        kill_left(self.mark, self._others)

    def _look(self) -> None:
        """Read what its standard output holds now."""
        self._read(OUT)

    def _hear_out(self) -> None:
        """Read what its standard error holds, once it has ended."""
        while ERR in self._open and self._selector.select(0.0):
            self._read(ERR)

    def _hang_up(self) -> None:
        """Close the program's input."""
        if self._in >= 0:
            self._let_go_of_input()
            os.close(self._in)
            self._in = -1

    def _let_go_of_input(self) -> None:
        """Wait no more until the program's input can be written to."""
        if self._writing:
            with suppress(KeyError):  # nothing is waited for any more
                self._selector.unregister(self._in)
            self._writing = False

    def _refuse_more(self, limit: int) -> None:
        """Raise `Stopped` if there is a message before the first request."""
        self._look()
        line = self._line(limit) or bytes(self._buffer)
        if line.startswith(b"{"):
            raise Stopped(verdict="protocol", message=f"an unrequested message: {shown(line)}")

    def _exchange(self, unsent: memoryview, seconds: float) -> memoryview:
        """Wait until a pipe is ready, read and write what it takes, and return what is still to be written."""
        if unsent and not self._writing:
            unsent = self._write(unsent)  # a pipe takes most messages at once
            if not unsent:
                return unsent
            self._selector.register(self._in, selectors.EVENT_WRITE)
            self._writing = True
        elif self._writing and not unsent:
            self._let_go_of_input()
        for key, _ in self._selector.select(seconds):
            if key.fd == self._in:
                unsent = self._write(unsent)
            else:
                self._read(key.data)
        return unsent

    def _write(self, unsent: memoryview) -> memoryview:
        """Write what the pipe takes; nothing is left to write once the program has closed its end."""
        try:
            return unsent[os.write(self._in, unsent[:CHUNK]) :]
        except BlockingIOError:
            return unsent
        except OSError:
            return memoryview(b"")

    def _read(self, kind: str) -> None:
        """Read what a pipe holds, at most one chunk, and let go of it at its end."""
        try:
            data = os.read(self._ends[kind], CHUNK)
        except BlockingIOError:
            return
        if not data and kind in self._open:
            self._selector.unregister(self._ends[kind])
        self._take(kind, data)

    def _take(self, kind: str, data: bytes) -> None:
        """Keep its standard output, or the end of its standard error; an empty chunk means the end."""
        if not data:
            self._open.discard(kind)
        elif kind == OUT:
            self._buffer += data
        else:
            self.errors = (self.errors + data)[-TAIL:]
            if self.aloud:
                heard, self.repeated = self.repeated, self.repeated + len(data)
                with suppress(OSError):
                    os.write(2, data[: max(0, REPEATED - heard)])
                    if heard < REPEATED <= self.repeated:
                        os.write(2, b"\nposref: the rest of what the target prints is left out\n")

    def _line(self, limit: int) -> bytes | None:
        """Return the next whole line that begins with a brace; lines that do not are noise."""
        while (at := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:at])
            del self._buffer[: at + 1]
            self._searched = 0
            self._bound(len(line), limit)
            if line.startswith(b"{"):
                return line
            self.noise.append(line[:CHUNK])
            self.noisy += len(line) + LINE
            if self.noisy > NOISE:
                raise Stopped(verdict="protocol", message=f"floods standard output with other lines{self._last_output()}")
        self._searched = len(self._buffer)
        self._bound(len(self._buffer), limit)
        return None

    def _bound(self, size: int, limit: int) -> None:
        if size > limit:
            raise Stopped(verdict="protocol", message=f"a line of more than {limit} bytes on standard output")

    def _end(self) -> str:
        """Return how the program ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSING)
        self._hear_out()
        code = self._process.returncode
        if code is None:
            raise Stopped(verdict="protocol", message=f"closed its standard output, but keeps running{self._last_output()}")
        if code < 0:
            how = f"was ended by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"
        else:
            how = f"ended with exit code {code}"
        return f"{how} {'in the middle of its reply' if self._buffer else 'instead of replying'}{self._last_output()}"

    def _last_output(self) -> str:
        """Return the last line that it wrote besides messages, in words."""
        printed = [line for line in self.noise if line.strip()]
        lines = [line for line in self.errors.splitlines() if line.strip()][-3:]
        said = f"; it printed {shown(printed[-1], 200)}" if printed else ""
        if self._buffer.strip():
            said += f"; it began a line that has no end: {shown(bytes(self._buffer), 200)}"
        return said + (f"; standard error ends: {shown(b' | '.join(lines), 400)}" if lines else "")


class PlainChild(Child):
    """A run of a program with a deadline for every reply and no other limit. Threads read and write its pipes."""

    def _start(self, command: Sequence[str] | Callable[[], object], limit: int, shared: tuple[int, ...]) -> None:
        assert not callable(command)
        assert not shared
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                env=environment(self.mark) | self.offered, start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # ctrl-c is for this process
            )  # fmt: skip
        except (OSError, ValueError) as error:  # ValueError: a NUL
            msg = f"check: cannot run {command[0]!r}: {getattr(error, 'strerror', None) or error}."
            raise TargetError(msg) from error
        self._process = process
        self._events: queue.Queue[tuple[str, bytes]] = queue.Queue(CHUNKS)
        self._unwritten: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
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

    def _exchange(self, unsent: memoryview, seconds: float) -> memoryview:
        """Wait until something was read or written, not long, and return what is still to be written: all or nothing."""
        if unsent and not self._sending:
            self._sending = True
            self._unwritten.put(bytes(unsent))
        with suppress(queue.Empty):
            self._take(*self._events.get(timeout=min(WAIT, seconds)))
        return unsent if self._sending else memoryview(b"")

    def _take(self, kind: str, data: bytes) -> None:
        if kind == SENT:
            self._sending = False
        else:
            super()._take(kind, data)

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


class _Forked:
    """A copy of this process, with the manners of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended; `TimeoutExpired` after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            pid, status = os.waitpid(self.pid, 0 if deadline is None else os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired([], timeout or 0.0)
            else:
                time.sleep(0.002)
        return self.returncode

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


PASSED = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV",
    "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "PATHEXT", "COMSPEC", "APPDATA",
    "LOCALAPPDATA", "USERPROFILE",
}  # fmt: skip
FAMILIES = (  # of names: locales, caches, threads, devices and the settings of libraries
    "LC_", "XDG_", "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "KMP_", "CUDA_", "NVIDIA_", "NCCL_", "ROCR_", "HIP_",
    "HSA_", "XLA_", "JAX_", "TORCH", "PYTORCH_", "TRITON_", "MLX_", "TF_", "KERAS_", "DASK_", "HF_", "TRANSFORMERS_", "POSREF_",
)  # fmt: skip
MORE = "POSREF_PASS"  # names of further variables, in commas
SECRET = re.compile("TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE")


def environment(mark: str) -> dict[str, str]:
    """Return the environment of a program: what libraries need to run, and what ``POSREF_PASS`` names; no secrets."""
    named = {name.strip() for name in os.environ.get(MORE, "").split(",")}
    usual = {n for n in os.environ if (n in PASSED or n.startswith(FAMILIES)) and not SECRET.search(n)}
    return {n: v for n, v in os.environ.items() if n in usual | named} | {MARK: mark}


def close_others(kept: set[int]) -> None:
    """Close all open files of this process but those that are kept."""
    ends = sorted(kept)
    for low, high in zip(ends, [*ends[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)


def _forked(
    work: Callable[[], object], mark: str, memory: int, held: int, theirs: Sequence[int], shared: tuple[int, ...]
) -> _Forked:
    """Start a copy of this process under its supervisor, another one."""
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            variables = environment(mark)
            os.environ.clear()
            os.environ.update(variables)
            for standard, end in enumerate(theirs):
                os.dup2(end, standard)
            close_others({0, 1, 2, held, *shared})
            supervisor.main(held, memory, work)
        finally:
            os._exit(127)
    return _Forked(pid)


def marked(mark: str) -> list[int]:
    """Return the processes whose environment says that the run of a program called `mark` started them."""
    processes = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in entry.read_bytes().split(b"\0"):
                processes.append(int(entry.parent.name))
    return processes


def adopt() -> None:
    """Let what a program leaves behind without a supervisor become a child of this process, which then ends it."""
    global _ADOPTING  # noqa: PLW0603
    if sys.platform == "linux":
        _ADOPTING = not ctypes.CDLL(None).prctl(supervisor.PR_SET_CHILD_SUBREAPER, 1)


def _children() -> set[int]:
    """Return the children of this process, if it adopts any."""
    if not _ADOPTING:
        return set()
    return {pid for pid, parent in supervisor.parents().items() if parent == os.getpid()}


def kill_left(mark: str, others: set[int]) -> None:
    """Kill what the supervisor could not: everything descends from it or is marked, unless the program killed it."""
    deadline = time.monotonic() + PATIENCE
    while (left := {*marked(mark), *(adopted := _children() - others - SPARED)}) and time.monotonic() < deadline:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in adopted:
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.005)
