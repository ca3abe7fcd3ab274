"""A program behind three pipes: asked with a deadline, read within bounds, and killed with everything that it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import Stopped
from ...suite.quoting import shown

SUPERVISOR = Path(__file__).with_name("supervise.py")
MARK = "POSREF_PROGRAM"  # in the environment of everything that a program starts
CHUNK = 1 << 16
TAIL = 4096  # bytes of standard error that are kept
PATIENCE = 3.0  # seconds for the supervisor to end: longer than its own


class Child:
    """One run of a program. `ask` raises `Stopped`, timeout, crash or protocol, after which only `kill` makes sense."""

    def __init__(self, command: Sequence[str], *, memory: float) -> None:
        self.mark = uuid.uuid4().hex
        self.noise: deque[bytes] = deque(maxlen=5)
        self.errors = b""
        self._asked = False
        self._buffer, self._searched = bytearray(), 0
        held, self._lifeline = os.pipe()
        supervised = [sys.executable, "-I", "-S", str(SUPERVISOR), str(held), str(int(memory * 2**30)), *command]
        try:
            self._process = subprocess.Popen(
                supervised, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                env={**os.environ, MARK: self.mark}, pass_fds=(held,), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(held)
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe]
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes)
        for end in (self._in, self._out, self._err):
            os.set_blocking(end, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    def ask(self, message: bytes, *, seconds: float, limit: int) -> bytes:
        """Send a line and return the next line that begins with a brace; no line may have more than `limit` bytes."""
        deadline = time.monotonic() + seconds
        if self._asked:
            self._refuse_more(limit)
        self._asked = True
        unsent, reply = memoryview(message), None
        while True:
            reply = reply or self._line(limit)
            if reply is not None and not unsent:
                return reply
            if self._out not in self._selector.get_map():
                raise Stopped(verdict="crash", message=self._end())
            left = deadline - time.monotonic()
            if left <= 0:
                raise Stopped(verdict="timeout", message=f"no reply within {seconds:g} s{self._heard()}")
            unsent = self._exchange(unsent, left)

    def stop(self, message: bytes, *, seconds: float) -> bool:
        """Send a last line, close the program's input, and return whether it then ended by itself in time."""
        deadline = time.monotonic() + seconds
        unsent = memoryview(message)
        while self._selector.get_map() and (left := deadline - time.monotonic()) > 0:
            unsent = self._exchange(unsent, left)
            self._buffer.clear()
            if not unsent:
                self._pipes[0].close()
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
        for pipe in self._pipes:
            pipe.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # the program has stopped its supervisor
            self._process.kill()
            self._process.wait()
        _kill_marked(self.mark)

    def _refuse_more(self, limit: int) -> None:
        """Raise `Stopped` if there is a message before anything was asked."""
        self._read(self._out)
        line = self._line(limit) or bytes(self._buffer)
        if line.startswith(b"{"):
            raise Stopped(verdict="protocol", message=f"a message that nothing asked for: {shown(line)}")

    def _exchange(self, unsent: memoryview, seconds: float) -> memoryview:
        """Wait until a pipe is ready, read and write what it takes, and return what is still to be written."""
        writing = self._in in self._selector.get_map()
        if unsent and not writing:
            self._selector.register(self._in, selectors.EVENT_WRITE)
        elif writing and not unsent:
            self._selector.unregister(self._in)
        for key, _ in self._selector.select(seconds):
            if key.fd == self._in:
                unsent = self._write(unsent)
            else:
                self._read(key.fd)
        return unsent

    def _write(self, unsent: memoryview) -> memoryview:
        """Write what the pipe takes; nothing is left to write once the program has closed its end."""
        try:
            return unsent[os.write(self._in, unsent[:CHUNK]) :]
        except BlockingIOError:
            return unsent
        except OSError:
            return memoryview(b"")

    def _read(self, end: int) -> None:
        """Read what a pipe holds, at most one chunk, and let go of it at its end."""
        try:
            data = os.read(end, CHUNK)
        except BlockingIOError:
            return
        if not data and end in self._selector.get_map():
            self._selector.unregister(end)
        if end == self._out:
            self._buffer += data
        else:
            self.errors = (self.errors + data)[-TAIL:]

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
        self._searched = len(self._buffer)
        self._bound(len(self._buffer), limit)
        return None

    def _bound(self, size: int, limit: int) -> None:
        if size > limit:
            raise Stopped(verdict="protocol", message=f"a line of more than {limit} bytes on standard output")

    def _end(self) -> str:
        """Return how the program ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        while self._err in self._selector.get_map() and self._selector.select(0.0):
            self._read(self._err)
        code = self._process.returncode
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"
        else:
            how = f"ended with exit code {code}"
        return f"{how} {'in the middle of its reply' if self._buffer else 'instead of replying'}{self._heard()}"

    def _heard(self) -> str:
        """Return the last of what it wrote besides messages, in words."""
        printed = [line for line in self.noise if line.strip()]
        lines = [line for line in self.errors.splitlines() if line.strip()][-3:]
        said = f"; it printed {shown(printed[-1], 200)}" if printed else ""
        return said + (f"; standard error ends: {shown(b' | '.join(lines), 400)}" if lines else "")


def marked(mark: str) -> list[int]:
    """Return the processes whose environment says that the run of a program called `mark` started them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return found


def _kill_marked(mark: str) -> None:
    """Kill what the supervisor could not: everything is its descendant, unless the program killed it."""
    deadline = time.monotonic() + PATIENCE
    while (left := marked(mark)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
