"""Every deviation says what to look at, in one or two short sentences, and no sentence is typed twice."""

import ast
from collections import Counter
from pathlib import Path

from posref.conformance import deviations
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.deviations.hints import HINTS

LONGEST = 130  # characters: a line of a report, and a bit


def test_every_deviation_has_a_hint() -> None:
    missing = [name for name, deviation in DEVIATIONS.items() if not deviation.hint]
    assert not missing, f"add hint=... to these deviations, or their names to conformance/deviations/hints.py: {missing}"


def test_hints_are_short_sentences() -> None:
    for name, deviation in DEVIATIONS.items():
        assert len(deviation.hint) <= LONGEST, f"the hint of {name} has {len(deviation.hint)} characters, over {LONGEST}"
        assert deviation.hint != deviation.text, f"the hint of {name} is its text"


def test_shared_hints_belong_to_deviations_that_have_none_of_their_own() -> None:
    unknown = set(HINTS) - set(DEVIATIONS)
    assert not unknown, f"conformance/deviations/hints.py names what is no deviation: {sorted(unknown)}"
    own = {d.name: d.hint for module in deviations.MODULES for d in module.DEVIATIONS if d.hint}
    assert not set(own) & set(HINTS), "these have a hint of their own and a shared one"


def test_no_hint_is_typed_twice() -> None:
    hints = {deviation.hint for deviation in DEVIATIONS.values()}
    typed = Counter(
        node.value
        for file in Path(str(deviations.__file__)).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and node.value in hints
    )
    twice = [hint for hint, count in typed.items() if count > 1]
    assert not twice, f"put these into conformance/deviations/hints.py, once, with the names that share them: {twice}"
