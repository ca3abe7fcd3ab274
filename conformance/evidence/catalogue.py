"""All cases and flags, in one order: each operation's own, then those that every operation gets."""

from collections.abc import Iterator, Sequence

from posref.spec import REGISTRY

from ..model import Case, Flag
from .every import again, lengths, second_cases, usual
from .every.facts import usual as usual_options_of
from .order import evidence, evidence_of
from .tools import cotangents, forms

GENERAL = (lengths, second_cases, again, usual)


def all_cases() -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included): operation by operation, as `evidence.order` has them."""
    general: dict[str, list[Case]] = {}
    for module in (again, usual):
        for case in module.CASES:
            general.setdefault(case.op, []).append(case)
    for op in sorted(REGISTRY):
        own = tuple(evidence_of(op).cases())
        yield from own
        yield from lengths.cases(op)
        if usual_options_of(op) is not None and all(case.tier != "smoke" for case in own):
            yield second_cases.small(op)
        yield from second_cases.cases(op)
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
