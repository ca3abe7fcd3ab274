"""A share of thorough tests: as large as it says, the same for the same seed, and no operation without any."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sampling import beyond_few, chosen, name_of, operations_of, select

from posref.spec import REGISTRY

pytest_plugins = "pytester"

OPS = list(REGISTRY)


@dataclass(frozen=True)
class Item:
    nodeid: str
    values: tuple[Any, ...] = ()
    marks: dict[str, Any] = field(default_factory=lambda: {"thorough": {}, "sampled": {}}, compare=False)

    @property
    def callspec(self) -> Any:
        return SimpleNamespace(params=dict(enumerate(self.values)))

    def get_closest_marker(self, name: str) -> Any:
        mark = self.marks.get(name)
        return (
            None if mark is None else SimpleNamespace(kwargs=mark) if isinstance(mark, dict) else SimpleNamespace(args=(mark,))
        )


def items_of(name: str, times: int = 1, ops: list[str] = OPS) -> list[Item]:
    return [Item(f"{name}[{op}-{k}]", (op, k)) for op in ops for k in range(times)]


def test_a_share_is_as_large_as_it_says_of_every_test() -> None:
    few, many = items_of("few"), items_of("many", 20)
    taken = Counter(name_of(item) for item in chosen([*few, *many], 0.2, seed=1))
    assert taken["few"] == round(0.2 * len(few))
    assert taken["many"] == round(0.2 * len(many))
    assert len(chosen(items_of("one", ops=OPS[:1]), 0.01, seed=1)) == 1
    dear = [Item(f"dear[{op}]", (op,), {"thorough": {}, "sampled": {"part": 0.5}}) for op in OPS]
    taken = Counter(name_of(item) for item in chosen([*dear, *many], 0.2, seed=1))
    assert taken == {"dear": round(0.1 * len(dear)), "many": round(0.2 * len(many))}


def test_no_operation_is_left_without_any() -> None:
    for seed in range(10):
        taken = chosen(items_of("few"), 0.01, seed)
        assert {item.values[0] for item in taken} == set(OPS)
        per_operation = Counter(item.values[0] for item in chosen(items_of("many", 20), 0.2, seed))
        assert set(per_operation) == set(OPS)
        assert set(per_operation.values()) <= {3, 4, 5}


def test_a_plain_run_has_few_of_a_test_evenly() -> None:
    items = [Item(f"test[{k}]", marks={"few": 3}) for k in range(10)] + [Item(f"other[{k}]", marks={}) for k in range(4)]
    left = {item.nodeid for item in beyond_few(items)}
    assert {item.nodeid for item in items[:10]} - left == {"test[0]", "test[3]", "test[6]"}
    assert not {item.nodeid for item in items[10:]} & left
    assert not list(beyond_few([Item("test", marks={"few": 3})]))


def test_the_same_seed_takes_the_same_and_others_take_others() -> None:
    items = items_of("many", 20)
    assert chosen(items, 0.2, seed=7) == chosen(items, 0.2, seed=7)
    assert len({frozenset(chosen(items, 0.2, seed)) for seed in range(5)}) == 5
    assert set().union(*(chosen(items, 0.2, seed) for seed in range(60))) == set(items)


def test_plain_tests_and_those_of_everything() -> None:
    plain = Item("plain", ("rope",), {"sampled": {}})
    other = Item("other", (), {"thorough": {}})
    whole = Item("whole", (), {"thorough": {}, "everything": {}})
    items: list[Any] = [plain, other, whole, *items_of("many", 20)]
    kept, left = select(items, 0.2, seed=3)
    assert {plain, other} <= set(kept)
    assert whole in left
    assert [item for item in items if item in kept] == kept
    assert len(kept) + len(left) == len(items)
    assert select(items, 1.0, seed=3) == (items, [])


def test_operations_are_read_from_parameters_and_marks() -> None:
    rope, alibi = REGISTRY["rope"], Path("tests/plain/alibi.py")
    assert operations_of(Item("a", (rope, alibi, "float32", 3))) == ["rope", "alibi"]
    marked = Item("a", ("offset-ignored",), {"sampled": {"of": lambda name: ("learned", name)}})
    assert operations_of(marked) == ["learned", "offset-ignored"]


RUN = """
import pytest

@pytest.mark.sampled
@pytest.mark.thorough
@pytest.mark.parametrize("op", {ops})
@pytest.mark.parametrize("k", range(5))
def test_sampled(op, k):
    pass

@pytest.mark.thorough
def test_other():
    pass

@pytest.mark.everything
@pytest.mark.thorough
def test_whole():
    pass
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "passed"),
    [
        ((), 1 + len(OPS)),
        (("--share", "0.4"), 1 + 2 * len(OPS)),
        (("--everything",), 2 + 5 * len(OPS)),
        (("-k", "sampled"), 5 * len(OPS)),  # chosen by name: all
        (("-k", "sampled", "--share", "0.4"), 2 * len(OPS)),
    ],
    ids=["a fifth", "two fifths", "everything", "by name", "a share of what is named"],
)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_thorough_run_says_its_seed(pytester: pytest.Pytester, options: tuple[str, ...], passed: int, workers: str) -> None:
    here = Path(__file__).parent
    pytester.makeini(
        "[pytest]\ntestpaths = tests\nmarkers =\n thorough\n sampled\n everything\n"
        f"pythonpath = {here}\naddopts = -p no:cacheprovider\n"
    )
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text((here / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_it.py").write_text(RUN.format(ops=OPS), encoding="utf-8")
    done = pytester.runpytest_subprocess("-n", workers, "-m", "thorough", "--seed", "12", *options)
    done.assert_outcomes(passed=passed)
    told = done.stdout.str()
    assert ("--seed 12" in told) == (options not in (("--everything",), ("-k", "sampled")))
