"""A program in any language as a target: its session speaks the protocol over standard input and output."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import posref

from ..errors import Failure, Stopped, TargetError, Unsupported, shown
from ..model import Arrays, Call, LoadedCase
from . import invocation, protocol
from .base import StatingTarget, about, started_again
from .invocation import in_one_line
from .limits import GOODBYE, RESTARTS, START_GRACE, START_REPLY
from .program_process import Child, process_kind, run_program
from .protocol import ProtocolError


class CannotRun(TargetError):
    """A program that says at start that it cannot run."""


@dataclass(frozen=True)
class Reply:
    """The reply to one call."""

    status: str
    message: str
    outputs: Mapping[str, protocol.Decoded] = field(default_factory=dict)
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
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="posref-"))  # only this user can look into it
            request = protocol.with_files(request, self._folder)
        try:
            return _reply(request, self._exchange(request, "reply", self.timeout, limit), limit)
        except BaseException as error:
            self._drop()
            if isinstance(error, Stopped) or not isinstance(error, Exception):
                raise
            # a reply that nobody thought of is no reason to lose the others
            said = str(error) if isinstance(error, ProtocolError) else f"its reply cannot be read: {in_one_line(error)}"
            raise Stopped(verdict="protocol", message=said) from error
        finally:
            protocol.remove_files(request.get("files", {}))

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
        self.child = run_program(self.command, memory=self.memory)
        try:
            stated = self._exchange(protocol.start(self.suite), "start_reply", START_GRACE * self.timeout, START_REPLY)
        except BaseException as error:
            self._drop()
            if not isinstance(error, ProtocolError):
                raise
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
            self._drop()
            raise Stopped(verdict="protocol", message="states other things of itself when it is started again")

    def _exchange(self, message: dict[str, Any], kind: str, seconds: float, limit: int) -> dict[str, Any]:
        """Send a message and return the reply, of the schema of its kind."""
        assert self.child is not None
        self.last = self.child.ask(protocol.write(message), seconds=seconds, limit=limit)
        return protocol.read(self.last, kind)

    def _drop(self) -> None:
        """Kill the program."""
        if self.child is not None:
            self.child.kill()
            self.child = None


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
        outputs = protocol.outputs_in_files(reply, request["files"], limit)
    else:
        for name, tensor in reply["outputs"].items():
            try:
                outputs[name] = protocol.decode(tensor)
            except ProtocolError as error:
                msg = f"outputs/{name}: {error}"
                raise ProtocolError(msg) from error
    return Reply("ok", message, outputs, tuple(reply.get("changed", ())))


@dataclass
class Program(StatingTarget):
    """A program that speaks the protocol."""

    session: Session = field(kw_only=True)
    kind = "program"

    @classmethod
    def start(
        cls, session: Session, *, dtype: str | None = None, claim: str | None = None, trig: float | None = None
    ) -> Program:
        """
        Return the program of a session that begins now, having heard what it states of itself.

        Raises
        ------
        TargetError
            If it cannot be started, does not speak this version of the protocol, or states what does not exist.
        """
        stated = session.begin()
        fields = about(session.name, stated, dtype, claim, trig)
        reproduce = f"posref check --command {shlex.quote(shlex.join(session.command))}"
        return cls(**fields, reproduce=reproduce, stated=stated, session=session, process=process_kind())

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Ask it twice."""
        step = next(k for k, candidate in enumerate(case.calls) if candidate is call)
        first = self._once(case, step, dtype)
        invocation.expect_same(first, self._once(case, step, dtype))
        return first

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return the message with which it refuses the case."""
        reply = self._ask(case, 0, dtype)
        if reply.status == "ok":
            raise invocation.not_refused(case)
        return reply.message or reply.status

    def remarks(self) -> tuple[str, ...]:
        """Return its notes, and how often it was started again."""
        return (*self.notes, *started_again("the program", self.session.restarts))

    def close(self) -> None:
        """Stop it, and leave nothing of it behind."""
        self.session.close()

    def judged(self, case: LoadedCase, step: int, dtype: str, reply: Reply) -> Arrays:
        """Return the outputs of a reply by name; `Failure` for what is wrong with them whatever their values."""
        for name in reply.changed:
            raise Failure(invocation.CHANGED.format(shown(name)))
        return self.accepted(case, case.calls[step], dtype, reply.outputs, reply.message)

    def _ask(self, case: LoadedCase, step: int, dtype: str) -> Reply:
        """Return its reply, or raise `Unsupported`."""
        self.expect_gradients(case)
        reply = self.session.ask(case, step, dtype)
        if reply.status == "unsupported":
            raise Unsupported(reply.message or "unsupported")
        return reply

    def _once(self, case: LoadedCase, step: int, dtype: str) -> Arrays:
        """Return the outputs of one call, of the right shape and dtype."""
        reply = self._ask(case, step, dtype)
        if reply.status != "ok":
            said = "rejected a valid call" if reply.status == "rejected" else "error"
            raise Stopped(verdict="error", message=f"{said}: {reply.message}" if reply.message else said)
        try:
            return self.judged(case, step, dtype, reply)
        except Failure:
            raise
        except Exception as error:  # see Session.ask
            said = f"its reply cannot be judged: {invocation.in_one_line(error)}"
            raise Stopped(verdict="protocol", message=said) from error
