"""All cases and flags, in one order: each operation's own cases, then those that every operation has."""

from collections.abc import Iterator, Sequence
from functools import cache, partial

from posref.spec import REGISTRY

from ..model import Case, Flag
from .every import lengths, second_cases, state_cases
from .every.facts import facts_of
from .every.made_calls import call
from .index import evidence, evidence_of
from .tools import cotangents, forms
from .tools.case import Make


def all_cases() -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included): operation by operation, as `evidence.index` has them."""
    for op in sorted(REGISTRY):
        yield from cases_of(op)


def cases_of(op: str) -> Iterator[Case]:
    """Return every case of an operation: its own, then those that every operation has."""
    own = tuple(evidence_of(op).cases())
    yield from own
    yield from lengths.cases(op)
    if facts_of(op).usual is not None and all(case.tier != "smoke" for case in own):
        yield second_cases.small(op)
    yield from second_cases.cases(op)
    yield from state_cases.cases(op)
    if hasattr(evidence_of(op), "more"):
        one, several = partial(second_cases.one, op), partial(second_cases.several, op)
        yield from evidence_of(op).more(Make(one, several, partial(call, op)))


def all_flags() -> dict[str, Flag]:
    """Return every flag by name: those that are stated, and mistakes that cases of their operation name as flags."""
    modules = (*evidence(), forms, cotangents, lengths, second_cases, state_cases)
    stated = {name: flag for module in modules for name, flag in getattr(module, "FLAGS", {}).items()}
    return stated | {name: flag for op in sorted(REGISTRY) for name, flag in _of_mistakes(op).items() if name not in stated}


@cache
def _of_mistakes(op: str) -> dict[str, Flag]:
    """Return the flags of an operation's own cases that are names of its mistakes: a mistake says what is wrong."""
    own = evidence_of(op)
    named = {flag for case in own.cases() for flag in case.flags}
    return {d.name: Flag(d.text, d.seen_in) for d in getattr(own, "DEVIATIONS", ()) if d.name in named}


def groups(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return cases by the id of their group, both in order of first appearance."""
    by_group: dict[str, list[Case]] = {}
    for case in cases:
        by_group.setdefault(case.group, []).append(case)
    return by_group
