"""A Python target given by name: another process computes, and this one judges the tensors that it returns."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from posref.backends import BackendMissing

from .. import errors
from ..errors import Failure, PosrefError, Stopped, TargetError, Unsupported, shown
from ..model import Arrays, Call, LoadedCase
from . import invocation
from .base import StatingTarget, about, started_again
from .connection import Connection, unreadable
from .limits import RESTARTS, START_GRACE
from .program_process import process_kind

LISTS = ("operations", "dtypes", "vjp", "scalings", "own_dtype", "notes")  # of words, in what a target states
LONGEST = 1000  # characters of a remark


@dataclass
class ProcessTarget(StatingTarget):
    """
    A Python target in a process that only computes: no expected value ever is in its memory.

    Where the process ends or is killed, its operation is asked no more in that dtype, and another process is started for the
    next one, which never is a copy of this process.
    """

    loading: Mapping[str, Any] = field(kw_only=True)  # the request to load it
    timeout: float = field(kw_only=True)
    memory: float = field(kw_only=True)
    connection: Connection = field(kw_only=True)  # without a child once that was killed
    ended: dict[tuple[str, str], str] = field(default_factory=dict)  # how, by operation and dtype
    restarts: int = 0
    begins: bool = True  # whether the next call is the first of its case
    interrupted: bool = False
    kind = "python"

    @classmethod
    def start(
        cls, name: str, *, timeout: float, memory: float, ahead: Connection | None = None, path: Sequence[str] | None = None,
        backend: str | None = None, device: Any = None, dtype: str | None = None, claim: str | None = None,
        trig: float | None = None,
    ) -> ProcessTarget:  # fmt: skip
        """
        Return the target of a name, in the process `ahead` if there is one already.

        Raises
        ------
        TargetError, BackendMissing
            As `load_python` raises them there, and if the process ends or hangs.
        """
        options = {"backend": backend, "dtype": dtype, "device": device}
        loading = {"do": "load", "target": name, "path": list(sys.path if path is None else path), "options": options}
        connection = Connection(memory) if ahead is None else ahead
        try:
            stated = _loaded(connection, loading, timeout)
            fields = about(name, stated, dtype, claim, trig)
        except BaseException as error:
            connection.kill()
            if not isinstance(error, Exception) or isinstance(error, PosrefError | BackendMissing):
                raise
            msg = f"{name}: could not be loaded: {error if isinstance(error, Stopped) else unreadable(error)}."
            raise TargetError(msg) from error
        fields["library"] = fields["library"].removeprefix("Python, ")
        reproduce = f"posref check {shlex.quote(name)}" + (f" --backend {backend}" if backend else "")
        return cls(
            **fields, reproduce=reproduce, loading=loading, timeout=timeout, memory=memory, stated=stated,
            connection=connection, process=process_kind(),
        )  # fmt: skip

    def begin(self, case: LoadedCase) -> None:
        """Let the next call be the first of its case."""
        self.begins = True

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Return what two calls give there."""
        self.expect_gradients(case)
        reply = self._ask("run", case, call, dtype)
        try:
            return self._outputs(case, call, dtype, reply)
        except (Unsupported, Failure, Stopped):
            raise
        except Exception as error:  # a reply that nobody thought of is no reason to lose the others
            raise self._stopped(case, dtype, Stopped(verdict="protocol", message=unreadable(error))) from error

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return the exception that it raises."""
        return str(self._ask("refuse", case, case.calls[0], dtype)["message"])

    def again(self) -> ProcessTarget | None:
        """Return the same target in a new process; None where it cannot be loaded again."""
        connection = Connection(self.memory)
        try:
            stated = _loaded(connection, self.loading, self.timeout)
        except (Stopped, PosrefError, BackendMissing):
            stated = {}
        if stated != self.stated:
            connection.kill()
            return None
        return replace(self, connection=connection, ended={}, restarts=0, begins=True)

    def remarks(self) -> tuple[str, ...]:
        """Return its notes, what torch.compile gave up, and how often its process was started again."""
        notes = self.notes
        with suppress(Stopped, LookupError, TypeError, AttributeError):
            said = self.connection.ask({"do": "remarks"}, self.timeout)
            notes = tuple(shown(remark, LONGEST) for remark in said["remarks"])
        return (*notes, *started_again("its process", self.restarts))

    def close(self) -> None:
        """Leave nothing of its process behind."""
        self.connection.stop()

    def _outputs(self, case: LoadedCase, call: Call, dtype: str, reply: Mapping[str, Any]) -> Arrays:
        """Return the results of a reply, which must be of the right shape and dtype, and the same the second time."""
        most = {n: (call.inputs[n] if call.cotangents else value).size for n, value in call.expected.items()}
        given = dict(reply["outputs"])
        outputs = {name: self.connection.tensor(given[name], size) for name, size in most.items() if name in given}
        found = self.accepted(case, call, dtype, outputs)
        for name in reply["changed"]:
            raise Failure(invocation.CHANGED.format(shown(name)))
        _raise_for(reply["second"])
        for name in reply["second"]["other"]:
            raise Failure(invocation.OTHER_BITS.format(shown(name)))
        return found

    def _ask(self, do: str, case: LoadedCase, call: Call, dtype: str) -> dict[str, Any]:
        """Return the reply to a request about a call, of which nothing is sent that is expected."""
        if self.interrupted or (case.op, dtype) in self.ended:
            raise Stopped(verdict="not-run", message=f"not asked: {self.ended.get((case.op, dtype), 'interrupted')}")
        bare = Call(call.params, call.inputs, dict.fromkeys(call.expected), cotangents=call.cotangents)  # type: ignore[arg-type]
        asked = replace(case, calls=(bare,))
        try:
            if self.connection.child is None:
                self._restart()
            request = {"do": do, "case": asked, "dtype": dtype, "begin": self.begins, "file": self.connection.file}
            self.begins = False
            reply = self.connection.ask(request, self.timeout)
        except KeyboardInterrupt:
            self.interrupted = True
            raise
        except Stopped as stopped:
            raise self._stopped(case, dtype, stopped) from stopped
        _raise_for(reply)
        return reply

    def _stopped(self, case: LoadedCase, dtype: str, stopped: Stopped) -> Stopped:
        """Ask no more of the operation of a case, for this reason."""
        self.connection.kill()
        if stopped.verdict != "not-run":
            self.ended[case.op, dtype] = f"{stopped.verdict} at {case.id}"
        return stopped

    def _restart(self) -> None:
        """Load the target in another process, unless there were too many; never in a copy of this one."""
        if self.restarts >= RESTARTS:
            raise Stopped(verdict="not-run", message=f"not asked: its process had to be started again {RESTARTS} times")
        self.restarts += 1
        self.connection = Connection(self.memory)
        try:
            stated = _loaded(self.connection, self.loading, self.timeout)
        except (PosrefError, BackendMissing) as error:
            raise Stopped(verdict="protocol", message=shown(f"cannot be loaded again: {error}")) from error
        if stated != self.stated:
            raise Stopped(verdict="protocol", message="states other things of itself when it is started again")


def _loaded(connection: Connection, loading: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Return what a target states once it is loaded; a named error if it cannot be."""
    reply = connection.ask(loading, START_GRACE * timeout)
    if reply["status"] == "refused":
        raise _error(reply)
    stated: Any = reply.get("stated")
    if not (isinstance(stated, dict) and all(isinstance(stated.get(name), list) for name in LISTS)):
        raise Stopped(verdict="protocol", message="its reply cannot be read: what it states of itself")
    if not all(isinstance(word, str) for name in LISTS for word in stated[name]):
        raise Stopped(verdict="protocol", message="its reply cannot be read: what it states of itself has no words")
    return stated


def _error(reply: Mapping[str, Any]) -> Exception:
    """Return the named error with which a target could not be loaded."""
    named = {kind.__name__: kind for kind in (BackendMissing, *vars(errors).values()) if isinstance(kind, type)}
    found = named.get(str(reply.get("class")), TargetError)
    return (found if issubclass(found, PosrefError | BackendMissing) else TargetError)(str(reply.get("message")))


def _raise_for(reply: Mapping[str, Any]) -> None:
    """Raise what the status of a reply says, unless all is well."""
    message = shown(reply.get("message", ""), 2 * LONGEST)
    match reply["status"]:
        case "ok":
            return
        case "unsupported":
            raise Unsupported(message)
        case "fail":
            raise Failure(message)
        case "error":
            raise Stopped(verdict="error", message=message)
        case _:
            msg = "status"
            raise ValueError(msg)
