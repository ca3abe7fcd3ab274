"""All cases, in one order, each operation's own before those that every operation has, and what they catch."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from posref.spec import REGISTRY

from .every import edge_cases, rules, scaled_cases, state_cases
from .every.made_calls import call
from .index import deviations, evidence_of
from .tools import Case, Make

RECORD = Path(__file__).parent / "caught.json"  # which cases catch which mistake: strength.record writes it


def all_cases(ops: Collection[str] = ()) -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included), or those of some operations, as `evidence.index` has them."""
    for op in sorted(REGISTRY):
        if not ops or op in ops:
            yield from cases_of(op)


def cases_of(op: str) -> Iterator[Case]:
    """Return every case of an operation: its own, then those that every operation has."""
    cases = tuple(evidence_of(op).cases())
    yield from cases
    if all(case.tier != "smoke" for case in cases):
        yield edge_cases.small(op)
    for module in (scaled_cases, edge_cases, state_cases, rules):
        yield from module.cases(op)
    if hasattr(evidence_of(op), "more"):
        one, several = partial(edge_cases.one, op), partial(edge_cases.several, op)
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
