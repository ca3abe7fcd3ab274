"""Replies of implementations that compute elsewhere (another process, a program, a folder), and what these state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from posref.spec import REGISTRY

from ..errors import Failure, TargetError, Unsupported, shown
from ..model import Arrays, Call, LoadedCase
from . import gradients, invocation
from .base import SCALINGS, settle_claims, settle_scalings, settle_supports


@dataclass(frozen=True)
class Reply:
    """The reply to one call."""

    status: str
    message: str
    outputs: Mapping[str, tuple[npt.NDArray[Any], str | None]] = field(default_factory=dict)
    changed: tuple[str, ...] = ()


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
    own = {who["name"]: who["version"]} if "version" in who else {}
    return {
        "name": name, "library": shown(who.get("language") or "unknown language", 60), "dtypes": dtypes,
        "claims": settle_claims(name, stated.get("claims", {}), dtypes, claim, trig), "notes": tuple(notes),
        "scalings": settle_scalings(name, stated.get("scalings", SCALINGS)),
        "supports": settle_supports(name, stated.get("supports")),
        "versions": {shown(n, 60): shown(v, 60) for n, v in {**own, **stated.get("versions", {})}.items()},
    }  # fmt: skip


def expect_stated(op: str, stated: Mapping[str, Any]) -> None:
    """Raise `Unsupported` unless an implementation states that it has the gradients of an operation."""
    if op not in stated.get("vjp", ()):
        raise Unsupported(shown(stated.get("no_vjp", f"states no vjp of {op}")))


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
