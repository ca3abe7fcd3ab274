"""
Which thorough tests a run asks: a share of those that go over all operations, mistakes or pairs, by a seed that is printed.

Tests marked `sampled` are a share's worth each, evenly over the operations that they are about, and no operation is left
without any. Of dear tests, as those that compile, it is a part of the share: `sampled(part=0.5)`. Tests marked `everything`
judge all of them together, and run where all do.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from posref.spec import REGISTRY

SHARE = 0.2  # of what is sampled
EXAMPLES = {"plain": 25, "thorough": 100}  # on which an invariant is tried
Operations = Callable[[Any], Iterable[str]]


def operation_of(value: Any) -> str | None:
    """Return the operation that a parameter of a test is about, if any: by its name, its record or its own files."""
    name = getattr(value, "name", value)
    name = value.stem if isinstance(value, Path) else name
    return name if isinstance(name, str) and name in REGISTRY else None


def operations_of(item: Any) -> list[str]:
    """Return the operations that a test is about: those that its parameters name, or that its mark reads from them."""
    parameters = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
    mark = item.get_closest_marker("sampled")
    read: Operations | None = mark.kwargs.get("of") if mark else None
    found = [op for value in parameters for op in read(value)] if read else map(operation_of, parameters)
    return list(dict.fromkeys(op for op in found if op is not None))


def chosen(items: Sequence[Any], share: float, seed: int) -> set[Any]:
    """Return the sampled items that are run: a share of every test, evenly over operations, and one at least of each."""
    rng = random.Random(seed)
    about = {item: operations_of(item) for item in items}
    taken: set[Any] = set()
    for test in dict.fromkeys(map(name_of, items)):
        of_test = [item for item in items if name_of(item) == test]
        taken |= set(evenly(of_test, about, share * part_of(of_test[0]), rng))
    seen = {op for item in taken for op in about[item]}
    shuffled = rng.sample(list(items), len(items))
    for op in dict.fromkeys(op for ops in about.values() for op in ops):
        if op not in seen:
            first = next(item for item in shuffled if op in about[item])
            taken.add(first)
            seen |= set(about[first])
    return taken


def part_of(item: Any) -> float:
    """Return which part of the share is run of a test: all, unless its mark says another."""
    return float(item.get_closest_marker("sampled").kwargs.get("part", 1))


def evenly(items: Sequence[Any], about: dict[Any, list[str]], share: float, rng: random.Random) -> Iterator[Any]:
    """
    Yield a share of the items of one test, at least one.

    In the order of their operations every so manyth is taken from a random start. So an operation with enough items has one.
    """
    order = sorted(rng.sample(list(items), len(items)), key=lambda item: (about[item] or [""])[0])
    count = max(1, round(share * len(order)))
    start = rng.random()
    yield from (order[int((start + k) * len(order) / count)] for k in range(count))


def name_of(item: Any) -> str:
    """Return the name of a test without its parameters."""
    return str(item.nodeid).partition("[")[0]


def beyond_few(items: Sequence[Any]) -> Iterator[Any]:
    """Yield the tests that a plain run leaves to a thorough one: of each that is marked `few` all but so many, evenly."""
    marked = [item for item in items if item.get_closest_marker("few")]
    for test in dict.fromkeys(map(name_of, marked)):
        of_test = [item for item in marked if name_of(item) == test]
        (count,) = of_test[0].get_closest_marker("few").args
        plain = {k * len(of_test) // count for k in range(count)}
        yield from (item for k, item in enumerate(of_test) if k not in plain)


def select(items: list[pytest.Item], share: float, seed: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that are run and those that are left out; a plain test is never left out."""
    candidates = [item for item in items if item.get_closest_marker("thorough") and item.get_closest_marker("sampled")]
    taken = chosen(candidates, share, seed) if share < 1 else set(candidates)
    left = set(candidates) - taken
    if share < 1:
        left |= {item for item in items if item.get_closest_marker("everything")}
    return [item for item in items if item not in left], [item for item in items if item in left]
