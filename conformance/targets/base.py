"""Base class of targets: calls an implementation and reads what it declares."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from posref.scaling import RECORDS
from posref.spec import REGISTRY

from ..accuracy import DEFAULT_CLAIM, MOST_TRIG, OF_DTYPE, with_trig
from ..errors import Failure, TargetError, Unsupported, VectorError, shown
from ..model import Arrays, Call, LoadedCase
from ..suite.schemas import validate_once
from . import invocation

# What an implementation that does not say knows: records are added to posref.scaling, and older code may not look at the type
SCALINGS = ("Linear", "NTKAware", "DynamicNTK", "Llama3", "YaRN")

PROCESSES = {  # in which an implementation computes, in words
    "limited": "in a process of its own, with limits",
    "plain": "in a process of its own, without limits of memory, files and what it starts",
    "own": "in the process of the check",
    "none": "elsewhere",
}

Repeated = Callable[[LoadedCase, str], bool]  # of a case and a dtype


@dataclass
class Target(ABC):
    """An implementation: its operations and dtypes, the accuracy that it claims, and methods that call it."""

    name: str  # as the user wrote it
    library: str  # its array library, or the language of a program
    dtypes: tuple[str, ...]
    claims: Mapping[str, str]
    reproduce: str  # how a command that checks it begins
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    scalings: tuple[str, ...] = SCALINGS  # the records of posref.scaling that it knows
    supports: Mapping[str, Any] | None = None  # the scope that it states, as in its schema
    process: str = field(default="own", kw_only=True)  # a key of PROCESSES
    meanwhile: Callable[[], None] | None = field(default=None, kw_only=True)  # done while another process computes
    repeated: Repeated | None = field(default=None, kw_only=True)  # says whether a call is made twice; None: all are
    kind: ClassVar[str]  # "python", "program" or "outputs"

    @abstractmethod
    def has(self, op: str) -> bool:
        """Return whether it offers an operation."""

    @abstractmethod
    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """
        Return the outputs of one call of a case by name, on the host, reals widened to float64.

        Raises
        ------
        Unsupported
            If it does not do what the call asks.
        Failure
            If a result is wrong in shape or dtype, an input was changed, or a second call gave other bits.
        Stopped
            If the call ended without a result.
        """

    @abstractmethod
    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return how it refused a case that it must refuse; Failure if it did not, otherwise as `run`."""

    @abstractmethod
    def has_gradients(self, op: str) -> bool:
        """Return whether the target has gradients of an operation."""

    @abstractmethod
    def no_gradients(self, op: str) -> str:
        """Return why the target has no gradients of an operation."""

    @abstractmethod
    def is_told_dtype(self, op: str) -> bool:
        """Return whether calls of an operation say which dtype the result must have."""

    def expect_gradients(self, case: LoadedCase) -> None:
        """Raise `Unsupported` if a case asks for gradients that it does not have."""
        if not case.calls[0].cotangents:
            return
        if not self.has_gradients(case.op):
            raise Unsupported(self.no_gradients(case.op))
        stated = self.supports or {}
        if {**stated.get("*", {}), **stated.get(case.op, {})}.get("gradient") is False:
            msg = "its `supports` says that it has no gradients"
            raise Unsupported(msg)

    def accepted(
        self, case: LoadedCase, call: Call, dtype: str, outputs: Mapping[str, invocation.Result], message: str = ""
    ) -> Arrays:
        """Return outputs by name; `Failure`, with `message` if one is missing, for what is wrong whatever their values."""
        missing = [name for name in call.expected if name not in outputs]
        if missing:
            raise Failure(message or f"returned no {', '.join(missing)}")
        is_told = self.is_told_dtype(case.op)
        accept = invocation.accept
        return {n: accept(case.op, n, *outputs[n], call, dtype, asked=is_told, form=case.form) for n in call.expected}

    def again(self) -> Target | None:
        """Return the same target in a new process without earlier calls; None if it has no process."""
        return None

    def remarks(self) -> tuple[str, ...]:
        """Return what a report should say besides verdicts."""
        return self.notes

    def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""


