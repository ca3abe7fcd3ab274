"""The registry says everything about an operation once: what is forgotten is an error that names the file and what to add."""

from typing import Any

import numpy as np
import pytest
from literals import literals
from test_fuzz import matches

from posref.conformance.calls import positions_of
from posref.conformance.model import Call
from posref.conformance.suite import INSTALLED, load_groups
from posref.conformance.suite.axes import places
from posref.spec import REGISTRY, Axes, encoding


@pytest.mark.parametrize("op", REGISTRY)
def test_results_have_the_axes_that_the_registry_says(op: str) -> None:
    """Together with the arguments' axes, on the calls of the suite: one size for every letter."""
    record = REGISTRY[op]
    calls = [
        c
        for g in load_groups(INSTALLED, ops=(op,))
        for case in g.cases
        if case.kind in ("value", "sequence")
        for c in case.calls
    ]
    assert calls
    for call in calls:
        for output, axes in zip(record.outputs, record.result, strict=True):
            shape = call.expected[output].shape
            assert matches(op, dict(call.params), call.inputs, {axes: np.zeros(shape)}), f"{op}: {output} has shape {shape}"


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


def test_no_list_of_operations_stands_outside_the_registry() -> None:
    """What is true of several operations is said of each at its definition; the phases of three rotations are the exception."""
    lists: dict[str, set[str]] = {}
    for found in literals():
        lists.setdefault(str(found.file), set()).add(found.name)
    long = {file: sorted(names) for file, names in lists.items() if len(names) > 3}
    assert not long, f"{long}: say it in @encoding of each operation, and derive it (python tests/literals.py lists all)"


def call_of(op: str, case: str) -> Call:
    group = next(g for g in load_groups(INSTALLED, ops=(op,)) if case in {c.id for c in g.cases})
    return next(c for c in group.cases if c.id == case).calls[0]


def test_values_of_pairs_stand_at_the_farther_of_query_and_key() -> None:
    call = call_of("alibi", "alibi/distance/rows")
    found = places("alibi", call, "out")
    q, k = (np.abs(call.inputs[name]) for name in ("q_positions", "k_positions"))
    assert found is not None
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


@pytest.mark.parametrize("op", [op for op in REGISTRY if positions_of(op)])
def test_every_operation_with_positions_says_where_its_values_stand(op: str) -> None:
    """A report says "at position" and the first failing position of them all."""
    calls = [c for g in load_groups(INSTALLED, ops=(op,)) for case in g.cases if case.kind == "value" for c in case.calls]
    assert any(places(op, call, output) is not None for call in calls for output in call.expected)
