"""Failures that depend on earlier calls: a call that passes as the first one of a new process says so."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from posref.conformance import check
from posref.conformance.checks import case_run

KEPT = """
import posref

backend = "numpy"
KEPT = {{}}


def sliding_window(q, k, /, *, window, **options):
    window = KEPT.setdefault({key}, window)
    return posref.sliding_window(q, k, window=window, **options)
"""
ALONE = "posref.sliding_window(q, k, window=window + (window % 5 > 2), **options)"


@pytest.mark.thorough
@pytest.mark.parametrize(("key", "said"), [("window % 4", True), ("window", False)])
def test_what_a_call_keeps_for_others_is_told_as_a_state(key: str, said: bool, tmp_path: Path) -> None:
    file = tmp_path / "kept.py"
    file.write_text(KEPT.format(key=key), encoding="utf-8")
    wrong = [op for op in check(str(file)).operations if op.diagnosis]
    assert bool(wrong) == said
    for operation in wrong:
        assert operation.diagnosis["text"].startswith("failures depend on the calls before: sliding_window/")
        assert " passes when it is the first call of a new process." in operation.diagnosis["text"]
        assert (operation.diagnosis["names"], operation.diagnosis["hint"]) == ([], case_run.STATE_HINT)


@pytest.mark.thorough(dear=True)
def test_what_fails_alone_too_is_not_told_as_a_state(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    text = KEPT.format(key="window").replace("posref.sliding_window(q, k, window=window, **options)", ALONE)
    file.write_text(text, encoding="utf-8")
    (operation,) = [op for op in check(str(file)).operations if op.diagnosis]
    assert "calls before" not in operation.diagnosis["text"]


@pytest.mark.parametrize(("again", "said"), [("fail", True), ("pass", False)])
def test_a_failure_that_does_not_repeat_is_no_state(again: str, said: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the call passes when it is asked again in the process in which it failed, nothing depends on the calls before."""
    new = SimpleNamespace(close=lambda: None)
    target: Any = SimpleNamespace(again=lambda: new)
    operation: Any = SimpleNamespace(diagnosis={"text": "unexplained"}, dtype="float32")
    monkeypatch.setattr(case_run, "_suspected", lambda *given: SimpleNamespace(case=None, alone=None, words="the call"))
    monkeypatch.setattr(case_run, "_verdict", lambda asked, case, dtype: "pass" if asked is new else again)
    case_run.report_state([(operation, [])], target)
    assert ("depend on the calls before" in operation.diagnosis["text"]) == said