@dataclass
class StatingTarget(Target):
    """An implementation that computes elsewhere, and states what it has as the protocol's reply to start does."""

    stated: Mapping[str, Any] = field(kw_only=True)

    def has(self, op: str) -> bool:
        """Return whether it states the operation."""
        return op in self.stated["operations"]

    def has_gradients(self, op: str) -> bool:
        """Return whether it states that it has those of an operation."""
        return op in self.stated.get("vjp", ())

    def no_gradients(self, op: str) -> str:
        """Return what it states about gradients that it does not have."""
        return shown(self.stated.get("no_vjp", f"states no vjp of {op}"))

    def is_told_dtype(self, op: str) -> bool:
        """Return whether it does not state that it chooses the dtype itself."""
        return op not in self.stated.get("own_dtype", ())


def started_again(what: str, times: int) -> tuple[str, ...]:
    """Return the remark that a process had to be started again so often, if it had."""
    return (f"{what}had to be started again {'once' if times == 1 else f'{times} times'}",) if times else ()


def expect_among(name: str, what: str, stated: Iterable[str], known: Iterable[str]) -> None:
    """Raise `TargetError` for a word of a list that an implementation states and that is not known."""
    unknown = [word for word in stated if word not in known]
    if unknown:
        msg = f"{name}: {what} must be among {', '.join(known)}; got {', '.join(map(repr, unknown))}."
        raise TargetError(msg)


def checked_scalings(name: str, stated: Iterable[str]) -> tuple[str, ...]:
    """Return the records of posref.scaling stated by an implementation, or raise `TargetError` for anything else."""
    expect_among(name, "scalings", stated, [kind.__name__ for kind in RECORDS])
    return tuple(stated)


def checked_supports(name: str, stated: Any) -> dict[str, Any] | None:
    """Return a copy of the scope stated by an implementation, or raise `TargetError` if it breaks its schema."""
    if stated is None:
        return None
    try:
        data = json.dumps(stated, sort_keys=True).encode()
        document: dict[str, Any] = json.loads(data)
        validate_once("supports", document, data, Path("supports"))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"{name}: supports must be a dict of words, numbers and lists, as JSON has them: {error}."
        raise TargetError(msg) from error
    except VectorError as error:
        msg = f"{name}: {error}"
        raise TargetError(msg) from error
    return document


def checked_claims(
    name: str, stated: Mapping[str, Any], dtypes: Iterable[str], claim: str | None, trig: float | None
) -> dict[str, str]:
    """Return the class claimed for every dtype (and float32, the dtype of constants): `claim` goes before `stated`."""
    chosen = {**DEFAULT_CLAIM, **stated}
    declared = trig if trig is not None else chosen.pop("trig", None)
    chosen.pop("trig", None)
    if declared is not None and not (isinstance(declared, int | float) and 0 < declared <= MOST_TRIG):
        most = f"above 0 and at most {MOST_TRIG}, the loosest that a released library documents (Direct3D's sincos)"
        msg = f"{name}: trig, the declared error of sines and cosines, must be {most}, as 2**-11; got {declared!r}."
        raise TargetError(msg)
    unknown = set(chosen) - set(OF_DTYPE)
    if unknown:
        msg = f"{name}: claims must be for {', '.join(OF_DTYPE)} and trig; got {', '.join(map(repr, sorted(unknown)))}."
        raise TargetError(msg)
    claims = {}
    for d in dtypes:
        wanted = claim or chosen[d]
        if wanted not in OF_DTYPE[d]:
            msg = f"{name}: a claim for {d} must be one of {', '.join(OF_DTYPE[d])}; got {wanted!r}."
            raise TargetError(msg)
        claims[d] = with_trig(wanted, declared)
    if "float32" not in claims:
        constants = chosen["float32"] if chosen["float32"] in OF_DTYPE["float32"] else "angle32"
        claims["float32"] = with_trig(constants, declared)
    return claims


def about(name: str, stated: dict[str, Any], dtype: str | None, claim: str | None, trig: float | None) -> dict[str, Any]:
    """Return the fields of a target that an implementation states of itself, or raise `TargetError`."""
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
    package = {who["name"]: who["version"]} if "version" in who else {}
    return {
        "name": name, "library": shown(who.get("language") or "unknown language", 60), "dtypes": dtypes,
        "claims": checked_claims(name, stated.get("claims", {}), dtypes, claim, trig), "notes": tuple(notes),
        "scalings": checked_scalings(name, stated.get("scalings", SCALINGS)),
        "supports": checked_supports(name, stated.get("supports")),
        "versions": {shown(n, 60): shown(v, 60) for n, v in {**package, **stated.get("versions", {})}.items()},
    }  # fmt: skip
