"""The evidence of an operation: cases of its own, and the deviations that touch it."""

import numpy as np

from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.index import deviations_touching, evidence_of

from .encoding import Encoding, part


@part()
def cases_are_of_the_operation_alone(encoding: Encoding) -> None:
    cases = list(evidence_of(encoding.op).cases())
    assert cases
    assert {case.op for case in cases} == {encoding.op}


@part()
def stored_cases_are_those_of_the_evidence(encoding: Encoding) -> None:
    """The suite was built after the last change to a case."""
    stored, built = {case.id: case for case in encoding.stored}, {case.id: case for case in encoding.built}
    remedy = f"posref vectors build conformance/vectors --op {encoding.op}"
    assert stored.keys() == built.keys(), f"{sorted(stored.keys() ^ built.keys())}: {remedy}"
    for name, case in built.items():
        for call, kept in zip(case.calls, stored[name].calls, strict=True):
            assert dict(call.params) == dict(kept.params), f"options of {name}: {remedy}"
            for given, found in ((call.inputs, kept.inputs), (case.cotangents, kept.cotangents)):
                assert given.keys() == found.keys(), f"arrays of {name}: {remedy}"
                assert all(_equal(np.asarray(x), found[n]) for n, x in given.items()), f"arrays of {name}: {remedy}"


def _equal(given: np.ndarray, found: np.ndarray) -> bool:
    return given.shape == found.shape and np.array_equal(given, found, equal_nan=found.dtype.kind == "f")


@part()
def deviations_near_an_operation_are_all_that_touch_it(encoding: Encoding) -> None:
    found = deviations_touching(encoding.op)
    assert found == tuple(deviation for deviation in DEVIATIONS.values() if deviation.touches(encoding.op))
