"""
A few stored cases of every operation, derived from the suite: the smoke case, and the fewest others that have what it lacks.

What a case has is every word of its options, the kind of its scaling, the ranks of its arrays and the numbers of its positions.
So a new operation is tried on every array library as soon as it has cases, and nobody lists calls by hand.
"""

from functools import cache
from inspect import signature
from typing import Any

from posref.conformance.model import Call
from posref.conformance.suite.reader import INSTALLED, LoadedCase, load_groups
from posref.spec import REGISTRY, Integers, Real

LARGEST = 4000  # numbers that a sampled case takes and gives: beyond, libraries are asked by the thorough tests


@cache
def stored(op: str) -> tuple[LoadedCase, ...]:
    """Return every case of an operation in the installed suite, read once by a process."""
    return tuple(case for group in load_groups(INSTALLED, ops=(op,)) for case in group.cases)


@cache
def cases(op: str) -> tuple[LoadedCase, ...]:
    """Return the value cases of an operation that are asked in every dtype and have elements, smallest first."""
    every = [case for case in stored(op) if case.kind == "value"]
    assert every, f"{op} has no case of values in the suite: posref vectors build conformance/vectors --op {op}"
    most = max(len(case.dtypes) for case in every)
    some = [case for case in every if len(case.dtypes) == most and 0 < size(case.calls[0]) <= LARGEST and not empty(case)]
    return tuple(sorted(some, key=lambda case: (size(case.calls[0]), case.id)))


def size(call: Call) -> int:
    return sum(array.size for array in (*call.inputs.values(), *call.expected.values()))


def empty(case: LoadedCase) -> bool:
    call = case.calls[0]
    return any(array.size == 0 for array in (*call.inputs.values(), *call.expected.values()))


def traits(op: str, call: Call) -> frozenset[tuple[str, Any]]:
    """Return what a call has that another may lack."""
    record, found = REGISTRY[op], set()
    told = {n: p.default for n, p in signature(record.function).parameters.items()}
    for name, domain in record.domains.items():
        value = call.params.get(name, told[name])
        if isinstance(value, str | bool | None):
            found.add((name, value))
        elif not isinstance(domain, Real):
            found.add((name, len(value) if isinstance(domain, Integers) else type(value).__name__))
    for name in record.arrays:
        array = call.inputs.get(name)
        found.add((name, None if array is None else array.ndim))
        if array is not None and record.arrays[name].kind == "position":
            found.add((name, array.dtype.kind))
    return frozenset(found)


@cache
def sample(op: str) -> tuple[LoadedCase, ...]:
    """Return the smoke case, and then whichever case adds most, the smallest of those that add as much, until none adds."""
    left = [(case, traits(op, case.calls[0])) for case in cases(op)]
    chosen, seen = [smoke(op)], set(traits(op, smoke(op).calls[0]))
    while any(found - seen for _, found in left):
        case, found = max(left, key=lambda pair: len(pair[1] - seen))
        chosen.append(case)
        seen |= found
    return tuple(chosen)


@cache
def smoke(op: str) -> LoadedCase:
    """Return the smoke case; groups after its own are not read."""
    return next(case for group in load_groups(INSTALLED, ops=(op,)) for case in group.cases if case.tier == "smoke")
