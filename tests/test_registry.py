"""The registry says everything about an operation once: what is forgotten is an error that names the file and what to add."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from literals import choices, choices_of_tests, literals, names_in
from test_fuzz import matches

from posref.conformance.model import Call
from posref.conformance.suite import INSTALLED, load_groups
from posref.conformance.vocabulary.axes import places
from posref.spec import REGISTRY, Axes, Real, encoding


def test_a_result_of_other_axes_is_told() -> None:
    q, k = np.arange(3), np.arange(5)
    options = {"heads": 2, "form": "causal"}
    axes = REGISTRY["alibi"].result[0]
    assert matches("alibi", options, {"q_positions": q, "k_positions": k}, {axes: np.zeros((2, 3, 5))})
    assert not matches("alibi", options, {"q_positions": q, "k_positions": k}, {axes: np.zeros((2, 5, 3))})
    assert matches("alibi", options | {"form": "key"}, {"q_positions": q, "k_positions": k}, {axes: np.zeros((2, 1, 5))})


@pytest.mark.parametrize(
    ("described", "told"),
    [
        ({"arrays": {"positions": Axes("*P", "position")}}, 'add result="*R T D"'),
        ({"arrays": {}, "result": "*P"}, "must describe positions: add it to arrays"),
        ({"arrays": {"positions": Axes("*P", "position")}, "result": ("*P", "*P")}, "must say the axes of out"),
    ],
    ids=["no result", "an argument left out", "too many results"],
)
def test_what_is_forgotten_is_named_with_its_file(described: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="@encoding of half_done") as caught:

        @encoding(family="absolute", source="nobody", **described)
        def half_done(positions: Any, /) -> Any:
            return positions

    assert "test_registry.py, line " in str(caught.value)
    assert told in str(caught.value)
    assert "half_done" not in REGISTRY


@pytest.mark.parametrize("shape", ["H R", "R", "*B Q|R K"])
def test_the_letter_of_any_number_of_axes_is_no_size(shape: str) -> None:
    with pytest.raises(ValueError, match="R must stand for any number of axes"):
        Axes(shape)


@pytest.mark.parametrize("domain", [(-5.0, (-4.0, -1.0)), (0.0, (0.0, 2.0)), (1.0, (1.0, 2.0)), (0.0, (2.0, 1.0))])
def test_random_floats_of_an_option_are_above_0_and_above_its_limit(domain: tuple[float, tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="usual must be above 0 and above low"):
        Real(domain[0], usual=domain[1])


@pytest.mark.thorough
def test_no_general_module_names_an_operation() -> None:
    """What is true of an operation is said in its own files: a general module asks the registry."""
    found = [f"{one.file}:{one.line}: {one.name}" for one in literals()]
    assert not found, "say it in @encoding, or in the evidence of the operation, and derive it:\n" + "\n".join(found)


@pytest.mark.thorough
def test_no_test_of_all_operations_makes_an_exception_for_one() -> None:
    found = [f"{one.file}:{one.line}: {one.name}" for one in choices_of_tests()]
    assert not found, "ask what the registry says of it:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ('if op == "alibi":\n    pass', ["alibi"]),
        ('OPS = {"rope": 1, "t5_bias": 2}', ["rope", "t5_bias"]),
        ('FEW = "alibi shaw_scores"', ["alibi", "shaw_scores"]),
        ('name = "rope/half/small"', ["rope"]),
        ('name = f"rope/{layout}"', ["rope"]),
        ('text = f"{value} is of t5_bias"', ["t5_bias"]),
        ('match op:\n    case "mrope" | "xpos":\n        pass', ["mrope", "xpos"]),
        ('def f():\n    """Return the rope."""\n    return "a rope, and alibi"', []),
        ('text = f"{value} of attention"', []),
        ('path = "/alibi/"', []),
    ],
)
def test_a_name_that_is_planted_is_found(planted: str, found: list[str]) -> None:
    assert sorted(name for _, name in names_in(planted)) == found


def test_a_name_that_is_planted_in_a_general_module_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every room, beside a file in which it may stand."""
    rooms = ("posref", "backends", "conformance/checks", "conformance/fuzzing", "conformance/suite", "docs/site")
    rooms += ("conformance/evidence/every",)
    for room in (*rooms, "conformance/witness", "posref/bias"):
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "planted.py").write_text('OP = "alibi"\n', encoding="utf-8")
    monkeypatch.setattr("literals.ROOT", tmp_path)
    assert sorted(one.file.parent.as_posix() for one in literals()) == sorted(rooms)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ('for op in REGISTRY:\n    assert op != "cayley"', ["cayley"]),
        (
            '@pytest.mark.parametrize("op", REGISTRY)\ndef test(op):\n    assert f(op) or op in ("alibi", "xpos")',
            ["alibi", "xpos"],
        ),
        ('for op in REGISTRY:\n    assert "alibi" not in text(op)', []),
        ('def test():\n    assert case.op == "alibi"', []),
    ],
)
def test_an_exception_that_is_planted_in_a_test_is_found(planted: str, found: list[str]) -> None:
    assert [name for _, name in choices(planted)] == found


def call_of(op: str, case: str) -> Call:
    group = next(g for g in load_groups(INSTALLED, ops=(op,)) if case in {c.id for c in g.cases})
    return next(c for c in group.cases if c.id == case).calls[0]


def test_values_of_pairs_stand_at_the_farther_of_query_and_key() -> None:
    call = call_of("alibi", "alibi/distance/rows")
    found = places("alibi", call, "out")
    q, k = (np.abs(call.inputs[name]) for name in ("q_positions", "k_positions"))
    for index in np.ndindex(found.shape):
        *batch, _, i, j = index
        query, key = (x[(*batch, n)] if x.ndim > 1 else x[n] for x, n in ((q, i), (k, j)))
        assert found[index] == max(query, key)


def test_values_of_several_axes_stand_at_the_largest_of_their_coordinates() -> None:
    call = call_of("mrope", next(c.id for g in load_groups(INSTALLED, ops=("mrope",)) for c in g.cases if c.kind == "value"))
    found = places("mrope", call, "out")
    assert found is not None
    largest = np.max(np.abs(call.inputs["positions"]), axis=0)
    np.testing.assert_array_equal(found, np.broadcast_to(largest[..., None], call.expected["out"].shape))
