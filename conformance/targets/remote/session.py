"""A conversation with a program: begun, asked, begun again when the program had to be killed, and ended."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

import posref

from ...errors import Stopped, TargetError
from ...model import LoadedCase
from ...suite.quotation import shown
from ..invocation import in_one_line
from . import protocol, tensor_files
from .program_process import Child
from .protocol import ProtocolError

RESTARTS = 10  # in one check; a program that needs more is not asked further
START_GRACE = 10  # times the timeout of a call
GOODBYE = 2.0  # seconds to end after stop


class CannotRun(TargetError):
    """A program that says so itself."""


@dataclass(frozen=True)
class Reply:
    """What a program replied to one call."""

    status: str
    message: str
    outputs: Mapping[str, tuple[npt.NDArray[Any], str | None]] = field(default_factory=dict)
    changed: tuple[str, ...] = ()


@dataclass
class Session:
    """
    A program that speaks the protocol.

    `begin` starts it. `ask` raises `Stopped` where no reply can be had; the program is then killed, and started again when it
    is asked next.
    """

    command: Sequence[str]
    suite: Path
    timeout: float
    memory: float
    stated: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    last: bytes = b""  # the last line that it wrote
    child: Child | None = None
    seq: int = 0  # of the last request
    _folder: Path | None = None

    @property
    def name(self) -> str:
        """The program, as messages call it."""
        return shown(" ".join(self.command), 100)

    def begin(self) -> dict[str, Any]:
        """Start the program and return what it states of itself; `TargetError` if it cannot be asked."""
        try:
            self.stated = self._start()
        except Stopped as stopped:
            msg = f"{self.name}: cannot be asked: {stopped.verdict} at start: {stopped}."
            raise TargetError(msg) from stopped
        return self.stated

    def ask(self, case: LoadedCase, step: int, dtype: str) -> Reply:
        """Return the reply to one call of a case, or raise `Stopped`."""
        if self.child is None:
            self._restart()
        self.seq += 1
        request, limit = protocol.run(self.seq, case, step, dtype), protocol.limit(case.calls[step])
        if self.stated.get("tensors") == "file":
            request = tensor_files.send(request, self._private())
        try:
            reply = self._exchange(request, "reply", self.timeout, limit)
            return _reply(request, reply, limit)
        except ProtocolError as error:
            raise self._dropped(verdict="protocol", message=str(error)) from error
        except (Stopped, TargetError):
            raise
        except Exception as error:  # a reply that nobody thought of is no reason to lose the others
            raise self._dropped(verdict="protocol", message=f"its reply cannot be read: {in_one_line(error)}") from error
        finally:
            tensor_files.discard(request.get("files", {}))

    def close(self) -> bool:
        """Tell the program to stop, leave nothing behind, and return whether it had ended by itself."""
        ended = False
        if self.child is not None:
            ended = self.child.stop(protocol.write({"cmd": "stop"}), seconds=GOODBYE)
            self._drop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        return ended

    def _start(self) -> dict[str, Any]:
        """Run the program and return its reply to start; `TargetError` if it says that it cannot run."""
        self.child = Child(self.command, memory=self.memory)
        try:
            stated = self._exchange(protocol.start(self.suite), "start_reply", START_GRACE * self.timeout, protocol.START_LIMIT)
        except ProtocolError as error:
            self._drop()
            self._refuse_other_version()
            raise Stopped(verdict="protocol", message=str(error)) from error
        if "error" in stated:
            self._drop()
            msg = f"{self.name}: says that it cannot run: {shown(stated['error'], 500)}"
            raise CannotRun(msg)
        return stated

    def _refuse_other_version(self) -> None:
        """Raise `TargetError` if the program's reply to start is of another version of the protocol."""
        spoken: Any = None
        with suppress(ValueError, AttributeError, RecursionError):
            spoken = json.loads(self.last).get("protocol")
        if type(spoken) is int and spoken != protocol.VERSION:
            older = "Update the program" if spoken < protocol.VERSION else "Update posref, or the program to the older protocol"
            msg = f"{self.name}: speaks protocol {spoken}; posref {posref.__version__} speaks {protocol.VERSION}. {older}."
            raise TargetError(msg)

    def _restart(self) -> None:
        """Start the program again, unless that was done too often."""
        if self.restarts >= RESTARTS:
            raise Stopped(verdict="not-run", message=f"not asked: the program had to be started again {RESTARTS} times")
        self.restarts += 1
        try:
            stated = self._start()
        except TargetError as error:
            raise Stopped(verdict="protocol", message=str(error)) from error
        if stated != self.stated:
            raise self._dropped(verdict="protocol", message="states other things of itself when it is started again")

    def _exchange(self, message: dict[str, Any], kind: str, seconds: float, limit: int) -> dict[str, Any]:
        """Send a message and return the reply, of the schema of its kind."""
        assert self.child is not None
        try:
            self.last = self.child.ask(protocol.write(message), seconds=seconds, limit=limit)
        except BaseException:
            self._drop()
            raise
        return protocol.read(self.last, kind)

    def _dropped(self, verdict: str, message: str) -> Stopped:
        self._drop()
        return Stopped(verdict, message)

    def _drop(self) -> None:
        """Kill the program."""
        if self.child is not None:
            self.child.kill()
            self.child = None

    def _private(self) -> Path:
        """Return a folder that only this user can look into."""
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="posref-"))
        return self._folder


def _reply(request: Mapping[str, Any], reply: Mapping[str, Any], limit: int) -> Reply:
    """Return a reply with its tensors decoded; `ProtocolError` if it is to another request or they are not what they say."""
    if reply["seq"] != request["seq"]:
        msg = f"seq: must be {request['seq']}, as in the request; got {reply['seq']}"
        raise ProtocolError(msg)
    message = shown(reply.get("message", ""), 500)
    if reply["status"] != "ok":
        return Reply(reply["status"], message)
    unasked = sorted(set(reply["outputs"]) - set(request["outputs"]))
    if unasked:
        msg = f"outputs: must be among {', '.join(request['outputs'])}; got {', '.join(unasked)}"
        raise ProtocolError(msg)
    outputs = {}
    if "files" in request:
        outputs = tensor_files.receive(reply, request["files"], limit)
    else:
        for name, tensor in reply["outputs"].items():
            try:
                outputs[name] = protocol.decode(tensor)
            except ProtocolError as error:
                msg = f"outputs/{name}: {error}"
                raise ProtocolError(msg) from error
    return Reply("ok", message, outputs, tuple(reply.get("changed", ())))
