"""Runs one case on a target and judges the answer. A failing call runs once more in a new process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

from posref.scaling import Scaling

from ..accuracy import ROUNDING, UNIT
from ..calls import class_of_claim, ladder, makes_constants, returns_reals
from ..errors import Failure, PosrefError, Stopped, Unsupported
from ..evidence.every.kernel_cases import GROUP
from ..judge import compare, judge
from ..model import TABLE_FORMS, Answer, Call, CaseResult, LoadedCase, Operation
from ..proof.evaluation import moved_by_trigonometry
from ..proof.live_truth import Sample, choose
from ..targets.base import Target
from ..targets.invocation import UNSTEADY, text_of
from ..vocabulary.axes import Budget, rows_of

TIER = GROUP  # the kernel tier: its cases are made when they are asked, and judged live, on some rows where they are large
FEW = Budget(values=1 << 13, terms=1 << 17)  # of a case, with which the diagnosis tries hypotheses
ON_BALLS = 1 << 14  # values of a case that are proved: those of all cases together take seconds
STATE_HINT = (
    "Look for a table or a buffer that is kept from call to call: it must be made anew where an option, a shape or the dtype "
    "is another. Repeat the check with all cases."
)
UNEXPLAINED = "unexplained: no known mistake gives these values."
Pairs = Sequence[tuple[Operation, list[Answer]]]


def asked_dtypes(target: Target, op: str) -> tuple[str, ...]:
    """Return the dtypes in which to call an operation: constants never below float32, integers and masks once."""
    if not returns_reals(op):
        return target.dtypes[:1]
    if makes_constants(op):
        return tuple(dict.fromkeys("float32" if d in UNIT else d for d in target.dtypes))
    return target.dtypes


def asked_in(case: LoadedCase, dtype: str) -> bool:
    """Return whether a case runs in a dtype; integers, masks and invalid calls run in any."""
    return case.kind == "reject" or dtype in case.dtypes or not returns_reals(case.op)


def cases_in(target: Target, cases: Iterable[LoadedCase], dtype: str) -> list[LoadedCase]:
    """Return the cases to run in a dtype; state cases run only in the most precise one."""
    widest = is_widest(target, dtype)
    return [case for case in cases if asked_in(case, dtype) and (widest or case.state != "one-option")]


def is_widest(target: Target, dtype: str) -> bool:
    """Return whether a dtype is the most precise one of a target, or stands in for those that it has."""
    return dtype == min(target.dtypes, key=ROUNDING.__getitem__) or dtype not in target.dtypes


def is_repeated(target: Target, seed: int, case: LoadedCase, dtype: str) -> bool:
    """
    Return whether a case is asked twice in a check of all cases: the smallest always, of the others every third, in one dtype.

    What a call leaves behind seldom depends on the dtype, or on a single case. So the seed of the check draws both.
    """
    if case.tier == "smoke":
        return True
    dtypes = [one for one in asked_dtypes(target, case.op) if asked_in(case, one)]
    drawn = crc32(f"{seed} {case.id}".encode()) % (3 * len(dtypes))
    return dtypes[drawn : drawn + 1] == [dtype]


def ask(target: Target, case: LoadedCase, dtype: str, answer: Answer | None = None) -> CaseResult:
    """Return the verdict of one case; what the implementation returned goes into `answer`."""
    return answered(target, case, dtype, Answer(case, dtype) if answer is None else answer)()


def answered(target: Target, case: LoadedCase, dtype: str, answer: Answer) -> Callable[[], CaseResult]:
    """Return what judges one case, which may be done later; what the implementation returned goes into `answer`."""
    result = CaseResult(
        case.id, case.op, case.kind, case.tier, dtype, "pass", flags=case.flags,
        reproduce=f"{target.reproduce} --case {case.id} --dtype {dtype}",
        values=sum(x.size for call in case.calls for x in call.expected.values()),
    )  # fmt: skip
    lacking = {type(s).__name__ for c in case.calls for s in c.params.values() if isinstance(s, Scaling)} - {*target.scalings}
    if lacking and case.kind != "reject":
        return partial(replace, result, verdict="unsupported", message=f"its scalings do not list {', '.join(sorted(lacking))}")
    try:
        if case.kind == "reject":
            return partial(replace, result, verdict="rejected", message=target.refuse(case, dtype))
        first = _first_dtype(target, case, dtype)
        try:
            answer.outputs.append(target.run(case, case.calls[0], first))
        except Unsupported:
            if first == dtype:
                raise
            first = dtype  # what is refused in the other one says nothing of this one
            answer.outputs.append(target.run(case, case.calls[0], first))
        answer.outputs += [target.run(case, call, dtype) for call in case.calls[1:]]
        if first != dtype:
            del answer.outputs[0]
            case = answer.case = replace(case, calls=case.calls[1:])
    except Unsupported as error:
        return partial(replace, result, verdict="unsupported", message=text_of(error) or "not implemented")
    except Failure as failure:
        return partial(replace, result, verdict="fail", message=text_of(failure))
    except Stopped as stopped:
        if stopped.verdict == "error" and case.kind != "reject" and any(call.is_degenerate for call in case.calls):
            return partial(replace, result, verdict="unsupported", message=f"raised for an array without elements: {stopped}")
        if stopped.verdict == "error" and case.form in TABLE_FORMS:
            return partial(replace, result, verdict="unsupported", message=f"raised for tables of another dtype: {stopped}")
        return partial(replace, result, verdict=stopped.verdict, message=text_of(stopped))
    return partial(_judged, answer, class_of_claim(case.op, target.claims[dtype]), result)


def _first_dtype(target: Target, case: LoadedCase, dtype: str) -> str:
    """Return the dtype of a case's first call: the case's, or another one that the target states, half precision if it can."""
    if case.state != "other-dtype-first":
        return dtype
    others = [d for d in target.dtypes if d in case.dtypes and (d != dtype or d in UNIT)]
    return min(others, key=lambda d: d not in UNIT, default=dtype)


def _judged(answer: Answer, claim: str, result: CaseResult) -> CaseResult:
    """Return the result with the tightest class in which the answer holds, and the worst value if the claimed one does not."""
    case, dtype = answer.case, answer.dtype
    made = case.tier == TIER
    judgements = [
        judge(case.op, call, outputs, claim, dtype, truth="live" if made else "stored", balls=ON_BALLS)
        for call, outputs in zip(case.calls, answer.outputs, strict=True)
    ]
    for judgement in judgements if made else ():
        if judgement.sample is None:
            return replace(result, verdict=judgement.verdict, message=judgement.reason)
        divide(answer, judgement.sample)
        result.message = judgement.counted
    classes = ladder(case.op, dtype, claim)
    result.achieved = next((accuracy for accuracy in classes if all(one.holds(accuracy) for one in judgements)), None)
    if result.achieved in classes[: classes.index(claim) + 1]:
        off = next((one.systematic for one in judgements if one.systematic), "")
        return replace(result, verdict="fail", message=off) if off else result
    failures = [(one.worst, k) for k, one in enumerate(judgements, 1) if one.worst is not None]
    worst, step = max(failures, key=lambda pair: pair[0].ratio)
    text = worst.message(claim, f" of call {step}" if len(case.calls) > 1 else "")
    text += f" ({result.message})" if result.message else ""
    return replace(result, verdict="fail", message=text, worst=worst.to_json())


# ---- the judged part of a large answer -------------------------------------------------------------------------------------
def divide(answer: Answer, sample: Sample) -> None:
    """Give an answer its part that was judged."""
    shapes = {n: x.shape for n, x in answer.case.calls[0].expected.items()}
    rows, selection = sample.rows, sample.selection
    lies = {n: (tuple(axis.ravel() for axis in rows.indices(n, shape, selection)), shape) for n, shape in shapes.items()}
    case = replace(answer.case, calls=(sample.call,))
    answer.part = Answer(case, answer.dtype, [sample.outputs], asked=answer.case, lies=lies)
    answer.outputs = [sample.outputs]  # the others are judged no more, and may be large


def with_few(answer: Answer) -> Answer:
    """Return an answer that has few rows besides, those that are farthest off among them, if there are many."""
    judged = answer.part
    if judged is None or answer.few is not None:
        return answer
    (call,), (outputs,) = judged.case.calls, judged.outputs
    rows = rows_of(judged.case.op, call.inputs, call.params, {n: x.shape for n, x in call.expected.items()})
    selection = choose(rows, outputs, call.expected, FEW)
    widths = {c: rows.cut_results(dict(w), selection) for c, w in call.widths.items()}
    cut = replace(
        call, inputs=rows.cut(call.inputs, selection), expected=rows.cut_results(call.expected, selection), widths=widths,
        computed={},
    )  # fmt: skip
    cut = replace(cut, widths={**widths, **moved_by_trigonometry(answer.case.op, cut)})
    few = Answer(replace(judged.case, calls=(cut,)), answer.dtype, [rows.cut_results(outputs, selection)], judged)
    return replace(answer, few=replace(few, asked=answer.case))


def notes_on_unjudged(operation: Operation) -> Iterator[str]:
    """Yield what a report says of cases that were not judged."""
    reasons = Counter(result.message for result in operation.unjudged)
    for reason, count in reasons.items():
        cases = f"{count} kernel {'case' if count == 1 else 'cases'}"
        judges = " (--claim fused judges them)" if operation.claim.startswith(("low", "mixed")) else ""
        yield f"{operation.op} {operation.dtype}: {cases} not judged: {reason}{judges}"


# ---- the state that calls leave behind -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Trial:
    """A failing case, its call in a new process, and its name in words."""

    case: LoadedCase
    alone: LoadedCase
    words: str


def report_state(operations: Pairs, target: Target) -> None:
    """
    Say in the diagnosis of an operation that its failures depend on earlier calls, where a case shows it.

    No known mistake and no option explains such failures, and the call alone does not repeat them: it passes as the first call
    of a new process.
    """
    trials = [(o, trial) for o, answers in operations if (trial := _suspected(o, answers, operations)) is not None]
    new = target.again() if trials else None
    if new is None:
        return
    try:
        for operation, trial in trials:
            alone, again = _verdict(new, trial.alone, operation.dtype), _verdict(target, trial.case, operation.dtype)
            if (alone, again) == ("pass", "fail"):
                _blame_earlier_calls(operation, trial.words)
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
        if compare(operation.op, call, outputs, operation.claim, operation.dtype) is not None:
            alone = replace(first.case, kind="value", calls=(call,), form="", state="")
            return Trial(first.case, alone, f"call {count} of {first.case.id}")
    return None


def _size(calls: Sequence[Call]) -> int:
    return sum(x.size for call in calls for x in call.expected.values())


def _blame_earlier_calls(operation: Operation, words: str) -> None:
    diagnosis = dict(operation.diagnosis or {})
    explained = str(diagnosis["text"]).removeprefix(UNEXPLAINED).removeprefix(UNSTEADY).strip()
    lead = f"failures depend on the calls before: {words} passes when it is the first call of a new process."
    text = f"{lead} In this run: {explained}" if explained else lead
    operation.diagnosis = diagnosis | {"text": text, "names": [], "explanations": [], "hint": STATE_HINT, "seen_in": ""}
