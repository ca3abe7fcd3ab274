"""A Python target given by name: a process of its own serves the protocol, with tensors in a shared file."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from posref.backends import BackendMissing
from posref.core.arrays import numpy_namespace
from posref.spec import REGISTRY

from ..errors import PosrefError, Stopped, TargetError, shown
from ..model import LoadedCase
from . import protocol
from .invocation import in_one_line
from .program import CannotRun, Program, Session
from .program_process import Child, process_kind, run_program
from .replies import Reply
from .server import serve
from .shared_file import SharedFile

LISTS = ("operations", "dtypes", "vjp", "scalings", "own_dtype", "notes")  # of words, in what a target states
MAIN = "posref.conformance.targets.server"  # the main program of the process


@dataclass
class PythonSession(Session):
    """A session with a server for the target `command[0]`. With `copied` its first process is a copy of this one."""

    path: Sequence[str] | None = None  # where its modules are looked for, by default as here
    options: dict[str, Any] = field(default_factory=dict)
    copied: bool = False
    said = "its process "
    pairs = True

    def __post_init__(self) -> None:
        """Start the copy, before this process reads a suite: no expected value ever is in the memory of the other one."""
        serving = {"target": self.command[0], "path": list(sys.path if self.path is None else self.path), **self.options}
        try:
            self._serving = json.loads(json.dumps(serving))
        except (TypeError, ValueError) as error:
            msg = f"check: what is given to a target of its name must be a word or a number: {shown(str(error))}."
            raise TargetError(msg) from error
        if self.copied:
            _ = len(REGISTRY), numpy_namespace()  # imported once, for both processes
            self.child = self._launched(copied=True)
            self.copied = False  # what comes later is new

    @property
    def name(self) -> str:
        """The target, as messages call it."""
        return self.command[0]

    def unanswered(self, stopped: Stopped) -> TargetError:
        """Return the error for a process that makes no statement."""
        return TargetError(f"{self.name}: could not be loaded: {stopped}.")

    def refusal(self, text: str) -> Exception:
        """Return the error for a target that cannot be loaded."""
        return BackendMissing(text) if text.startswith("backend ") else CannotRun(text)

    def _read_start(self) -> dict[str, Any]:
        """Return what the last line states, which is looked at part by part when it is used."""
        stated = protocol.object_in(self.last)
        lists = [stated.get(name) for name in LISTS if "error" not in stated]
        if not all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists):
            msg = "what it states of itself has no words"
            raise protocol.ProtocolError(msg)
        return stated

    def _keep_file(self, stated: Mapping[str, Any]) -> None:
        """Keep the file: the process uses no other place."""

    def _launched(self, *, copied: bool = False) -> Child:
        """Start the process, with a new file."""
        limited = process_kind() == "limited"
        self.shared = SharedFile.new(inherited=limited)
        serving = self._serving | {"shared": self.shared.place}
        command = partial(serve, **serving) if copied else [sys.executable, "-P", "-m", MAIN, json.dumps(serving)]
        files = (self.shared.place,) if isinstance(self.shared.place, int) else ()
        return run_program(command, memory=self.memory, aloud=True, shared=files)


@dataclass
class PythonProgram(Program):
    """
    A Python target in a process that only computes.

    Where the process ends or is killed, its operation is asked no more in that dtype: it takes long to start.
    """

    ended: dict[tuple[str, str], str] = field(default_factory=dict)  # how, by operation and dtype
    kind = "python"

    @classmethod
    def start(cls, session: Session, **stated: Any) -> PythonProgram:
        """
        Return the target of a session that begins now.

        Raises
        ------
        TargetError, BackendMissing
            As `load_python` raises them there, and if the process ends or hangs.
        """
        assert isinstance(session, PythonSession)
        try:
            target = super().start(session, **stated)
        except (PosrefError, BackendMissing):
            raise
        except Exception as error:
            msg = f"{session.name}: could not be loaded: its reply cannot be read: {in_one_line(error)}."
            raise TargetError(msg) from error
        target.library = target.library.removeprefix("Python, ")
        flags = {name: session.options.get(name) for name in ("backend", "device")}
        said = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in flags.items() if value)
        target.reproduce = f"posref check {shlex.quote(session.name)}{said}"
        return target

    def reply(self, case: LoadedCase, step: int, dtype: str, calls: int = 1, *, again: bool = False) -> Reply:
        """Return its reply to a call."""
        if (case.op, dtype) in self.ended:
            raise Stopped(verdict="not-run", message=f"not asked: {self.ended[case.op, dtype]}")
        try:
            return super().reply(case, step, dtype, calls, again=again)
        except Stopped as stopped:
            if stopped.verdict != "not-run":
                self.ended[case.op, dtype] = f"{stopped.verdict} at {case.id}"
            raise

    def again(self) -> PythonProgram | None:
        """Return the same target in a new process; None where it cannot be loaded again."""
        session = self.session.again()
        try:
            same = session.begin() == self.stated
        except (TargetError, BackendMissing):
            same = False
        if not same:
            session.close()
            return None
        return replace(self, session=session, ended={})
