"""All cases and flags, in one order: each operation's own, then those that every operation gets."""

from collections.abc import Iterator, Sequence

from posref.spec import REGISTRY

from ..evidence.order import evidence, evidence_of
from ..evidence.tools import cotangents, forms
from ..model import Case, Flag
from . import again, long, twice, usual
from .usual_options import usual as usual_options_of

GENERAL = (long, twice, again, usual)


def all_cases() -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included): operation by operation, as `evidence.order` has them."""
    general: dict[str, list[Case]] = {}
    for module in (again, usual):
        for case in module.CASES:
            general.setdefault(case.op, []).append(case)
    for op in sorted(REGISTRY):
        own = tuple(evidence_of(op).cases())
        yield from own
        yield from long.cases(op)
        if usual_options_of(op) is not None and all(case.tier != "smoke" for case in own):
            yield twice.small(op)
        yield from twice.cases(op)
        yield from general.get(op, ())


def all_flags() -> dict[str, Flag]:
    """Return every flag by name."""
    modules = (*evidence(), forms, cotangents, *GENERAL)
    return {name: flag for module in modules for name, flag in getattr(module, "FLAGS", {}).items()}


def groups(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return cases by the id of their group, both in order of first appearance."""
    by_group: dict[str, list[Case]] = {}
    for case in cases:
        by_group.setdefault(case.group, []).append(case)
    return by_group
