"""
Asks a failing call once more, as the first call of a new process: if it passes there, an earlier call left something behind.

No known mistake and no option explains such failures, and the call alone does not repeat them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import judge
from ..errors import PosrefError
from ..model import Answer, Call, LoadedCase, Operation
from ..targets.base import Target
from .case_run import ask

HINT = (
    "Look for a table or a buffer that is kept from call to call: it must be made anew where an option, a shape or the dtype "
    "is another. Repeat the check with all cases."
)
UNEXPLAINED = "unexplained: no known mistake gives these values."
Pairs = Sequence[tuple[Operation, list[Answer]]]


@dataclass(frozen=True)
class Trial:
    """A failing case, what is asked of it in a new process, and its name in words."""

    case: LoadedCase
    alone: LoadedCase
    words: str


def tell_of_state(operations: Pairs, target: Target) -> None:
    """Say in the diagnosis of an operation that its failures depend on earlier calls, where a case shows it."""
    trials = [(o, trial) for o, answers in operations if (trial := _suspected(o, answers, operations)) is not None]
    new = target.again() if trials else None
    if new is None:
        return
    try:
        for operation, trial in trials:
            alone, again = _verdict(new, trial.alone, operation.dtype), _verdict(target, trial.case, operation.dtype)
            if (alone, again) == ("pass", "fail"):
                _tell(operation, trial.words)
    finally:
        new.close()


def _verdict(target: Target, case: LoadedCase, dtype: str) -> str:
    try:
        return ask(target, case, dtype).verdict
    except PosrefError:
        return "not-run"


def _suspected(operation: Operation, answers: Sequence[Answer], operations: Pairs) -> Trial | None:
    """
    Return the smallest failing call of an operation that a call before it may have changed; None without one.

    Where one mistake explains all that was answered there is no more to ask. Else calls in another dtype came before, or
    calls in sequence fail.
    """
    if operation.diagnosis is None or operation.diagnosis.get("whole"):
        return None
    failing = {c.id for c in operation.cases if c.verdict == "fail"}
    wrong = sorted((a for a in answers if a.case.id in failing), key=lambda a: _size(a.case.calls))
    single = [a.asked or a.case for a in wrong if a.case.kind == "value"]
    sequences = [a for a in wrong if a.case.kind == "sequence" and len(a.outputs) == len(a.case.calls)]
    earlier = [o for o, _ in operations if o.op == operation.op and o.dtype != operation.dtype]
    if single and (earlier or sequences):
        return Trial(single[0], single[0], single[0].id)
    if single or not sequences:
        return None
    first = sequences[0]
    for count, (call, outputs) in enumerate(zip(first.case.calls, first.outputs, strict=True), 1):
        if judge.compare(operation.op, call, outputs, operation.claim, operation.dtype) is not None:
            alone = replace(first.case, kind="value", calls=(call,), flags=())
            return Trial(first.case, alone, f"call {count} of {first.case.id}")
    return None


def _size(calls: Sequence[Call]) -> int:
    return sum(x.size for call in calls for x in call.expected.values())


def _tell(operation: Operation, words: str) -> None:
    found = dict(operation.diagnosis or {})
    told = str(found["text"]).removeprefix(UNEXPLAINED).strip()
    lead = f"failures depend on the calls before: {words} passes when it is the first call of a new process."
    text = f"{lead} In this run: {told}" if told else lead
    operation.diagnosis = found | {"text": text, "names": [], "explanations": [], "hint": HINT, "seen_in": ""}
