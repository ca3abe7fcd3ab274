"""A program in any language as a target: it speaks the protocol over its standard input and output."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY

from ...errors import Failure, Stopped, TargetError, Unsupported
from ...model import Arrays, Call, LoadedCase
from ...suite.quotation import shown
from ...suite.reader import INSTALLED
from .. import gradients, invocation
from ..base import SCALINGS, Target, settle_claims, settle_scalings, settle_supports
from .session import Reply, Session


@dataclass
class Program(Target):
    """A program that speaks the protocol."""

    session: Session = field(kw_only=True)
    kind = "program"

    @classmethod
    def start(
        cls, command: Sequence[str], *, timeout: float, memory: float, suite: Path = INSTALLED,
        dtype: str | None = None, claim: str | None = None, trig: float | None = None,
    ) -> Program:  # fmt: skip
        """
        Return the program that `command` starts, having heard what it states of itself.

        Raises
        ------
        TargetError
            If it cannot be started, does not speak this version of the protocol, or states what does not exist.
        """
        if not command:
            msg = "check: --command must name a program; got nothing."
            raise TargetError(msg)
        session = Session(command, suite, timeout, memory)
        stated = session.begin()
        try:
            return cls(**about(session.name, stated, dtype, claim, trig), reproduce=_reproduce(command), session=session)
        except TargetError:
            session.close()
            raise

    def has(self, op: str) -> bool:
        """Return whether it stated the operation."""
        return op in self.session.stated["operations"]

    def has_gradients(self, op: str) -> bool:
        """Return whether it states that it has those of an operation."""
        return op in self.session.stated.get("vjp", ())

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Ask it twice."""
        step = next(k for k, one in enumerate(case.calls) if one is call)
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
        again = self.session.restarts
        times = "once" if again == 1 else f"{again} times"
        return (*self.notes, f"the program had to be started again {times}") if again else self.notes

    def close(self) -> None:
        """Stop it, and leave nothing of it behind."""
        self.session.close()

    def _ask(self, case: LoadedCase, step: int, dtype: str) -> Reply:
        """Return its reply, or raise `Unsupported`."""
        if case.kind == "vjp":
            gradients.expect_stated(case.op, self.session.stated)
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
        told = case.op not in self.session.stated.get("own_dtype", ())
        try:
            return accepted(case, case.calls[step], dtype, reply, told=told)
        except Failure:
            raise
        except Exception as error:  # see Session.ask
            said = f"its reply cannot be judged: {invocation.in_one_line(error)}"
            raise Stopped(verdict="protocol", message=said) from error


def accepted(case: LoadedCase, call: Call, dtype: str, reply: Reply, *, told: bool) -> Arrays:
    """Return a reply's outputs by name; `Failure` for what is wrong with them whatever their values."""
    for name in reply.changed:
        raise Failure(invocation.CHANGED.format(shown(name)))
    missing = [name for name in call.expected if name not in reply.outputs]
    if missing:
        raise Failure(reply.message or f"returned no {', '.join(missing)}")
    found = {name: reply.outputs[name] for name in call.expected}
    if call.cotangents:
        return {n: gradients.accept(case.op, n, host, of, call, dtype) for n, (host, of) in found.items()}
    return {
        n: invocation.accept(case.op, n, host, of, call, dtype, asked=told, flags=case.flags) for n, (host, of) in found.items()
    }


def about(name: str, stated: dict[str, Any], dtype: str | None, claim: str | None, trig: float | None) -> dict[str, Any]:
    """Return the fields of a target that a program or a folder of results states of itself, or raise `TargetError`."""
    who, operations = stated["implementation"], stated["operations"]
    dtypes = tuple(stated.get("dtypes", ("float32",)))
    if dtype is not None and dtype not in dtypes:
        msg = f"{name}: --dtype must be one that it states, of {', '.join(dtypes)}; got {dtype!r}."
        raise TargetError(msg)
    unknown = [op for op in operations if op not in REGISTRY]
    if len(unknown) == len(operations):
        msg = f"{name}: must state at least one operation of {', '.join(REGISTRY)}; got {', '.join(operations)}."
        raise TargetError(msg)
    notes = [shown(note) for note in stated.get("notes", ())]
    if unknown:
        notes.append(f"states operations that this version of posref does not know, and did not ask: {', '.join(unknown)}")
    dtypes = (dtype,) if dtype else dtypes
    own = {who["name"]: who["version"]} if "version" in who else {}
    return {
        "name": name, "library": shown(who.get("language") or "unknown language", 60), "dtypes": dtypes,
        "claims": settle_claims(name, stated.get("claims", {}), dtypes, claim, trig), "notes": tuple(notes),
        "scalings": settle_scalings(name, stated.get("scalings", SCALINGS)),
        "supports": settle_supports(name, stated.get("supports")),
        "versions": {shown(n, 60): shown(v, 60) for n, v in {**own, **stated.get("versions", {})}.items()},
    }  # fmt: skip


def _reproduce(command: Sequence[str]) -> str:
    """Return the command that checks a program."""
    return f"posref check --command {shlex.quote(shlex.join(command))}"
