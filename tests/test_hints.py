"""Every deviation says what to look at, in one or two short sentences, and no sentence is typed twice."""

import ast
from collections import Counter
from pathlib import Path

from posref.conformance import evidence
from posref.conformance.evidence.deviations import DEVIATIONS

LONGEST = 130  # characters: a line of a report, and a bit


def test_every_deviation_has_a_hint() -> None:
    missing = [name for name, deviation in DEVIATIONS.items() if not deviation.hint]
    assert not missing, f"add hint=... to these deviations: {missing}"


def test_hints_are_short_sentences() -> None:
    for name, deviation in DEVIATIONS.items():
        assert len(deviation.hint) <= LONGEST, f"the hint of {name} has {len(deviation.hint)} characters, over {LONGEST}"
        assert deviation.hint != deviation.text, f"the hint of {name} is its text"


def test_no_hint_is_typed_twice() -> None:
    hints = {deviation.hint for deviation in DEVIATIONS.values()}
    typed = Counter(
        node.value
        for file in Path(str(evidence.__file__)).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and node.value in hints
    )
    twice = [hint for hint, count in typed.items() if count > 1]
    assert not twice, f"name these once, in the file or in conformance/evidence/tools/hints.py: {twice}"
