"""What operations are made of is read from their definitions; what is read is what is called."""

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from every_encoding.composed import KNOWN, WITNESS
from numpy.testing import assert_array_equal

import posref
from posref.conformance.errors import BuildError
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.core.composition import Observed, called, formula, is_known, noun, reaches, rebound, stages
from posref.spec import PARTS, REGISTRY, Axes, Integer, encoding, part


def test_the_stages_of_rope_and_of_a_method_that_only_equals_its_map() -> None:
    assert stages("rope") == ("rope_frequencies", "rope_table", "apply_rope")
    assert stages("rerope") == ("rope_frequencies", "rope_table", "apply_rope", "rerope_distances")
    assert stages("mla_logits") == ("rope", "attention_logits")
    assert reaches("rope") == {"rope_frequencies", "rope_table", "cos_sin_of_pairs", "apply_rope"}
    assert reaches("rerope") == {"rerope_distances", "rotated_products"}
    assert reaches("fope") == frozenset()  # closed


def test_names_of_parts_say_one_thing() -> None:
    assert not set(PARTS) & set(REGISTRY)
    for name in PARTS:
        assert any(name in reaches(op) for op in REGISTRY), f"{name} is part of no operation"
    for name, module in list(sys.modules.items()):
        if name.startswith("posref.") and not name.startswith(("posref.conformance", "posref.plots")):
            for function in vars(module).values():
                if isinstance(function, FunctionType) and function.__module__ == name and is_known(function):
                    assert function is KNOWN[function.__name__], f"{name}.{function.__name__} has the name of a part"


def test_every_deviation_is_made_for_what_it_touches_alone() -> None:
    for deviation in DEVIATIONS.values():
        operations = deviation.operations()
        for op in REGISTRY:
            touched = operations[op] is not formula(op)
            assert touched == deviation.touches(op), f"{deviation.name} in {op}"


def test_a_copy_calls_others_and_leaves_the_definition_alone() -> None:
    x, positions = np.asarray([[1.0, 2.0, 3.0, 4.0]]), np.asarray([5])
    options = {"layout": "half", "base": 100.0}
    before = posref.rope(x, positions, **options)
    seen = []

    def known(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def deviating(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return function(*args, **kwargs)

        return deviating

    copy = rebound(posref.rope, {"rope_table", "apply_rope"}, known)
    assert_array_equal(copy(x, positions, **options), before)
    assert seen == ["rope_table", "apply_rope"]
    assert_array_equal(posref.rope(x, positions, **options), before)
    assert seen == ["rope_table", "apply_rope"]
    through_a_helper = rebound(posref.rerope, {"rope_table"}, known)
    places = {"window": 3, **options}
    assert_array_equal(
        through_a_helper(x, x, positions, positions, **places), posref.rerope(x, x, positions, positions, **places)
    )
    assert seen[2:] == ["rope_table"] * 4


def test_a_stage_is_what_is_called_once_has_a_name_and_is_used() -> None:
    x, p = np.asarray([[1.0, 2.0, 3.0, 4.0]]), np.asarray([5])
    observed = Observed(posref.xpos, set(called(posref.xpos)))
    observed.function(x, p, role="query", layout="half", base=100.0, centre=2)
    assert list(observed.outputs()) == ["inv_freq", "attention_factor", "cos", "sin", "scales"]
    assert_array_equal(observed.outputs()["scales"], posref.xpos_scales(p, 4, role="query", centre=2))
    assert noun("apply_rope") == ""
    polar = Observed(posref.pope, set(called(posref.pope)))
    polar.function(x, p, layout="cos_sin", base=100.0)
    assert list(polar.outputs()) == ["inv_freq"]  # it does not take the factor
    twice = Observed(posref.rotated_values, {"rope"})
    twice.function(np.ones((1, 1)), x, p, p, layout="half", base=100.0)
    assert twice.outputs() == {}


def test_two_parts_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def cos_sin_of_pairs() -> None:
        """Of another module."""

    with pytest.raises(
        ValueError, match=r"part: names must be unique; 'cos_sin_of_pairs' is already defined in posref.core.angles"
    ):
        part()(cos_sin_of_pairs)


def test_a_new_operation_has_stages_by_calling_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posref.spec.REGISTRY", REGISTRY)

    described: dict[str, Any] = {"arrays": {"positions": Axes("*P", "position")}, "domains": {"heads": Integer(1)}}

    @encoding(family="bias", source="a test", result="*P", **described)
    def toy_twice(positions: Any, heads: int, /) -> Any:
        """Slopes, twice."""
        return _toy_helper(heads) * 2 + positions

    try:
        assert stages("toy_twice") == ()  # a helper outside posref is not looked into
        changed = DEVIATIONS["slopes-reversed"].operations()["toy_twice"]
        assert changed is REGISTRY["toy_twice"].function
    finally:
        del REGISTRY["toy_twice"]


def _toy_helper(heads: int) -> Any:
    return posref.alibi_slopes(heads)


def test_a_second_witness_that_is_missing_is_named_with_its_file() -> None:
    with pytest.raises(
        BuildError, match=r"^spiral has no second witness: write the function spiral in conformance/witness/spiral\.py\.$"
    ):
        WITNESS("spiral")
