"""What one more operation adds to a plain run is bounded, since there will be many; counted over the collected tests."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from posref.spec import REGISTRY

MOST = 40  # plain tests of one operation, those about its own formula included
EVERY = "tests/every_encoding/test_every_encoding.py::test_every_encoding"
REMEDY = "Make it a part of tests/every_encoding, which has an operation's cases already, or mark it thorough."


def counted(items: Iterable[Any]) -> Counter[tuple[str, str]]:
    """Return how often each plain test is made for each operation: for its name, its record or its own file."""
    found = Counter[tuple[str, str]]()
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("thorough"):
            names = [getattr(value, "name", value) for value in item.callspec.params.values()]
            ops = {str(name).removesuffix(".py") for name in names if isinstance(name, str)} & set(REGISTRY)
            found.update((item.nodeid.partition("[")[0], op) for op in ops)
    return found


def many(counts: Counter[tuple[str, str]]) -> dict[str, int]:
    """Return the operations with too many plain tests."""
    of_op = Counter[str]()
    for (_, op), count in counts.items():
        of_op[op] += count
    return {op: count for op, count in of_op.items() if count > MOST}


def over_all(counts: Iterable[tuple[str, str]]) -> set[str]:
    """Return the plain tests that are made once for every operation, or nearly every one."""
    return {test for test, ops in Counter(test for test, _ in counts).items() if ops > len(REGISTRY) // 2}


def test_an_operation_has_few_tests_and_one_goes_over_all(request: pytest.FixtureRequest) -> None:
    counts = counted(request.session.items)
    assert not many(counts), f"more than {MOST} tests of an operation. {REMEDY}"
    assert over_all(counts) <= {EVERY}, f"made for every operation. {REMEDY}"


def test_an_operation_with_many_tests_is_found() -> None:
    def item(*values: Any, thorough: bool = False) -> Any:
        spec = SimpleNamespace(params=dict(enumerate(values)))
        return SimpleNamespace(callspec=spec, nodeid=f"test_it[{values[0]}]", get_closest_marker=lambda _: thorough)

    items = [item("rope", "numpy"), item(REGISTRY["rope"]), item(Path("posref/rotary/rope.py")), item("rope", thorough=True)]
    assert counted([*items, item("alibi", "rope")]) == {("test_it", "rope"): 4, ("test_it", "alibi"): 1}
    assert many(counted([item("rope")] * (MOST + 1))) == {"rope": MOST + 1}
    assert over_all(counted(items)) == set()
    assert over_all(counted([item(op) for op in REGISTRY])) == {"test_it"}
    assert over_all(counted([item(op, thorough=True) for op in REGISTRY])) == set()
