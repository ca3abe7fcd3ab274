"""What one more operation adds to a plain run is bounded, since there will be many; counted over the collected tests."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sampling import name_of, operation_of

from posref.spec import REGISTRY

MOST = 40  # plain tests of one operation, those about its own formula included
EVERY = "tests/every_encoding/test_every_encoding.py::test_every_encoding"
REMEDY = "Make it a part of tests/every_encoding, which has an operation's cases already, or mark it thorough and sampled."


def counted(items: Iterable[Any]) -> Counter[str]:
    """Return how many tests each operation has by name."""

    def named(item: Any) -> Iterator[str]:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        yield from {op for op in map(operation_of, parameters) if op is not None}

    return Counter(op for item in items if not item.get_closest_marker("thorough") for op in named(item))


def over_all(items: Iterable[Any]) -> set[str]:
    """Return the plain tests that are made once for every operation, or nearly every one."""
    seen: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("thorough"):
            seen[name_of(item)] |= {op for op in map(operation_of, item.callspec.params.values()) if op is not None}
    return {name for name, ops in seen.items() if len(ops) > len(REGISTRY) // 2}


def test_an_operation_has_few_tests_in_a_plain_run(request: pytest.FixtureRequest) -> None:
    many = {op: count for op, count in counted(request.session.items).items() if count > MOST}
    assert not many, f"{many} tests of an operation, where {MOST} are the most. {REMEDY}"


def test_one_plain_test_goes_over_every_operation(request: pytest.FixtureRequest) -> None:
    others = over_all(request.session.items) - {EVERY}
    assert not others, f"{sorted(others)} are made for every operation. {REMEDY}"


def test_an_operation_with_many_tests_is_found() -> None:
    class Item:
        def __init__(self, *values: Any, thorough: bool = False) -> None:
            self.callspec, self.thorough = type("Spec", (), {"params": dict(enumerate(values))}), thorough
            self.nodeid = f"test_it[{values[0]}]"

        def get_closest_marker(self, _: str) -> bool:
            return self.thorough

    items = [Item("rope", "numpy"), Item(REGISTRY["rope"]), Item(Path("posref/rotary/rope.py")), Item("rope", thorough=True)]
    assert counted([*items, Item("alibi", "rope")]) == {"rope": 4, "alibi": 1}
    assert over_all(items) == set()
    assert over_all([Item(op) for op in REGISTRY]) == {"test_it"}
    assert over_all([Item(op, thorough=True) for op in REGISTRY]) == set()
