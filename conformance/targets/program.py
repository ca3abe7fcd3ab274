"""A program in any language as a target: its session speaks the protocol over standard input and output."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import posref
from posref.backends import BackendMissing

from ..errors import Stopped, TargetError, shown
from ..model import Call, LoadedCase
from . import protocol
from .base import StatingTarget, about, started_again
from .invocation import AROUND, in_one_line, overwritten_of
from .limits import GOODBYE, RESTARTS, START_GRACE, START_REPLY
from .program_process import Child, process_kind, run_program
from .protocol import ProtocolError
from .replies import CalledTarget, Reply
from .shared_file import SharedFile

LONGEST = 1000  # characters of a remark


class CannotRun(TargetError):
    """A program that says at start that it cannot run."""


@dataclass
class Session:
    """
    A program that speaks the protocol.

    `begin` starts it. `ask` raises `Stopped` where no reply can be had; the program is then killed, and started again when it
    is asked next. After a ctrl-c it is asked no more.
    """

    command: Sequence[str]
    suite: Path
    timeout: float
    memory: float
    stated: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    last: bytes = b""  # the last line that it wrote
    child: Child | None = None
    shared: SharedFile | None = None  # with the bytes of tensors, if the program has it too
    seq: int = 0  # of the last request
    notes: dict[str, None] = field(default_factory=dict)  # that its replies gave, each once
    interrupted: bool = False
    lent: tuple[LoadedCase, int, str, dict[str, Any]] | None = None  # the last call, whose inputs lie in the file as they were
    following: tuple[LoadedCase, int, str, dict[str, Any]] | None = None  # the same call, to which a reply will come unasked
    said: ClassVar[str] = ""  # before how it ended
    pairs: ClassVar[bool] = False  # whether one message may ask for a call and the same call again
    _folder: Path | None = None

    @property
    def name(self) -> str:
        """The program, as messages call it."""
        return shown(" ".join(self.command), 100)

    def begin(self) -> dict[str, Any]:
        """Start the program and return its statement; `TargetError` if it does not answer."""
        try:
            self.stated = self._start()
        except Stopped as stopped:
            raise self.unanswered(stopped) from stopped
        return self.stated

    def unanswered(self, stopped: Stopped) -> TargetError:
        """Return the error for a program that makes no statement."""
        return TargetError(f"{self.name}: {stopped.verdict} at start: {stopped}.")

    def refusal(self, text: str) -> Exception:
        """Return the error for a program that says that it cannot run."""
        return CannotRun(f"{self.name}: says that it cannot run: {text}")

    def ask(
        self, case: LoadedCase, step: int, dtype: str, calls: int = 1, meanwhile: Callable[[], None] | None = None, *,
        again: bool = False,
    ) -> Reply:  # fmt: skip
        """
        Return the reply to a call of a case, which is made for this many times with it, or raise `Stopped`.

        What has to be done `meanwhile` is done while the program computes. With `again` the same call is asked next.
        """
        if self.interrupted:
            raise Stopped(verdict="not-run", message="not asked: interrupted")
        request, limit = dict[str, Any](), protocol.limit(case.calls[step])
        try:
            request = self._following(case, step, dtype, calls)
            if request:
                self._send({}, self.timeout, limit, meanwhile)
            else:
                if self.child is None:
                    self._restart()
                request = self._request(case, step, dtype, calls, again=again and self.pairs)
                self._send(request, self.timeout, limit, meanwhile)
            reply = self._replied(request, case.calls[step], limit)
        except BaseException as error:
            self._drop()
            self.interrupted = isinstance(error, KeyboardInterrupt)
            raise
        finally:
            protocol.remove_files(request.get("files", {}))
        if protocol.BEHIND in request and reply.status == "ok":
            self.seq += 1
            self.following = case, step, dtype, protocol.second(request)
        elif calls == 1 and self.shared is not None and reply.outputs and not (reply.changed or self.stated.get("in_place")):
            self.lent = case, step, dtype, request
        return reply

    def _following(self, case: LoadedCase, step: int, dtype: str, calls: int) -> dict[str, Any]:
        """Return the request that was sent with the last one, if this is it; else wait for its reply, which nobody wants."""
        following, self.following = self.following, None
        if following is None:
            return {}
        if following[0] is case and following[1:3] == (step, dtype) and calls > 1:
            return following[3]
        try:
            self._send({}, self.timeout, protocol.limit(following[0].calls[following[1]]))
        except Stopped:  # it ended in a call whose case has its verdict
            self._drop()
        return {}

    def _replied(self, request: Mapping[str, Any], call: Call, limit: int) -> Reply:
        """Return the reply that the last line holds."""
        try:
            reply = protocol.read(self.last, "reply")
            self.notes |= dict.fromkeys(shown(note, LONGEST) for note in reply.get("notes", ()))
            return self._seen(request, self._read(request, reply, call, limit))
        except Stopped:
            raise
        except Exception as error:
            # a reply that nobody thought of is no reason to lose the others
            said = str(error) if isinstance(error, ProtocolError) else f"its reply cannot be read: {in_one_line(error)}"
            raise Stopped(verdict="protocol", message=said) from error

    def again(self) -> Self:
        """Return a session with the same program, to begin anew."""
        return replace(self, child=None, shared=None, seq=0, restarts=0, notes={}, lent=None, following=None, _folder=None)

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

    def _request(self, case: LoadedCase, step: int, dtype: str, calls: int, *, again: bool) -> dict[str, Any]:
        """Return the next request; with `again` for two calls, unless there is no room for the inputs of both."""
        self.seq += 1
        before, self.lent = self.lent, None
        if before is not None and before[0] is case and before[1:3] == (step, dtype):
            request = before[3] | {"seq": self.seq}
        else:
            if self.shared is not None:
                self.shared.begin()
            put = protocol.in_message if self.shared is None else partial(self.shared.lend, form=case.form)
            request = protocol.run(self.seq, case, step, dtype, put)
            behind = self.shared.lend_again() if again and self.shared is not None else None
            request |= {} if behind is None else {protocol.BEHIND: behind}
        if calls > 1 and self.stated.get("repeats"):
            request["calls"] = calls
        if self.stated.get("tensors") == "file":
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="posref-"))  # only this user can look into it
            request = protocol.with_files(request, self._folder)
        return request

    def _read(self, request: Mapping[str, Any], reply: Mapping[str, Any], call: Call, limit: int) -> Reply:
        """Return a reply; `ProtocolError` if it is to another request, or its tensors are not what they say."""
        if reply["seq"] != request["seq"]:
            msg = f"seq: must be {request['seq']}, as in the request; got {reply['seq']}"
            raise ProtocolError(msg)
        message = shown(reply.get("message", ""), 2 * LONGEST)
        if reply["status"] != "ok":
            return Reply(reply["status"], message)
        outputs = self._outputs(request, reply["outputs"], call, limit)
        return Reply("ok", message, outputs, tuple(reply.get("changed", ())), tuple(reply.get("overwrote", ())))

    def _seen(self, request: Mapping[str, Any], reply: Reply) -> Reply:
        """Return a reply with what this process sees of the inputs that it lent."""
        if self.shared is None or reply.status != "ok":
            return reply
        if self.shared.is_unchanged():
            return replace(reply, changed=tuple(dict.fromkeys(reply.changed)))
        tensors = {**request["inputs"], **{f"the cotangent of {n}": t for n, t in request.get("cotangents", {}).items()}}
        overwritten = None if "cotangents" in request else overwritten_of(request["op"], self.stated.get("in_place", ()))
        changed = dict.fromkeys(reply.changed)
        for name, tensor in tensors.items():
            inside, around = self.shared.is_changed(tensor)
            if around:
                return Reply("ok", AROUND.format(name))
            if inside and name != overwritten:
                changed[name] = None
        return replace(reply, changed=tuple(changed))

    def _outputs(
        self, request: Mapping[str, Any], given: Mapping[str, protocol.Tensor], call: Call, limit: int
    ) -> dict[str, protocol.Decoded]:
        """Return the tensors of a reply, decoded."""
        unasked = sorted(set(given) - set(request["outputs"]))
        if unasked:
            msg = f"outputs: must be among {', '.join(request['outputs'])}; got {', '.join(unasked)}"
            raise ProtocolError(msg)
        if "files" in request:
            return protocol.outputs_in_files(given, request["files"], limit)
        outputs = {}
        wanted = call.inputs if call.cotangents else call.expected  # nothing of a call that must be refused
        for name, tensor in given.items():
            most = wanted[name].size if name in wanted else 0
            try:
                outputs[name] = protocol.decode(tensor, self.shared, most)
            except ProtocolError as error:
                msg = f"outputs/{name}: {error}"
                raise ProtocolError(msg) from error
        return outputs

    def _start(self) -> dict[str, Any]:
        """Run the program and return its reply to start; an error if it says that it cannot run."""
        self.child = self.child or self._launched()
        try:
            self._send(protocol.start(self.suite), START_GRACE * self.timeout, START_REPLY)
            stated = self._read_start()
            self._keep_file(stated)
        except BaseException as error:
            self._drop()
            if not isinstance(error, ProtocolError):
                raise
            self._refuse_other_version()
            raise Stopped(verdict="protocol", message=str(error)) from error
        if "error" in stated:
            self._drop()
            raise self.refusal(shown(stated["error"], LONGEST))
        return stated

    def _launched(self) -> Child:
        """Run the program, and offer it a file with the bytes of tensors."""
        self.shared = SharedFile.new(inherited=process_kind() == "limited")
        files = (self.shared.place,) if isinstance(self.shared.place, int) else ()
        return run_program(self.command, memory=self.memory, shared=files, offered=str(self.shared.place))

    def _keep_file(self, stated: Mapping[str, Any]) -> None:
        """Let go of the file, unless the program states that it uses it."""
        if self.shared is not None and stated.get("tensors") != "memory":
            self.shared.close()
            self.shared = None

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
            msg = f"not asked: {self.said or 'the program '}had to be started again {RESTARTS} times"
            raise Stopped(verdict="not-run", message=msg)
        self.restarts += 1
        try:
            stated = self._start()
        except (TargetError, BackendMissing) as error:
            raise Stopped(verdict="protocol", message=f"cannot be loaded again: {error}") from error
        if stated != self.stated:
            self._drop()
            raise Stopped(verdict="protocol", message="states other things of itself when it is started again")

    def _send(self, message: dict[str, Any], seconds: float, limit: int, meanwhile: Callable[[], None] | None = None) -> None:
        """Send a message, or nothing, and take the line that answers it; `Stopped` if there is none."""
        assert self.child is not None
        data = protocol.write(message) if message else b""
        try:
            self.last = self.child.ask(data, seconds=seconds, limit=limit, meanwhile=meanwhile)
        except Stopped as stopped:
            said = self.said if stopped.verdict == "crash" else ""
            raise Stopped(verdict=stopped.verdict, message=f"{said}{stopped}") from stopped

    def _read_start(self) -> dict[str, Any]:
        """Return what the last line states."""
        return protocol.read(self.last, "start_reply")

    def _drop(self) -> None:
        """Kill the program."""
        if self.child is not None:
            self.child.kill()
            self.child = None
        if self.shared is not None:
            self.shared.close()
            self.shared = None


@dataclass
class Program(StatingTarget, CalledTarget):
    """A program that speaks the protocol."""

    session: Session = field(kw_only=True)
    kind = "program"

    @classmethod
    def start(cls, session: Session, *, dtype: str | None = None, claim: str | None = None, trig: float | None = None) -> Self:
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

    def repeats(self) -> bool:
        """Return whether it states that it keeps the results of a case."""
        return bool(self.stated.get("repeats", False))

    def reply(self, case: LoadedCase, step: int, dtype: str, calls: int = 1, *, again: bool = False) -> Reply:
        """Return its reply to a call."""
        return self.session.ask(case, step, dtype, calls, self.meanwhile, again=again)

    def remarks(self) -> tuple[str, ...]:
        """Return its notes, and how often it was started again."""
        return (*self.notes, *self.session.notes, *started_again(self.session.said or "the program ", self.session.restarts))

    def close(self) -> None:
        """Stop it, and leave nothing of it behind."""
        self.session.close()
