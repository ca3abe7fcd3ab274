"""All cases, in one order, each operation's own before those that every operation has, and what they catch."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY

from ..model import Case
from .every import lengths, second_cases, state_cases
from .every.facts import facts_of
from .every.made_calls import call
from .index import deviations, evidence_of
from .tools.case import Make

RECORD = Path(__file__).parent / "caught.json"  # which cases catch which mistake: strength.record writes it


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


def mistakes(record: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """
    Return what `flags.json` says of every registered mistake, by name: its text, where it was seen, and what catches it.

    `record` is what was measured (by default `caught.json`): it gives the number of cases of each operation that catch it.
    """
    measured = json.loads(RECORD.read_bytes()) if record is None else record
    return {
        name: {
            "catches": deviation.text,
            "seen_in": deviation.seen_in,
            "cases": {op: int(of["caught"][name], 16).bit_count() for op, of in measured.items() if name in of["caught"]},
        }
        for name, deviation in deviations().items()
    }


def groups(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return cases by the id of their group, both in order of first appearance."""
    by_group: dict[str, list[Case]] = {}
    for case in cases:
        by_group.setdefault(case.group, []).append(case)
    return by_group
