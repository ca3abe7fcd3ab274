"""What an operation is asked, it is asked twice: else code that lacks it cannot be told from code that fails it."""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from sample import stored

from posref.conformance.calls import positions_of
from posref.conformance.checks.scope import is_fixed
from posref.conformance.evidence.every.made_calls import has_one_position, is_bounded
from posref.conformance.model import LoadedCase
from posref.conformance.traits import traits_of
from posref.spec import REGISTRY


@cache
def cases() -> tuple[LoadedCase, ...]:
    return tuple(case for op in REGISTRY for case in stored(op))


def words(case: LoadedCase) -> set[tuple[str, Any]]:
    """Return what a case asks, but for ranks, and numbers of which any other than the one answered explains a refusal."""
    found = traits_of(case, "float32").words.items()
    once = ("dtype", "rank", "axes")
    return {(axis, word) for axis, had in found if axis not in once and not is_fixed(case.op, axis) for word in had}


def test_nothing_is_asked_once() -> None:
    counts = Counter((case.op, *pair) for case in cases() if case.kind != "reject" for pair in words(case))
    assert len(counts) > 1000
    single = [f"{op}: {what}" for (op, *what), count in counts.items() if count == 1]
    assert not single, f"write another case in conformance/evidence for each of these: {single}"


def test_every_operation_with_tokens_has_long_and_distant_cases() -> None:
    longest, farthest = Counter[str](), Counter[str]()
    for case in cases():
        for call in case.calls:
            sizes = [size for x in call.inputs.values() for size in x.shape]
            longest[case.op] = max(longest[case.op], *sizes, 0)
            farthest[case.op] = max(
                farthest[case.op], *(int(np.max(np.abs(call.inputs[n]), initial=0)) for n in positions_of(case.op)), 0
            )
    tokens = {
        op
        for op, record in REGISTRY.items()
        if any({"T", "Q", "*P"} & {*axes.shape.split()} for axes in record.arrays.values())
    }
    assert {op for op in tokens if longest[op] < 129} == {op for op in tokens if has_one_position(op)}
    assert {op for op in REGISTRY if positions_of(op) and farthest[op] < 2**17} <= {op for op in REGISTRY if is_bounded(op)}


def test_no_smoke_case_is_answered_by_counting() -> None:
    smoke = [case for case in cases() if case.tier == "smoke"]
    assert len({case.op for case in smoke}) == len(smoke) == len(REGISTRY)
    for case in smoke:
        for name in positions_of(case.op):
            p = case.calls[0].inputs[name]
            counted = np.broadcast_to(np.arange(p.shape[-1]) if p.ndim else 0, p.shape)
            assert not np.array_equal(p, counted), (case.id, name)
