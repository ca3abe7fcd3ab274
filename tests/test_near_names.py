"""Of mistakes that give the same values in all stored cases, fresh calls leave the one that an implementation has."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sample import stored

from posref.conformance import Unsupported, check
from posref.conformance.calls import parameters_of
from posref.conformance.diagnosis import explanation, strength
from posref.conformance.diagnosis.hypotheses import Meter, Question, predict
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.index import deviations_touching
from posref.conformance.evidence.tools.deviation import Deviation
from posref.conformance.model import Answer, Call
from posref.spec import REGISTRY


def key(call: Call) -> str:
    """Return a call as a key: its options, and the bits of its arrays."""
    arrays = {n: (x.shape, np.asarray(x, dtype=np.float64).tobytes()) for n, x in sorted(call.inputs.items())}
    return repr((sorted((n, repr(v)) for n, v in call.params.items()), arrays))


def refused(op: str, a: Deviation, b: Deviation) -> set[str]:
    """Return the stored calls on which two mistakes differ."""
    calls = [call for case in stored(op) for call in case.calls if not call.cotangents]
    pairs = zip(calls, predict(a, op, calls), predict(b, op, calls), strict=True)
    return {key(call) for call, x, y in pairs if any(not np.allclose(x[n], y.get(n, np.inf), rtol=1e-6) for n in x)}


def answering(op: str, mistake: Deviation, refused: set[str], only: set[str] | None = None) -> SimpleNamespace:
    """Return an implementation with a mistake, in some calls only if they are given, that refuses others."""
    domains, arrays_of = REGISTRY[op].domains.keys(), REGISTRY[op].arrays.keys()
    function, names = mistake.operations()[op], [*parameters_of(mistake.operations()[op])]

    def wrong(*arrays: Any, **options: Any) -> Any:
        given = {**dict(zip(names, arrays, strict=False)), **options}
        asked = Call({n: given[n] for n in given.keys() & domains}, {n: given[n] for n in given.keys() & arrays_of})
        if key(asked) in refused:
            raise Unsupported
        chosen = REGISTRY[op].function if only is not None and key(asked) not in only else function
        return np.asarray(chosen(*arrays, **options), dtype=np.float32)

    return SimpleNamespace(**{op: wrong}, __name__="narrow")


OP, NAMES = "t5_bias", ("t5-no-log", "t5-range-of-buckets")


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_fresh_calls_leave_one_of_two_names(name: str) -> None:
    calls = refused(OP, *(DEVIATIONS[each] for each in NAMES))
    implementation = answering(OP, DEVIATIONS[name], calls)
    before, after = (check(implementation, op=OP, dtype="float32", experiments=n).operations[0].diagnosis for n in (0, 500))
    assert before is not None
    assert after is not None
    assert sorted(before["explanations"]) == [[each] for each in NAMES]
    assert after["explanations"] == [[name]]
    assert "These give the same values" not in after["text"]


@pytest.mark.thorough(dear=True)
def test_a_name_that_fresh_calls_refute_is_told_with_its_exceptions() -> None:
    """An implementation that is wrong in stored calls alone."""
    mistake, calls = DEVIATIONS["alibi-sign"], {key(call) for case in stored("alibi") for call in case.calls}
    implementation = answering("alibi", mistake, set(), only=calls)
    before, after = (
        check(implementation, op="alibi", dtype="float32", experiments=n).operations[0].diagnosis for n in (0, 500)
    )
    assert before is not None
    assert after is not None
    assert before["names"] == ["alibi-sign"]
    assert before["text"].startswith("Matches the reference if")
    assert " pass" in after["text"].partition("But ")[2]


@pytest.mark.parametrize("wrong_alone", [False, True])
def test_a_mistake_in_a_place_goes_if_a_further_call_is_wrong_otherwise(wrong_alone: bool) -> None:
    case = next(c for c in strength.cases(ops=("rms_norm",))[0]["rms_norm"] if c.id == "rms_norm/weight/24-bits")
    mistake = next(d for d in deviations_touching("rms_norm") if d.name == "norm-weight-missing")
    shown = strength.outputs(mistake, case)
    for outputs, left in ((shown, 1), ([{n: -x for n, x in call.items()} for call in shown], 0)):
        answer = Answer(case, "float32", outputs)
        question = Question("rms_norm", answer, Meter(), failed=True, claim="angle32")
        known = explanation._Known(further=lambda _, answer=answer: [(answer, True)])
        assert len(explanation._surviving([(mistake,)], [question], known, wrong_alone=wrong_alone)) == left
