"""The check of a Python target in a process of its own: only its complete report is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import Stopped, TargetError
from ..model import CaseResult, Operation
from ..reports.report import Report
from ..target.remote.apart import Apart

Watch = Callable[[str, Any], None]  # told "planned", "asking" and "answered" with what they are about


class Told:
    """Who follows a check: a function that is called with the id of every case as it begins."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.progress = progress

    def __call__(self, word: str, value: Any) -> None:
        """Pass on which case begins; and first how many there are, if the function has a method for that, `expect`."""
        if word == "planned":
            expect = getattr(self.progress, "expect", lambda total: None)
            expect(sum(len(operation.cases) for operation in value.operations))
        elif self.progress and word == "asking":
            self.progress(value[0])


def check_apart(target: Any, options: Mapping[str, Any], watch: Watch) -> Report:
    """
    Return the report of a check in another process.

    Where that ends too early the report has what was answered before, how it ended, and what was not asked.

    Raises
    ------
    TargetError
        If the process ends before the target is loaded.
    """
    if not isinstance(target, str):
        kind = "an adapter, module, module:object or file.py, unless --command or --outputs is given"
        msg = f"check: TARGET must be the name of {kind}; got {'none' if target is None else type(target).__name__}."
        raise TargetError(msg)
    sent = dict(options, target=target, suite=str(options["suite"].absolute()))
    work = Apart("check", sent, options["timeout"])
    heard = _Heard()
    try:
        for word, value in work.told():
            if word == "done" and isinstance(value, Report):
                return value
            heard(word, value)
            watch(word, value)
    except Stopped as stopped:
        return heard.ended(target, stopped)
    except KeyboardInterrupt:
        if heard.plan is None:
            raise
        return replace(heard.ended(target, Stopped("not-run", "interrupted")), complete=False)
    finally:
        work.close()
    return heard.ended(target, Stopped("crash", "ended without a report"))


class _Heard:
    """What was heard of a check so far."""

    def __init__(self) -> None:
        self.plan: Report | None = None
        self.results: dict[tuple[str, str], CaseResult] = {}
        self.asking: tuple[str, str] | None = None

    def __call__(self, word: str, value: Any) -> None:
        """Keep what was told."""
        if word == "planned":
            self.plan = value
        elif word == "asking":
            self.asking = tuple(value)
        elif word == "answered":
            self.results[value.id, value.dtype] = value

    def ended(self, target: str, stopped: Stopped) -> Report:
        """Return the report of a check that ended too early."""
        if self.plan is None:
            msg = f"{target}: could not be loaded: {_how(stopped)}."
            raise TargetError(msg) from stopped
        operations = [replace(o, cases=[self._result(c, stopped) for c in o.cases]) for o in self.plan.operations]
        known = {(case.id, case.dtype) for o in operations for case in o.cases}
        if self.asking is not None and self.asking not in known:  # a drawn call
            operations = [replace(o, cases=[*o.cases, *self._drawn(o, self.asking, stopped)]) for o in operations]
        return replace(self.plan, operations=operations)

    def _drawn(self, operation: Operation, at: tuple[str, str], stopped: Stopped) -> list[CaseResult]:
        """Return the result of a call that is no case of the suite, if it is of an operation."""
        if not at[0].startswith(f"{operation.op}/") or at[1] != operation.dtype:
            return []
        return [CaseResult(at[0], operation.op, "value", "core", at[1], stopped.verdict, message=_how(stopped))]

    def _result(self, case: CaseResult, stopped: Stopped) -> CaseResult:
        key = (case.id, case.dtype)
        at = self.asking or key  # the first case, if none was asked
        if key == at:
            self.asking = at
            return replace(case, verdict=stopped.verdict, message=_how(stopped))
        return self.results.get(key, replace(case, message=f"not asked: {stopped.verdict} at {at[0]}"))


def _how(stopped: Stopped) -> str:
    """Return how the work ended."""
    return f"its process {stopped}" if stopped.verdict == "crash" else str(stopped)
