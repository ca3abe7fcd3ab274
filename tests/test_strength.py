"""How strong the suite is, measured: every deviation is caught twice at its stage, and every case catches one."""

import json
import re
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from commands import run
from quality import record, recorded
from rich.console import Console
from sampling import few

from posref.conformance.diagnosis import strength
from posref.conformance.diagnosis.strength import Strength
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation
from posref.conformance.suite.reader import INSTALLED
from posref.conformance.suite.writer import copy

EVERY = 90


@cache
def some() -> dict[str, Deviation]:
    """Return a deviation of which much is known, and one in so many."""
    return {"sign-flipped": DEVIATIONS["sign-flipped"]} | dict(list(DEVIATIONS.items())[5::EVERY])


@cache
def measured() -> Strength:
    """Return the measurement with some deviations."""
    with patch.object(strength, "DEVIATIONS", some()):
        return strength.measure()


def shown(found: Strength, *, terminal: bool) -> str:
    """Return what is printed of a measurement."""
    out = StringIO()
    strength.show(found, Console(file=out, force_terminal=terminal, width=100))
    return out.getvalue()


@pytest.mark.thorough(dear=True)
def test_every_deviation_is_caught_and_every_case_catches_one() -> None:
    """By the record, of which `test_deviations` says that it is current."""
    at_stage = {name: recorded(name, strength.stage(name)) for name in DEVIATIONS}
    assert [name for name, cases in at_stage.items() if len(cases) < strength.LEAST] == []
    catching = frozenset[str]().union(*(recorded(name, op) for name in DEVIATIONS for op in strength.touched(name)))
    every = [id_ for of in record().values() for id_ in of["cases"]]
    assert [id_ for id_ in every if id_ not in catching] == []
    assert len(every) == measured().measured > 1000


@pytest.mark.thorough(dear=True)
def test_the_measurement_is_that_of_the_record() -> None:
    assert [line.name for line in measured().lines] == list(some())
    assert len(some()) >= 5
    assert not measured().weak
    assert replace(measured(), idle=()).exit_code == 0
    for line in measured().lines:
        assert line.caught == {op: len(recorded(line.name, op)) for op in strength.touched(line.name)}


def test_one_operation_of_any_suite_is_measured_alone(tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "suite", ("learned",))
    result = run("vectors", "strength", "--op", "learned", "--suite", tmp_path / "suite")
    assert result.exit_code == 0, result.output
    assert set(re.findall(r"[ ,:](\w+) \d+(?:,|$)", result.output, re.MULTILINE)) == {"learned"}
    assert f"cases: {len(record()['learned']['cases'])} (0 catch no mistake)" in result.output
    lacking = run("vectors", "strength", "--op", "rope", "--suite", tmp_path / "suite")
    assert lacking.exit_code == 2
    assert "has no core cases of 'rope'" in lacking.output


@pytest.mark.thorough
def test_the_record_of_some_deviations_is_a_part_of_the_whole() -> None:
    with patch.object(strength, "DEVIATIONS", some()):
        found = json.loads(strength.record())
    for op, of in record().items():
        assert found[op] == {"cases": of["cases"], "caught": {n: b for n, b in of["caught"].items() if n in some()}}


def test_it_is_a_record() -> None:
    record = json.loads(json.dumps(measured().to_json(), allow_nan=False))
    assert record["weak"] == []
    assert {case["case"] for case in record["catch_nothing"]} == {idle.case for idle in measured().idle}
    assert {"name": "sign-flipped", "stage": "apply_rope"}.items() <= record["deviations"][0].items()
    assert sum(record["not_measured"].values()) > 0


def test_what_cannot_be_measured_is_counted_by_its_reason() -> None:
    assert "refusals, which no mistake gives" in measured().apart
    assert "results without values" in measured().apart


@pytest.mark.thorough
def test_deviations_that_nothing_catches_are_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    names, asked = ["nothing", "nothing more"], list[str]()
    nothing = {name: Deviation(name, "nothing is wrong", {"learned": lambda function: function}) for name in names}
    monkeypatch.setattr(strength, "DEVIATIONS", nothing)
    found = strength.measure(asked.append)
    assert asked == [line.name for line in found.weak] == names
    assert found.exit_code == 1
    assert "weak nothing: 0 cases of learned catch it; 2 must" in shown(found, terminal=False)
    assert len(found.idle) == found.measured


def test_a_case_that_catches_nothing_is_reported_with_its_comment() -> None:
    idle = replace(measured(), idle=(strength.Idle("rope/half/small", "far positions"),))
    assert idle.exit_code == 1
    text = shown(idle, terminal=False)
    assert "catches nothing rope/half/small (far positions)" in text


@few(1, "terminal", [True, False])
def test_it_is_printed(terminal: bool) -> None:
    text = shown(measured(), terminal=terminal)
    assert "sign-flipped" in text
    assert "caught by fewer than 2 cases" in text
    assert ("\x1b[" in text) == terminal
    if not terminal:
        assert re.search(r"^[a-z0-9-]+: [a-z0-9_]+ \d+$", text, re.MULTILINE)
