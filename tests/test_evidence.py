"""An operation's evidence is in one file of its name, is of it alone, and is found without importing that of all others."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from posref.conformance.calls import bind
from posref.conformance.evidence import catalogue
from posref.conformance.evidence.catalogue import all_cases
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.every.drawn_cases import drawn_cases_of
from posref.conformance.evidence.every.facts import facts_of
from posref.conformance.evidence.index import evidence, evidence_of
from posref.conformance.evidence.tools.deviation import Deviation
from posref.conformance.model import Case, Flag
from posref.spec import REGISTRY

COUNTED = """
import posref.conformance.model as model
made = []
model.Case.__init__ = lambda self, *args, **options: made.append(args)
import posref.conformance.evidence.deviations
print(len(made))
"""


def test_flags_of_an_operation_are_in_no_case_of_another() -> None:
    own = {flag: op for op in REGISTRY for flag in getattr(evidence_of(op), "FLAGS", {})}
    others = [(case.id, flag) for case in all_cases() for flag in case.flags if own.get(flag, case.op) != case.op]
    assert not others, f"move these flags to conformance/evidence/shared: {others}"


def test_a_mistake_is_a_flag_of_the_cases_that_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says once what is wrong; a flag that is stated says it itself."""
    mistakes = tuple(
        Deviation(f"of-nobody-{name}", f"it is {name}", {}, seen_in=f"#{name}") for name in ("one", "two", "three")
    )
    cases = (Case("alibi/of-nobody", {}, {}, ("of-nobody-one", "of-nobody-two")),)
    stated = {"of-nobody-two": Flag("stated")}
    own = SimpleNamespace(cases=lambda: cases, DEVIATIONS=mistakes, FLAGS=stated)
    before = catalogue.all_flags()
    monkeypatch.setattr(catalogue, "evidence_of", lambda op: own)
    monkeypatch.setattr(catalogue, "evidence", lambda: (own,))
    monkeypatch.setattr(catalogue, "_of_mistakes", catalogue._of_mistakes.__wrapped__)
    found = {name: flag for name, flag in catalogue.all_flags().items() if name not in before}
    assert found == {"of-nobody-one": Flag("it is one", "#one"), "of-nobody-two": Flag("stated")}


def test_names_are_given_once() -> None:
    modules = evidence()
    assert sum(len(getattr(module, "DEVIATIONS", ())) for module in modules) == len(DEVIATIONS)
    flags = [name for module in modules for name in getattr(module, "FLAGS", {})]
    assert len(flags) == len(set(flags))


def test_the_order_of_deviations_is_that_of_names() -> None:
    own, shared = (
        [module.__name__.rpartition(".")[2] for module in evidence() if ("shared" in module.__name__) == of]
        for of in (False, True)
    )
    assert own == sorted(REGISTRY)
    assert shared == sorted(shared)
    names = [deviation.name for module in evidence() for deviation in getattr(module, "DEVIATIONS", ())]
    assert [*DEVIATIONS] == names


def test_a_drawn_case_has_the_sizes_of_the_arrays_that_it_gives() -> None:
    case = drawn_cases_of("kerple", "kerple-")
    given = case("far", "sign far", {"form": "power"}, {"k_positions": ((0, 257), (9, 65537))}, H=7, bits=24)
    assert given == Case("kerple/plain/far", {"form": "power"}, given.inputs, ("kerple-sign", "kerple-far"))
    assert given.inputs["k_positions"] == ((0, 257), (9, 65537))
    assert {name: np.shape(array) for name, array in given.inputs.items()} == {
        "q_positions": (4,), "k_positions": (2, 2), "r1": (7,), "r2": (7,)
    }  # fmt: skip
    assert all((array > 0).all() and (array * 2**6 % 1).any() for array in (given.inputs["r1"], given.inputs["r2"]))


GENERATED = [op for op in REGISTRY if facts_of(op).usual is not None]


def test_a_drawn_gradient_has_cotangents_of_the_shapes_of_the_results() -> None:
    """Of every operation that has generated calls, as `posref.conformance.new` begins one like it."""
    for op in GENERATED:
        case = drawn_cases_of(op)("rows", "term non-contiguous", kind="vjp", R=(2,), rows=True)
        assert (case.id, case.flags) == (f"{op}/gradient/rows", ("vjp-term", "non-contiguous"))
        positional, keywords = bind(op, {name: np.asarray(array) for name, array in case.inputs.items()}, case.params)
        found = REGISTRY[op].function(*positional, **keywords)
        shapes = [np.shape(result) for result in (found if isinstance(found, tuple) else (found,))]
        assert shapes == [case.cotangents[name].shape for name in REGISTRY[op].outputs], op


def test_importing_deviations_makes_no_case() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
