"""What one more operation adds to a plain run is bounded, since there will be many; counted over the collected tests."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from posref.spec import REGISTRY

MOST = 60  # plain tests of one operation, which may take 4 s of CPU together
REMEDY = "Mark tests that go over every operation thorough, and leave a part of them in a plain run."


def operation_of(value: Any) -> str | None:
    """Return the operation that a parameter of a test is about, if any: by its name, its record or its own files."""
    name = getattr(value, "name", value)
    name = value.stem if isinstance(value, Path) else name
    return name if isinstance(name, str) and name in REGISTRY else None


def counted(items: Iterable[Any]) -> Counter[str]:
    """Return how many tests each operation has by name."""

    def named(item: Any) -> Iterator[str]:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        yield from {op for op in map(operation_of, parameters) if op is not None}

    return Counter(op for item in items if not item.get_closest_marker("thorough") for op in named(item))


def test_an_operation_has_few_tests_in_a_plain_run(request: pytest.FixtureRequest) -> None:
    many = {op: count for op, count in counted(request.session.items).items() if count > MOST}
    assert not many, f"{many} tests of an operation, where {MOST} are the most. {REMEDY}"


def test_an_operation_with_many_tests_is_found() -> None:
    class Item:
        def __init__(self, *values: Any, thorough: bool = False) -> None:
            self.callspec, self.thorough = type("Spec", (), {"params": dict(enumerate(values))}), thorough

        def get_closest_marker(self, _: str) -> bool:
            return self.thorough

    items = [Item("rope", "numpy"), Item(REGISTRY["rope"]), Item(Path("posref/rotary/rope.py")), Item("rope", thorough=True)]
    assert counted([*items, Item("alibi", "rope")]) == {"rope": 4, "alibi": 1}
