"""
The index of evidence: what is found by an operation's name, and in which order mistakes and cases stand.

Mistakes stand in the alphabetical order of operations, and then as they stand in the operation's file. Those that several
operations share come after all others, by the name of their module: where two explain a failure equally well, the one of a
single operation is named first. Groups of cases keep the order of the installed suite (SUITE.json), whose hash names it; new
ones come last, in the alphabetical order of operations. No operation is in a list: all come from the registry.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from posref.core.composition import reaches
from posref.spec import PARTS, REGISTRY

from . import shared
from .tools.deviation import Deviation


@cache
def evidence_of(op: str) -> ModuleType:
    """Return the module of an operation's evidence; `every.facts` says what it may state."""
    return import_module(f"posref.conformance.evidence.{op}")


def evidence(ops: Iterable[str] = REGISTRY) -> tuple[ModuleType, ...]:
    """Return the evidence of operations, by default of all, and then what several share."""
    families = sorted(module.name for module in iter_modules(shared.__path__))
    return (
        *(evidence_of(op) for op in sorted(ops)),
        *(import_module(f"posref.conformance.evidence.shared.{family}") for family in families),
    )


def deviations(ops: Iterable[str] = REGISTRY) -> dict[str, Deviation]:
    """Return the mistakes of operations and of their shared parts by name, in the order of trial."""
    return {deviation.name: deviation for module in evidence(ops) for deviation in getattr(module, "DEVIATIONS", ())}


@cache
def deviations_touching(op: str) -> tuple[Deviation, ...]:
    """
    Return the mistakes that an operation may have, itself or through what it calls; no other evidence is imported.

    A mistake of a part stands with the operation in whose module the part is, or with the only one that calls it.
    """
    reached = reaches(op)
    homes = {PARTS[name].function.__module__ for name in reached & PARTS.keys()}
    near = {name for name, record in REGISTRY.items() if name in reached or record.function.__module__ in homes}
    return tuple(deviation for deviation in deviations({op, *near}).values() if deviation.touches(op))
