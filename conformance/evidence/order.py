"""
The order of evidence, and where it is found by an operation's name.

Groups of cases and deviations stand in the alphabetical order of operations, and then as they stand in the operation's file.
Deviations that several operations share come after all others, by the name of their module: where two explain a failure
equally well, the one of a single operation is named first. An operation is in no list: it comes from the registry.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from posref.spec import REGISTRY

from . import shared


@cache
def evidence_of(op: str) -> ModuleType:
    """Return the module of an operation's evidence, which may state FLAGS, USUAL, SIZES, WAY, `cases` and DEVIATIONS."""
    return import_module(f"posref.conformance.evidence.{op}")


@cache
def evidence() -> tuple[ModuleType, ...]:
    """Return all evidence: of every operation, then what several share."""
    families = sorted(module.name for module in iter_modules(shared.__path__))
    return (
        *(evidence_of(op) for op in sorted(REGISTRY)),
        *(import_module(f"posref.conformance.evidence.shared.{family}") for family in families),
    )
