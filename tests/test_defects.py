"""Implementations with a planted defect: every one is found, and its diagnosis is right or "unexplained", never wrong."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from planting import FOLDER, Defect
from quality import DEFECTS, VERDICTS, Row, diagnosed, mistaken, named, operations, report_on, row
from reporting import of_the_example
from sampling import everything, few, share
from sources import assert_stands_alone

from posref.conformance import check
from posref.conformance.diagnosis.strength import stage
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.tools.deviation import together

ROOT = Path(__file__).parents[1]
MISTAKES = [(name, False) for name in DEVIATIONS]  # in the reference, or in plain code of the operation that it wraps
MISTAKES += [(name, True) for name, deviation in DEVIATIONS.items() if stage(name) in deviation.wraps]
UNNAMED = (  # of the reference in float32 alone: its rounding is further from float64 than a search allows
    "cope-shares-exchanged", "hierarchical-alpha-fixed", "kerple-clamped", "linear-elu", "sandwich-multiplied", "sine-2d-eps",
    "sine-2d-offset-half",
)  # fmt: skip
GENERATE = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "generate.py")))


@pytest.mark.thorough
@few(2, "defect", share(sorted(DEFECTS, key=lambda defect: len(operations(defect)))), ids=lambda defect: defect.__name__)
def test_found_and_explained(defect: type[Defect]) -> None:
    """A defect of several registered mistakes is named by them, and one that the registry lacks is never called another."""
    report, found = report_on(defect), row(defect)
    assert found.found
    assert report.exit_code == 1
    assert found.verdict != "wrong", f"{found.defect} is not {found.called}"
    said = " ".join(op.diagnosis["text"] for op in report.operations if op.diagnosis is not None)
    assert found.verdict == "named" if defect.NAMES else defect.SAID in said, said


@few(2, ("name", "plain"), share(MISTAKES, part=0.5))
def test_a_registered_mistake_is_found_and_called_nothing_else(name: str, plain: bool) -> None:
    """In float32. Plain code shares nothing with the reference, and may lack the word that the mistake needs."""
    op, implementation = mistaken(name, plain=plain)
    report = check(implementation, op=op, dtype="float32")
    (operation,) = report.operations
    assert report.failures or (plain and operation.counts["unsupported"])
    found = operation.diagnosis or {"explanations": [], "text": ""}
    assert not found["explanations"] or any(name in names for names in found["explanations"]), found["text"]
    assert plain or name in UNNAMED or [name] in found["explanations"], found["text"]


def test_there_are_doubles_and_defects_outside_the_registry() -> None:
    assert len(DEFECTS) >= 100
    assert sum(is_double(defect) for defect in DEFECTS) >= 18
    assert sum(not defect.NAMES for defect in DEFECTS) >= 80
    assert sum(bool(defect.SAID) for defect in DEFECTS) >= 19


def is_double(defect: type[Defect]) -> bool:
    """Return whether several deviations are planted at once."""
    return any(isinstance(names, tuple) and len(names) > 1 for names in defect.NAMES)


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.py")), ids=lambda file: str(file.relative_to(FOLDER)))
def test_a_file_of_defects_imports_nothing_of_posref(file: Path) -> None:
    assert_stands_alone(file)


def test_a_defect_says_what_it_is() -> None:
    """By a name of its own, in the words of the registry, and in a sentence of its docstring with its source."""
    assert len({defect.__name__ for defect in DEFECTS}) == len(DEFECTS)
    for defect in DEFECTS:
        assert defect.DEFECT, defect
        assert defect.__doc__, defect
        assert operations(defect), defect
        planted = (names if isinstance(names, tuple) else (names,) for names in defect.NAMES)
        assert {name for names in planted for name in names} <= set(DEVIATIONS), defect


@everything
@pytest.mark.thorough
def test_the_page_in_the_docs_is_what_is_measured() -> None:
    """But for what it says of the registry's own mutants: see `test_deviations`."""
    page = GENERATE.DIAGNOSIS.read_text(encoding="utf-8")
    of_mutants = page.partition(" counted separately.\n")[2].partition("\n\n")[0]
    assert page == GENERATE.diagnosis(of_mutants), "python docs/generate.py --measure"


def test_verdicts_are_judged_as_they_say() -> None:
    """A wrong name is wrong whatever else is right; a part is no whole."""
    planted = (frozenset({"a", "b"}), frozenset({"c"}))

    def verdict(**called: tuple[frozenset[str], ...]) -> str:
        return Row("a defect", "", planted, found=True, called=called).verdict

    a, b, c, d = (frozenset({name}) for name in "abcd")
    assert verdict(rope=(a | b,)) == verdict(rope=(d, c)) == verdict(apply_rope=(a,), rope_table=(b,)) == "named"
    assert verdict(rope=(a,), rope_table=()) == "partly named"
    assert verdict(rope=()) == verdict() == "unexplained"
    assert verdict(rope=(d,)) == verdict(rope=(c,), rope_table=(d,)) == verdict(rope=(a | d,)) == "wrong"
    assert {"named", "partly named", "told", "unexplained", "wrong"} == set(VERDICTS)


@pytest.mark.thorough(dear=True)
def test_the_first_example_is_explained_by_its_first_wrong_stage() -> None:
    report = of_the_example()
    broken = {op.op: op for op in report.operations if op.diagnosis is not None}
    assert set(broken) == {"rope_table", "rope"}
    for operation in broken.values():
        assert operation.first_failing_position == 2049
        assert operation.diagnosis["names"] == ["positions-float16"]
        assert "first failure at position 2049" in operation.diagnosis["text"]
    assert "first wrong stage is rope_table" in str(broken["rope"].diagnosis)


@pytest.mark.thorough(dear=True)
def test_a_stage_says_which_pair_it_is() -> None:
    """Each stage has a deviation of its own; what is composed of them has both."""
    report = report_on(named("stages_each_wrong"))
    said = {op.op: op.diagnosis["explanations"] for op in report.operations if op.diagnosis}
    assert said["rope_frequencies"] == [["inv-freq-bfloat16"]]
    assert said["apply_rope"] == [["in-place-update"]]
    assert [sorted(names) for names in said["rope"]] == [["in-place-update", "inv-freq-bfloat16"]]


@pytest.mark.thorough(dear=True)
def test_no_pair_is_named_where_one_is_enough() -> None:
    """Two deviations of which one has no effect in an operation are called by the other alone."""
    pair = together(DEVIATIONS["sign-flipped"], DEVIATIONS["x-through-bfloat16"])
    said = {op: [sorted(names) for names in diagnosed(pair, op)["explanations"]] for op in ("rotation_matrix", "apply_rope")}
    assert {len(names) for names in said["rotation_matrix"]} == {1}
    assert said["apply_rope"] == [["sign-flipped", "x-through-bfloat16"]]
