"""The domain of an argument is stated once, and every generated case and every random call stays within it."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posref.conformance.evidence.every import edge_cases, rules, scaled_cases
from posref.conformance.fuzzing.strategies import calls
from posref.conformance.model import Case
from posref.conformance.vocabulary.axes import limits, within
from posref.spec import REGISTRY, Axes, encoding

DTYPES = ("float64", "float32", "float16", "bfloat16")
ENDS = {
    "scale": Axes("H", positive=True),
    "power": Axes("H", low="1/64", high="2"),
    "shift": Axes("H", high="-3"),
    "floor": Axes("H", "wide", low="1"),
}


@pytest.fixture(scope="module")
def kernel_of_distance() -> Iterator[str]:
    """Register an encoding with learned parameters, as KERPLE's power kernel has, and remove it afterwards."""

    @encoding(
        family="bias",
        source="arXiv:2205.09921, section 4",
        arrays={"q_positions": Axes("~*B Q", "position"), "k_positions": Axes("*B K", "position"), **ENDS},
        result="*B H Q K",
        rows="*B H Q K",
    )
    def kernel_of_distance(  # as many as there are kinds of domains
        q_positions: Any, k_positions: Any, scale: Any, power: Any, shift: Any, floor: Any, /
    ) -> Any:
        """Return ``-scale |i-j|**power + shift + floor``."""
        apart = np.abs(q_positions[..., None, :, None] - k_positions[..., None, None, :])
        scale, power, shift, floor = (x[:, None, None] for x in (scale, power, shift, floor))
        return -scale * apart**power + shift + floor

    op = kernel_of_distance.__name__
    evidence = f"posref.conformance.evidence.{op}"
    sys.modules[evidence] = ModuleType(evidence)  # which states nothing
    yield op
    del REGISTRY[op], sys.modules[evidence]


def generated(op: str) -> list[Case]:
    """Return all generated cases of an operation."""
    made = [case for module in (rules, scaled_cases, edge_cases) for case in module.cases(op)]
    return [*made, edge_cases.small(op)]


def inputs_of(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the arrays of every call of a case."""
    yield from [dict(step.inputs) for step in case.steps] if case.kind == "sequence" else [dict(case.inputs)]


def is_within(name: str, values: Any) -> bool:
    """Return whether values are in the domain of an argument of the encoding above."""
    low, high = limits(ENDS[name], {})
    inside = (True if low is None else values >= low) & (True if high is None else values <= high)
    return bool(np.all(np.isfinite(values) & inside & (values > 0 if ENDS[name].positive else True)))


def test_every_generated_case_is_within_the_domain(kernel_of_distance: str) -> None:
    found = generated(kernel_of_distance)
    assert len(found) > 15
    for case in found:
        for arrays in inputs_of(case):
            assert all(is_within(name, arrays[name]) for name in ENDS), case.id
            out = REGISTRY[kernel_of_distance].function(*arrays.values())
            assert np.all(np.isfinite(out)), case.id


def test_parameters_with_a_domain_keep_the_distant_cases(kernel_of_distance: str) -> None:
    ids = {case.id.partition("/")[2] for case in generated(kernel_of_distance)}
    assert {"word/usual-distant", "word/usual-negative", "word/usual-quarters", "again/grown", "size/usual-k-259"} <= ids


def test_the_numbers_of_a_generated_case_differ_and_are_of_few_bits(kernel_of_distance: str) -> None:
    """A parameter that is the same for all heads hides an exchange of heads; bfloat16 holds eight bits."""
    case = next(case for case in generated(kernel_of_distance) if case.id.endswith("/word/usual-distant"))
    for name in ENDS:
        values = np.asarray(case.inputs[name])
        assert len({*values.tolist()}) == values.size > 1, name
        mantissa = np.frexp(values)[0] * 2**8
        assert np.array_equal(mantissa, np.round(mantissa)), name


@settings(max_examples=60, deadline=None, database=None)
@given(data=st.data(), dtype=st.sampled_from(DTYPES))
def test_random_calls_are_within_the_domain(kernel_of_distance: str, data: st.DataObject, dtype: str) -> None:
    drawn = data.draw(calls(kernel_of_distance, dtype))
    for name in ENDS:
        assert is_within(name, drawn.inputs[name]), name


@settings(max_examples=200, deadline=None, database=None)
@given(
    values=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8),
    ends=st.sampled_from(
        [("0", "1"), ("1/64", "2"), ("-3", "-3"), ("1/3", None), (None, "2/3"), ("-5/7", "1/7"), (None, None)]
    ),
    bits=st.sampled_from((2, 8, 11, 24)),
)
def test_moved_values_are_within_the_domain(values: list[float], ends: tuple[str | None, str | None], bits: int) -> None:
    axes = Axes("n", low=ends[0], high=ends[1])
    low, high = limits(axes, {})
    if low is not None and high is not None and high - low < 2.0**-bits and low != high:
        return
    moved = within(np.asarray(values), axes, {}, bits)
    assert np.all((moved >= (-np.inf if low is None else low)) & (moved <= (np.inf if high is None else high)))
    if ends == (None, None):
        assert np.array_equal(moved, values)


@pytest.mark.parametrize(
    ("described", "told"),
    [
        ({"kind": "real", "index": True, "low": "0", "high": "N-1"}, "an index must be an integer"),
        ({"kind": "integer", "index": True, "low": "0"}, "an index must be an integer with low and high"),
        ({"kind": "integer", "positive": True}, "positive is of reals"),
        ({"kind": "real", "positive": True, "low": "0"}, "positive is of reals, and says what low says"),
        ({"kind": "mask", "low": "0"}, "a mask has no low and no high"),
    ],
)
def test_a_domain_that_says_nothing_is_refused(described: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Axes("*P", **described)


def test_a_domain_is_said_in_words() -> None:
    assert str(Axes("H", positive=True)) == "real, above 0, (H)"
    assert str(Axes("H", positive=True, high="2")) == "real, above 0 and at most 2, (H)"
    assert str(Axes("H", low="1/64", high="2")) == "real, 1/64 to 2, (H)"
    assert str(Axes("H", low="0")) == "real, 0 or more, (H)"
    assert str(Axes("H", high="N-1")) == "real, at most N-1, (H)"
    assert str(Axes("H")) == "real, (H)"
