"""
Covering calls of the kernel tier: any two values of two features meet in one of them. Long calls are added.

A defect may need a size and a word together, or far positions and a partial rotation. The calls are made from the registry
alone, the same for every implementation; each is judged live.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations, islice, product
from typing import Any

from posref.scaling import Linear, Llama3, NTKAware, YaRN
from posref.spec import REGISTRY, Record

from ..evidence.every.facts import facts_of
from ..model import Case
from .records import Features, domains, is_number, make

GROUP = "kernel"
CALLS, FEW = 120, 40  # of an operation that many kernels compute, and of another
SIZES = (1, 2, 7, 33, 64, 65, 129)
LENGTH = 10_300  # tokens of long calls, beyond the blocks of a grid
STARTS = (1000, 40_000, 70_000, 0)
SCALINGS = (None, Linear(4.0), NTKAware(4.0), YaRN(4.0, 64), Llama3(8.0, 64))
ODD = ("", "non-contiguous")  # forms of memory


@cache
def records(op: str) -> tuple[Features, ...]:
    """Return the records of the covering calls of an operation."""
    if facts_of(op).usual is None:
        return ()
    rng = random.Random(op)
    values = {name: _few(op, name, several_values) for name, several_values in domains(op).items() if name != "circle"}
    usual = {name: several_values[0] for name, several_values in values.items()}
    several = {name: several_values for name, several_values in values.items() if len(several_values) > 1}
    count = CALLS if facts_of(op).every_size else FEW
    covering = [*islice(_pairs(op, several, usual, rng), count)]
    if "size T" in usual:
        covering += islice(_long(op, several, {**usual, "size T": LENGTH}), count // 4)
    return tuple(record for record in covering if make(op, record) is not None)


def _long(op: str, values: Mapping[str, list[Any]], usual: Features) -> Iterator[Features]:
    """Yield records of long calls, of every two values of two words: with another word beside them a kernel may refuse them."""
    few = {name: of_a for name, of_a in values.items() if not name.startswith(("size ", "start"))}
    few = ({"size tail": [0, 2]} if "size tail" in usual else {}) | few
    yield usual
    for (a, of_a), (b, other) in combinations(few.items(), 2):
        for v, w in product(of_a, other):
            if (v, w) != (of_a[0], other[0]) and make(op, trial := {**usual, a: v, b: w}) is not None:
                yield trial


def cases(op: str, only: str | None = None) -> Iterator[Case]:
    """Yield the covering calls of an operation as cases, or one of them."""
    for number, record in enumerate(records(op)):
        name = f"{op}/{GROUP}/pairs-{number}"
        call = make(op, record, number) if only in (None, name) else None
        if call is not None:
            yield Case(name, call.params, call.inputs, tier=GROUP, form=record.get("memory", ""))


def names(op: str) -> list[str]:
    """Return the ids of the covering calls of an operation."""
    return [f"{op}/{GROUP}/pairs-{number}" for number in range(len(records(op)))]


def _few(op: str, name: str, values: list[Any]) -> list[Any]:
    """Return the values of a feature that are paired, the usual one first."""
    kind, _, rest = name.partition(" ")
    if kind == "size":
        return [values[0], *(n for n in SIZES if n in values and n != values[0])]
    if kind == "option" and isinstance(REGISTRY[op].domains[rest], Record):
        return [*SCALINGS]
    if kind == "option" and is_number(values[-1]):
        return values[:3]
    others: Mapping[str, list[Any]] = {
        "start": [n for n in STARTS if n in values],
        "memory": [*ODD],
        "bits": [8],
        "leading axes": values[:4],
    }
    return others.get(name, values) or values[:1]


def _pairs(op: str, values: Mapping[str, list[Any]], usual: Features, rng: random.Random) -> Iterator[Features]:
    """Yield records until every two values of two features met, or could not."""
    left = {
        (a, repr(v), b, repr(w)) for a, b in combinations(values, 2) for v, w in product(values[a], values[b])
    }  # each pair once, in the order of the features
    order = sorted(left)
    rng.shuffle(order)
    for a, v, b, w in order:
        if (a, v, b, w) not in left:
            continue
        record = {**usual, a: _value(values[a], v), b: _value(values[b], w)}
        if make(op, record) is not None:
            for name in rng.sample(list(values), len(values)):
                if name not in (a, b):
                    record = _best(op, record, name, values[name], left, rng)
            yield record
        left -= {(x, repr(record[x]), y, repr(record[y])) for x, y in combinations(values, 2)} | {(a, v, b, w)}


def _value(values: list[Any], text: str) -> Any:
    return next(value for value in values if repr(value) == text)


def _best(
    op: str, record: Features, name: str, values: list[Any], left: set[tuple[str, str, str, str]], rng: random.Random
) -> Features:
    """Return a record with the value of a feature that meets most values which it did not meet before."""

    def count(value: Any) -> tuple[int, float]:
        word = repr(value)
        met = sum((x, repr(v), name, word) in left or (name, word, x, repr(v)) in left for x, v in record.items())
        return met, rng.random()

    for value in sorted(values, key=count, reverse=True)[:2]:
        trial = {**record, name: value}
        if make(op, trial) is not None:
            return trial
    return record
