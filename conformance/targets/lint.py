"""Lint of a program that speaks the protocol: a short conversation that checks every message and shows mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY

from .. import judge
from ..accuracy import OF_DTYPE, UNIT
from ..calls import class_of_claim, makes_constants
from ..errors import Failure, Stopped, TargetError, shown
from ..model import LoadedCase
from ..suite.reader import INSTALLED, load_groups, load_manifest
from . import invocation, protocol
from .limits import GOODBYE
from .program import CannotRun, Program, Session
from .replies import Reply

START = '{"protocol":1,"implementation":{"name":"..."},"operations":["rope"],...}'
ONCE = {"sequence": ("sequence", "ok"), "vjp": ("gradient", "ok"), "reject": ("invalid call", "rejected")}  # by kind of case
DATA = re.compile(rb'("data"\s*:\s*"[^"]{24})[^"]{24,}')


def lint(command: Sequence[str], *, timeout: float, memory: float, say: Callable[[str], None], suite: Path = INSTALLED) -> int:
    """
    Talk to a program, tell `say` what it does right and wrong, and return the number of problems.

    Raises
    ------
    TargetError
        If it cannot be run at all, or says so.
    """
    talk = Talk(Session(command, suite, timeout, memory), say)
    try:
        if talk.start():
            for probe in talk.probes():
                talk.ask(probe)
    except Stopped as stopped:  # it was started again too often
        talk.problem("the rest", str(stopped))
    finally:
        talk.stop()
    say(f"{talk.problems} problem{'s' * (talk.problems != 1)}" if talk.problems else f"speaks protocol {protocol.VERSION}")
    return talk.problems


@dataclass(frozen=True)
class Probe:
    """One request of the lint: a case, the reason for it, and the status that the reply must have."""

    why: str
    case: LoadedCase
    dtype: str
    wanted: str = "ok"

    @property
    def title(self) -> str:
        """The probe in a line."""
        return f"{self.why}: {self.case.id} in {self.dtype}"


@dataclass
class Talk:
    """A conversation with a program, and the number of its mistakes."""

    session: Session
    say: Callable[[str], None]
    problems: int = 0
    program: Program = field(init=False)  # once it has started

    def start(self) -> bool:
        """Start the program, look at what it states, and return whether one can go on."""
        try:
            self.program = Program.start(self.session)
        except TargetError as error:
            cause = error.__cause__
            if isinstance(error, CannotRun) or (isinstance(cause, Stopped) and cause.verdict != "protocol"):
                raise
            self.problem("start", str(cause or error), self.session.last, START)
            return False
        stated = self.program.stated
        unknown = [op for key in ("operations", "vjp", "own_dtype") for op in stated.get(key, ()) if op not in REGISTRY]
        if unknown:
            self.problem("start", f"states operations that do not exist: {', '.join(unknown)}", self.session.last)
        self.say(f"ok       start: {', '.join(stated['operations'])}; {', '.join(self.program.dtypes)}")
        return True

    def probes(self) -> Iterator[Probe]:
        """Yield the calls: smoke cases, a sequence, a gradient, an invalid call, and calls that the program does not state."""
        dtypes = self.program.dtypes
        known = dict.fromkeys(entry["op"] for entry in load_manifest(self.session.suite)["groups"])
        read = {op for op in known if self.program.has(op)}.union([op for op in known if not self.program.has(op)][:1])
        cases = [case for group in load_groups(self.session.suite, ops=read) for case in group.cases]
        mine = [c for c in cases if self.program.has(c.op) and (c.kind != "vjp" or self.program.has_gradients(c.op))]
        smoke = [c for c in mine if c.tier == "smoke"]
        rows = [("smoke case", c, "ok") for c in smoke]
        for kind, (why, wanted) in ONCE.items():
            rows += [(why, c, wanted) for c in mine if c.kind == kind][:1]
        rows += [("operation it does not state", c, "unsupported") for c in cases if c.tier == "smoke" and c not in mine][:1]
        for why, case, wanted in rows:
            of_case = [d for d in dtypes if d in case.dtypes or case.kind == "reject"] or dtypes[:1]
            constant = makes_constants(case.op) and of_case[0] in UNIT
            yield Probe(why, case, "float32" if constant else of_case[0], wanted)
        others = [d for d in OF_DTYPE if d not in dtypes]
        if others and smoke:
            yield Probe("dtype it does not state", smoke[0], others[0], "unsupported")

    def ask(self, probe: Probe) -> None:
        """Ask every call of a case twice, and say what is wrong with the replies."""
        for step in range(len(probe.case.calls)):
            first = None
            for _ in range(2):
                message = b""
                try:
                    reply = self.session.ask(probe.case, step, probe.dtype)
                    wrong, message = self._wrong(probe, step, reply, first), self.session.last
                except Stopped as stopped:
                    if stopped.verdict == "not-run":
                        raise
                    wrong = f"{stopped.verdict}: {stopped}"
                    message = self.session.last if stopped.verdict == "protocol" else b""
                if wrong:
                    self.problem(probe.title, wrong, message, self._example(probe, step))
                    return
                first = reply
        self.say(f"ok       {probe.title}{self._remark(probe, reply)}")

    def stop(self) -> None:
        """Tell the program to stop and see whether it does."""
        if self.session.child is None:
            self.session.close()  # it may have a folder of files
            return
        noise = [line for line in self.session.child.noise if line.strip()]
        if noise:
            self.say(f"note     standard output has lines that are no messages, and ignored: {shown(noise[-1], 100)}")
        if self.session.close():
            self.say("ok       stop")
        else:
            self.problem("stop", f"did not end within {GOODBYE:g} s of stop and of the end of its input; it was killed")

    def problem(self, title: str, wrong: str, message: bytes = b"", expected: str = "") -> None:
        """Say what is wrong."""
        self.problems += 1
        self.say(f"problem  {title}")
        for name, text in (("message", shown(DATA.sub(rb"\1...", message), 600)), ("wrong", wrong), ("expected", expected)):
            if text:
                self.say(f"         {name:9}{text}")

    def _wrong(self, probe: Probe, step: int, reply: Reply, first: Reply | None) -> str:
        """Return what is wrong with a reply that is a valid message; empty if nothing is."""
        case, wanted = probe.case, probe.wanted
        if wanted == "rejected" or (wanted == "ok" and reply.status == "unsupported"):
            return ""
        if reply.status != wanted:
            return f"status: must be {wanted}; got {reply.status}{': ' * bool(reply.message)}{reply.message}"
        if wanted != "ok":
            return ""
        try:
            outputs = self.program.judged(case, step, probe.dtype, reply)
            if first is not None:
                invocation.expect_same({n: first.outputs[n][0] for n in outputs}, outputs)
        except Failure as failure:
            return str(failure)
        return ""

    def _remark(self, probe: Probe, reply: Reply) -> str:
        """Return what is no problem of the protocol and still good to know."""
        if probe.wanted == "rejected":
            remarks = {"ok": "; note: it computes what it should reject", "error": "; note: the word for this is rejected"}
            return remarks.get(reply.status, "")
        if probe.wanted != "ok" or reply.status != "ok":
            return "" if probe.wanted == reply.status else f"; note: {reply.status}"
        call, claim = probe.case.calls[-1], class_of_claim(probe.case.op, self.program.claims[probe.dtype])
        outputs = {name: reply.outputs[name][0] for name in call.expected}
        worst = judge.compare(probe.case.op, call, outputs, claim, probe.dtype)
        return "" if worst is None else f"; note: the values are not right within {claim}, see posref check"

    def _example(self, probe: Probe, step: int) -> str:
        """Return a reply that would do."""
        reply: dict[str, Any] = {"seq": self.session.seq, "status": probe.wanted}
        if probe.wanted == "ok":
            code = protocol.CODES[probe.dtype]
            reply["outputs"] = {
                name: {"dtype": code if v.dtype.kind == "f" else "I64", "shape": list(v.shape), "data": "<base64>"}
                for name, v in probe.case.calls[step].expected.items()
            }
        return json.dumps(reply, separators=(",", ":"))
