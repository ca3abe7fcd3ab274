"""Makes the calls that records describe, and keeps their outcomes, within a budget of calls and of new processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from posref.scaling import Scaling

from .. import judge
from ..calls import ASKED, class_of_claim, returns_reals
from ..errors import Failure, PosrefError, Stopped, Unsupported
from ..model import Arrays, Call, LoadedCase
from ..proof.evaluation import is_askable, placeholder, result_placeholders
from ..proof.live_truth import Sample
from ..targets.base import Target
from ..targets.invocation import text_of
from .records import Features, count_of_work, make

REFUSED, RIGHT, WRONG, ANSWERED, NO_CALL, SPENT = "refused", "right", "wrong", "answered", "no such call", "not asked"
NO_VALUES = "no values"  # the outcome of a call that returns none: it says nothing
ENDED = ("crash", "timeout", "protocol")  # outcomes after which nothing can be asked of this process
ANY_ANSWER = (RIGHT, WRONG, ANSWERED)
RESULTS = 1 << 16  # values of a call's results, at most
LARGE = 10_000  # numbers of a call, for each of which it counts as one more
PROCESSES = 6  # new ones, after a call that ended one
ON_BALLS = 1 << 14  # values of a call that are proved


def key_of(record: Features) -> str:
    """Return a record as a key."""
    return repr(sorted(record.items()))


@dataclass
class Asker:
    """
    A target for calls of one operation in one dtype.

    Every record is asked once; `outcome` tells whether an answer is right, and `answer` alone whether there is one, which
    costs less. After a call that ended its process another one is started, `PROCESSES` times at most.
    """

    target: Target
    op: str
    dtype: str
    budget: int
    progress: Callable[[str], None] | None = None
    calls: int = 0
    processes: int = 0
    known: dict[str, tuple[Features, str]] = field(default_factory=dict)
    made: dict[str, Call | None] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)  # what was said of refused and wrong calls
    others: list[Target] = field(default_factory=list)  # processes that were started here
    said: str = ""  # of the last call
    sample: Sample | None = None  # what was judged of it
    outputs: Arrays = field(default_factory=dict)  # what the last call that was answered gave

    def call(self, record: Features) -> Call | None:
        """Return the call of a record, with nothing that is expected; None where there is none."""
        key = key_of(record)
        if key not in self.made:
            self.made[key] = make(self.op, record)
        return self.made[key]

    def whole(self, record: Features) -> Call | None:
        """Return the call of a record with results of the shapes that are expected; None where there is none in this dtype."""
        call = self.call(record)
        return None if call is None or count_of_work(self.op, record) > RESULTS else self.filled(call)

    def filled(self, call: Call) -> Call | None:
        """Return a call with results of the shapes that are expected; None where there are none in this dtype."""
        if returns_reals(self.op) and not is_askable(self.op, call.inputs, {}, self.dtype):
            return None
        try:
            expected = result_placeholders(self.op, call.inputs, call.params)
        except (ValueError, IndexError, ZeroDivisionError, OverflowError):  # the definition refuses it
            return None
        return replace(call, expected=expected) if sum(x.size for x in expected.values()) <= RESULTS else None

    @property
    def is_spent(self) -> bool:
        """Whether no more calls are allowed."""
        return self.calls >= self.budget

    def is_known(self, record: Features) -> bool:
        """Return whether a record's call was made."""
        return key_of(record) in self.known

    def answer(self, record: Features) -> str:
        """Return whether a call is answered or refused, or how it ended."""
        return self._outcome(record, judged=False)

    def outcome(self, record: Features) -> str:
        """Return whether a call is answered rightly or wrongly, or refused, or how it ended."""
        return self._outcome(record, judged=True)

    def _outcome(self, record: Features, *, judged: bool) -> str:
        key = key_of(record)
        before = self.known.get(key, (record, ""))[1]
        if before and not (judged and before == ANSWERED):
            return before
        call = self.whole(record)
        if call is None:
            self.known[key] = record, NO_CALL
            return NO_CALL
        if self.is_spent:
            return SPENT
        self.calls += 1 + sum(x.size for x in (*call.inputs.values(), *call.expected.values())) // LARGE
        outcome = self.asked(call, record.get("memory", ""), judged=judged)
        if outcome != SPENT:
            self.known[key] = record, outcome
            self.messages[key] = self.said
        return outcome

    def case(self, call: Call, form: str = "") -> LoadedCase:
        """Return a call as a case."""
        return LoadedCase(f"{ASKED.format(self.op)}{self.calls}", self.op, "value", "core", "", (self.dtype,), (call,), form)

    def asked(self, call: Call, form: str = "", *, judged: bool = True, target: Target | None = None) -> str:
        """Return what comes of a call, of this target or of another process of it; what it says is in `said`."""
        self.said, self.sample = "", None
        case = self.case(call, form)
        if self.progress:
            self.progress(case.id)
        here = target or self.target
        if any(isinstance(s, Scaling) and type(s).__name__ not in here.scalings for s in call.params.values()):
            self.said = "its scalings do not list it"
            return REFUSED
        try:
            outputs = here.run(case, call, self.dtype)
        except Unsupported as error:
            self.said = text_of(error) or "not implemented"
            return REFUSED
        except Failure as failure:
            self.said = text_of(failure)
            return WRONG
        except Stopped as stopped:
            self.said = text_of(stopped)
            if stopped.verdict == "error" and call.is_degenerate:
                return REFUSED
            if here is not self.target or stopped.verdict not in (*ENDED, "not-run"):
                return stopped.verdict if stopped.verdict in (*ENDED, "error") else SPENT
            started = self._start_again()
            if stopped.verdict == "not-run" and started:  # an earlier call had ended the process
                return self.asked(call, form, judged=judged)
            return stopped.verdict if stopped.verdict in ENDED else SPENT
        if not any(x.size for x in call.expected.values()):
            return NO_VALUES
        self.outputs = outputs
        return self.judged(call, outputs) if judged else ANSWERED

    def judged(self, call: Call, outputs: Any) -> str:
        """Return whether results of a call are right."""
        claim = class_of_claim(self.op, self.target.claims[self.dtype])
        bare, whole = replace(call, expected={}), {n: placeholder(x, x.shape) for n, x in call.expected.items()}
        judgement = judge.judge(self.op, bare, outputs, claim, self.dtype, truth="live", balls=ON_BALLS, whole=whole)
        self.said, self.sample = str(judgement.failures[0]) if judgement.failures else "", judgement.sample
        return {"pass": RIGHT, "fail": WRONG}.get(judgement.verdict, "not judged")

    def _start_again(self) -> bool:
        """Start another process for the calls that follow; without one no more calls are made."""
        other = self.target.again() if self.processes < PROCESSES else None
        self.processes += 1
        if other is None:
            self.budget = 0
            return False
        self.target = other
        self.others.append(other)
        return True

    def again(self, records: list[Features]) -> list[str]:
        """Return what comes of the calls of records in a new process."""
        calls = [(self.whole(record), record.get("memory", "")) for record in records]
        return self.repeated([(call, form) for call, form in calls if call is not None])

    def repeated(self, calls: Sequence[tuple[Call, str]]) -> list[str]:
        """Return what comes of calls in a new process, the last one first; in this one where there is no other."""
        try:
            new = self.target.again() if calls else None
        except PosrefError:
            new = None
        here = self.target if new is None else new
        try:
            return [self.asked(call, form, target=here) for call, form in reversed(calls)][::-1]
        finally:
            if new is not None:
                new.close()

    def close(self) -> None:
        """Leave no process behind that was started here."""
        for other in self.others:
            other.close()
