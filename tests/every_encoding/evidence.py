"""The evidence of an operation: cases of its own, what it leaves out, and the deviations that touch it."""

from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.every import lengths, second_cases, state_cases
from posref.conformance.evidence.every.facts import facts_of
from posref.conformance.evidence.order import deviations_touching, evidence_of

from .encoding import Encoding, part


@part()
def cases_are_of_the_operation_alone(encoding: Encoding) -> None:
    cases = list(evidence_of(encoding.op).cases())
    assert cases
    assert {case.op for case in cases} == {encoding.op}


@part()
def cases_that_are_left_out_would_be_made(encoding: Encoding) -> None:
    possible = {
        case.id.partition("/")[2] for module in (lengths, second_cases, state_cases) for case in module.possible(encoding.op)
    }
    assert facts_of(encoding.op).left_out <= possible


@part()
def deviations_near_an_operation_are_all_that_touch_it(encoding: Encoding) -> None:
    found = deviations_touching(encoding.op)
    assert found == tuple(deviation for deviation in DEVIATIONS.values() if deviation.touches(encoding.op))
