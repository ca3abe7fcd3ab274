"""A call that no stored case has, put to a target and judged live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..calls import held_to
from ..errors import Failure, Stopped, Unsupported
from ..model import Call, CaseResult, LoadedCase
from ..target.base import Target
from .asking import asked_in
from .traits import Traits

Watch = Callable[[str, Any], None]


def quietly(word: str, value: Any) -> None:
    """Tell nobody."""


@dataclass
class Asker:
    """A target that can still be asked, and what it said to drawn calls of one operation."""

    target: Target
    op: str
    dtype: str
    answered: tuple[Traits, ...] = ()  # what the stored cases have that it answered
    watch: Watch = quietly  # is told what is asked
    results: dict[str, CaseResult] = field(default_factory=dict)
    right: list[tuple[Call, ...]] = field(default_factory=list)  # what it answered, and rightly

    def ask(self, name: str, *calls: Call) -> CaseResult | None:
        """
        Return the verdict of drawn calls, asked in order as one case; each name is asked once.

        None where nothing can be said: results are in files, or the class has no single answer.
        """
        if self.target.kind == "outputs":
            return None
        if name not in self.results:
            found = self._asked(name, calls)
            if found is None:
                return None
            self.results[name] = found
            if found.verdict == "pass":
                self.right.append(calls)
        return self.results[name]

    def _asked(self, name: str, calls: tuple[Call, ...]) -> CaseResult | None:
        from ..judge import judge
        from ..proof.running import plain

        expected = [replace(c, expected=plain(self.op, c.inputs, c.params), widths={}, computed={}) for c in calls]
        kind = "value" if len(calls) == 1 else "sequence"
        case = LoadedCase(name, self.op, kind, "core", ("drawn",), "", (self.dtype,), tuple(expected))
        result = CaseResult(name, self.op, kind, "core", self.dtype, "pass", flags=case.flags)
        if not asked_in(case, self.dtype):
            return None
        claim = held_to(self.op, self.target.claims[self.dtype])
        self.watch("asking", [name, self.dtype])
        try:
            self.target.begin(case)
            outputs = [self.target.run(case, call, self.dtype) for call in case.calls]
        except Unsupported as error:
            return replace(result, verdict="unsupported", message=str(error) or "not implemented")
        except Failure as failure:
            return replace(result, verdict="fail", message=str(failure))
        except Stopped as stopped:
            return replace(result, verdict=stopped.verdict, message=str(stopped))
        for call, given in zip(case.calls, outputs, strict=True):
            judgement = judge(self.op, replace(call, expected={}), given, claim, self.dtype, truth="live")
            if judgement.failures:
                return replace(result, verdict="fail", message=str(judgement.failures[0]))
            if judgement.verdict != "pass":
                return None
        return result
