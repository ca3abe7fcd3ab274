"""An operation's evidence is in one file of its name, is of it alone, and is found without importing that of all others."""

import json
import subprocess
import sys

import numpy as np

from posref.conformance.calls import bind
from posref.conformance.evidence import catalogue
from posref.conformance.evidence.catalogue import cases_of
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.every.drawn_cases import drawn_cases_of
from posref.conformance.evidence.index import evidence
from posref.conformance.model import FORMS, STATES, Case
from posref.conformance.suite.reader import INSTALLED
from posref.spec import REGISTRY

COUNTED = """
import posref.conformance.model as model
made = []
model.Case.__init__ = lambda self, *args, **options: made.append(args)
import posref.conformance.evidence.deviations
print(len(made))
"""


def test_there_is_a_case_of_every_form_and_state() -> None:
    cases = [*cases_of("rope"), *cases_of("apply_rope")]
    assert {case.form for case in cases} == {"", *FORMS}
    assert {case.state for case in cases} == {"", *STATES} - {"still"}


def test_the_list_of_mistakes_says_of_each_what_was_measured() -> None:
    """`flags.json` of the installed suite; `python docs/generate.py` writes it when cases or mistakes have changed."""
    assert json.loads((INSTALLED / "flags.json").read_bytes()) == catalogue.mistakes()
    record = {"rope": {"cases": ["a", "b", "c"], "caught": {"sign-flipped": "5"}}}
    found = catalogue.mistakes(record)
    assert found["sign-flipped"]["cases"] == {"rope": 2}
    assert found["positions-int8"] == {"catches": "positions overflow int8", "seen_in": "", "cases": {}}


def test_names_are_given_once() -> None:
    modules = evidence()
    assert sum(len(getattr(module, "DEVIATIONS", ())) for module in modules) == len(DEVIATIONS)


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
    case = drawn_cases_of("kerple")
    given = case("far", {"form": "power"}, {"k_positions": ((0, 257), (9, 65537))}, H=7, bits=24)
    assert given == Case("kerple/plain/far", {"form": "power"}, given.inputs)
    assert given.inputs["k_positions"] == ((0, 257), (9, 65537))
    assert {name: np.shape(array) for name, array in given.inputs.items()} == {
        "q_positions": (4,), "k_positions": (2, 2), "r1": (7,), "r2": (7,)
    }  # fmt: skip
    assert all((array > 0).all() and (array * 2**6 % 1).any() for array in (given.inputs["r1"], given.inputs["r2"]))


def test_drawn_numbers_are_not_their_own_mirror_image() -> None:
    """As three numbers of 8 bits are once in 255 times."""
    case = drawn_cases_of("kerple")
    rates = [case(f"{k}", {"form": "log"}, H=3).inputs["r1"].tolist() for k in range(1000)]
    assert not [of for of in rates if of == of[::-1]]


def test_a_drawn_gradient_has_cotangents_of_the_shapes_of_the_results() -> None:
    """Of every operation, as `posref.conformance.new` begins one like it."""
    for op in REGISTRY:
        case = drawn_cases_of(op)("rows", form="non-contiguous", kind="vjp", R=(2,), rows=True)
        assert (case.id, case.form) == (f"{op}/gradient/rows", "non-contiguous")
        positional, keywords = bind(op, {name: np.asarray(array) for name, array in case.inputs.items()}, case.params)
        found = REGISTRY[op].function(*positional, **keywords)
        shapes = [np.shape(result) for result in (found if isinstance(found, tuple) else (found,))]
        assert shapes == [case.cotangents[name].shape for name in REGISTRY[op].outputs], op


def test_importing_deviations_makes_no_case() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
