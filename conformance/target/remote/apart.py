"""Work with a Python target in a process of its own: what is asked, what is heard of it, and how it may end."""

from __future__ import annotations

import base64
import io
import json
import pickle
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

from posref.backends import BackendMissing

from ... import errors
from ...errors import PosrefError, Stopped
from .child import Child

MAIN = "posref.conformance.commands.inside"  # the main program of the process
LIMIT = 1 << 28  # bytes of a message
START_GRACE = 10  # times the timeout of a call: to start, and to load the target
SILENCE = 10.0  # seconds without a sign of life, at least: then something in the process lets nothing else run
STEP = 600.0  # seconds for the work between two messages: judging, and telling why
GOODBYE = 2.0  # seconds for the process to end after its last word, and for a target to let itself be interrupted
PLAIN = {("builtins", name) for name in ("bool", "int", "float", "str")} | {("collections", "Counter")}
ROOMS = ("posref.conformance.model", "posref.conformance.reports.report")  # whose records may be sent


class Apart:
    """
    A process that works with a Python target and tells of it: pairs of a word and a value, the last of which is "done".

    Messages carry a secret that only it was told, so that nothing a target writes can be taken for one. While the target is in
    control, between "enter" or "load" and "leave", a message must follow within `timeout` seconds, or ten times as many. At
    other times the process tells twice a second that it lives ("beat"), and its work goes on within a longer time.

    Raises
    ------
    Stopped
        If the process ends, or hangs, before it is done.
    PosrefError
        As the work itself raises them.
    """

    def __init__(self, task: str, options: Mapping[str, Any], timeout: float) -> None:
        self.timeout, self.secret = timeout, secrets.token_hex(16)
        self.child = Child(_main() if _may_fork() else [sys.executable, "-P", "-m", MAIN], memory=0, aloud=True)
        self._first = json.dumps({"task": task, "secret": self.secret, "options": dict(options)}).encode() + b"\n"
        self._controlled = True  # by the target, or not yet begun
        self._give(START_GRACE * timeout)

    def told(self) -> Iterator[tuple[str, Any]]:
        """Yield what the process tells, "done" with its value last; `KeyboardInterrupt` asks it once to sum up."""
        line, interrupted = self._first, False
        while True:
            try:
                word, value = self._heard(line)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted, line = True, b""
                if self._controlled:
                    self._give(GOODBYE)
                self.child.interrupt()
                continue
            except Stopped:
                if interrupted:
                    raise KeyboardInterrupt from None
                raise
            line = b""
            if word == "error":
                raise _error(value)
            if word == "broken":
                raise Stopped(verdict="protocol", message=value)
            if word == "interrupted":
                raise KeyboardInterrupt
            if word in ("enter", "load", "leave"):
                self._controlled = word != "leave"
            self._give({"enter": self.timeout, "load": START_GRACE * self.timeout}.get(word, STEP))
            yield word, value
            if word == "done":
                self.child.stop(b"", seconds=GOODBYE)
                return

    def _give(self, seconds: float) -> None:
        """Let the next message come within so many seconds."""
        self._limit, self._due = seconds, time.monotonic() + seconds

    def _heard(self, line: bytes) -> tuple[str, Any]:
        """Return the next message of the process but its signs of life."""
        while True:
            left = max(0.0, self._due - time.monotonic())
            silence = max(SILENCE, START_GRACE * self.timeout)
            alive = self._controlled or left <= silence  # a sign of life changes nothing
            message = self.child.hear(
                line, seconds=left if alive else silence, limit=LIMIT, of=self._limit if alive else silence
            )
            line = b""
            with suppress(ValueError):
                told = json.loads(message)
                if told.get("secret") == self.secret and told["word"] != "beat":
                    return told["word"], _opened(told["value"])

    def close(self) -> None:
        """Leave nothing of the process behind."""
        self.child.kill()


def _may_fork() -> bool:
    """Return whether a copy of this process will do, which is faster than a new one, and not safe beside threads."""
    return sys.platform == "linux" and threading.active_count() == 1 and "numpy" not in sys.modules


def _main() -> Callable[[], None]:
    def main() -> None:
        import_module(MAIN).main()

    return main


def packed(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if not is_dataclass(value):
        return {"plain": value}
    record = io.BytesIO()
    _Writer(record).dump(value)
    return {"record": base64.b64encode(record.getvalue()).decode("ascii")}


def _opened(value: Mapping[str, Any]) -> Any:
    """Return what `packed` made JSON of; records are made of the classes of a report alone."""
    return _Records(io.BytesIO(base64.b64decode(value["record"]))).load() if "record" in value else value["plain"]


class _Writer(pickle.Pickler):
    """A writer of records; numbers of an array library become Python's."""

    def reducer_override(self, value: Any) -> Any:
        """Return how an object is made again, where it is not as Python makes it."""
        if type(value).__module__ == "numpy" and hasattr(value, "item"):
            return type(value.item()), (value.item(),)
        return NotImplemented


class _Records(pickle.Unpickler):
    """A reader of records that makes nothing but them."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of a report, and nothing else."""
        if (module, name) in PLAIN:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module in ROOMS and "." not in name else None
        if not (isinstance(found, type) and is_dataclass(found)):
            msg = f"a report has no {module}.{name}"
            raise pickle.UnpicklingError(msg)
        return found


def _error(value: Mapping[str, str]) -> Exception:
    """Return the named error that ended the work."""
    if value["class"] == "BackendMissing":
        return BackendMissing(value["message"])
    kind = getattr(errors, value["class"], PosrefError)
    return kind(value["message"]) if isinstance(kind, type) and issubclass(kind, PosrefError) else PosrefError(value["message"])
