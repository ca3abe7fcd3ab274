"""The registry of deviations measures the suite: each must be caught, be told from the others, and be recognised."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from posref.conformance import diagnose, invoke
from posref.conformance.checker import Answer
from posref.conformance.deviations import DEVIATIONS
from posref.conformance.deviations.compose import PARTS
from posref.conformance.suite import INSTALLED, LoadedCase, load_groups
from posref.spec import REGISTRY

CLASS, DTYPE = "angle32", "float32"
INNER = {"angles": "rope_table", "alibi_product": "alibi", "t5_rows": "t5_bias", "softmax": "attention"}
NOT_IN_A_MATRIX = {  # a rotation matrix has no input but one position, nothing to pass on, and no inverse
    "inverse-ignored", "inverse-keeps-layout", "single-head-unrotated", "head-zero-unrotated", "tail-zeroed", "trailing-lanes",
    "x-through-bfloat16", "x-through-float16", "positions-first-row", "positions-reversed",
}  # fmt: skip
INEXPRESSIBLE = {(name, "rotation_matrix") for name in NOT_IN_A_MATRIX} | {
    ("max-bias-8", "alibi"),  # alibi has no such option
}
FEW: set[tuple[str, str]] = set()  # could be expressed, but fewer than two cases ask: gaps of the suite
TIES: dict[frozenset[str], str] = {}  # pairs that no core case tells apart, and why


@cache
def cases() -> dict[str, list[LoadedCase]]:
    """Return the core cases that are asked in float32, by operation."""
    found: dict[str, list[LoadedCase]] = {op: [] for op in REGISTRY}
    for group in load_groups(INSTALLED):
        found[group.op] += [c for c in group.cases if c.kind != "reject" and DTYPE in c.dtypes]
    return found


@cache
def answers(name: str, op: str) -> dict[str, list[invoke.Arrays]]:
    """Return what a mutant gives in float32, by case; a call that makes no sense for it gives nothing."""
    found = {}
    for case in cases()[op]:
        outputs = diagnose.predict(DEVIATIONS[name], op, case.calls)
        found[case.id] = [{n: v.astype(np.float32) if v.dtype.kind == "f" else v for n, v in o.items()} for o in outputs]
    return found


@cache
def caught(name: str, op: str) -> frozenset[str]:
    """Return the cases of one operation that a mutant fails."""
    return frozenset(c.id for c in cases()[op] if fails(c, answers(name, op)[c.id]))


def fails(case: LoadedCase, outputs: list[invoke.Arrays]) -> bool:
    for call, output in zip(case.calls, outputs, strict=True):
        if any(n not in output or not fits(output[n], e) for n, e in call.expected.items()):
            return True
        if invoke.compare(case.op, call, output, CLASS, DTYPE) is not None:
            return True
    return False


def fits(value: np.ndarray, expected: np.ndarray) -> bool:
    try:
        return np.broadcast_shapes(value.shape, expected.shape) == expected.shape
    except ValueError:
        return False


def touched(name: str) -> list[str]:
    return [op for op in REGISTRY if DEVIATIONS[name].touches(op)]


def stage(name: str) -> str:
    """Return the operation where a deviation sits."""
    first = next(iter(DEVIATIONS[name].wraps))
    return INNER.get(first, first)


def test_there_are_enough_and_each_has_a_place() -> None:
    assert len(DEVIATIONS) >= 20
    for name, deviation in DEVIATIONS.items():
        assert name == deviation.name
        assert deviation.text
        assert touched(name), f"{name} touches no operation"
        assert set(deviation.wraps) <= set(REGISTRY) | set(INNER), f"{name} wraps what is not there"


@pytest.mark.parametrize("name", DEVIATIONS)
def test_each_fails_two_cases_of_every_operation_it_touches(name: str) -> None:
    """At its stage, and through each composed operation alone."""
    for op in touched(name):
        count = len(caught(name, op))
        if (name, op) in FEW:
            assert count < 2, f"{name} in {op} is no longer a gap: strike it off"
        elif (name, op) in INEXPRESSIBLE:
            assert count == 0, f"{name} can be expressed in {op}"
        else:
            assert count >= 2, f"{name} is caught in {op} by {sorted(caught(name, op))} alone"
    assert sum(len(caught(name, op)) for op in touched(name)) >= 2


@pytest.mark.parametrize("name", DEVIATIONS)
def test_each_is_recognised(name: str) -> None:
    """The diagnosis of a mutant names it; what else it names gives the same values on every case asked."""
    op = stage(name)
    asked = []
    for case in cases()[op]:
        answer = Answer(case, DTYPE, answers(name, op)[case.id])
        if all(len(o) == len(c.expected) for o, c in zip(answer.outputs, case.calls, strict=True)):
            asked.append((answer, case.id in caught(name, op)))
    found = diagnose.diagnose(op, asked, CLASS, None)
    assert name in found["names"], found["text"]
    for other in found["names"]:
        assert other == name or agree(name, other, [op]), f"{name} is not {other}"


def agree(name: str, other: str, ops: list[str]) -> bool:
    """Return whether two mutants give the same values, within the tolerance of the class, in all cases of some operations."""
    for op in ops:
        differs = caught(name, op) ^ caught(other, op)
        if differs:
            return False
        for case in cases()[op]:
            pair = zip(case.calls, answers(name, op)[case.id], answers(other, op)[case.id], strict=True)
            if not all(same(op, call, one, two) for call, one, two in pair):
                return False
    return True


def same(op: str, call: invoke.Call, one: invoke.Arrays, two: invoke.Arrays) -> bool:
    for output, expected in call.expected.items():
        if (output in one) != (output in two):
            return False
        if output not in one:
            continue
        if not (fits(one[output], expected) and fits(two[output], expected)):
            return False
        _, width = invoke.errors(op, call, output, expected, CLASS, DTYPE)
        near = np.abs(np.subtract(one[output], two[output], dtype=np.float64)) <= 2 * width
        if not np.all(near | (np.isnan(one[output]) & np.isnan(two[output]))):
            return False
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_two_agree_on_all_cases() -> None:
    """Except the ties above; one that is resolved is struck off."""
    equal = {
        frozenset({name, other})
        for name, other in combinations(DEVIATIONS, 2)
        if set(touched(name)) & set(touched(other)) and agree(name, other, sorted({*touched(name), *touched(other)}))
    }
    assert equal == set(TIES), f"agree: {sorted(map(sorted, equal))}"


def test_no_case_catches_nothing() -> None:
    """Except those without a value: they ask for a shape."""
    idle = []
    for op, found in cases().items():
        seen = set().union(*(caught(name, op) for name in DEVIATIONS if op in touched(name)))
        for case in found:
            empty = all(value.size == 0 for call in case.calls for value in call.expected.values())
            if case.id not in seen and not empty:
                idle.append(case.id)
    assert not idle


def test_parts_are_operations() -> None:
    for op, parts in PARTS.items():
        assert op in REGISTRY
        assert set(parts) <= set(REGISTRY) | set(INNER)
