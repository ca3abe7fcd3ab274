"""The last step of a check: summarizes every operation, then diagnoses those that fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posref.core.composition import stages
from posref.spec import REGISTRY

from ..calls import called_as, parameters_of
from ..model import NO_DIAGNOSIS, NOTHING, Answer, Operation
from ..summary.batches import Places
from ..summary.operation_summary import summarise
from ..targets.python import UNSTATED
from .case_run import with_few
from .learned_scope import Trials

REFUSE = "Leave out the options that the code lacks, and raise NotImplementedError for the words of an option that it lacks."
NO_OPTION = "no option "  # how a refusal begins of code that does not take an option
WRAP = "If the code has other names for its arguments, check a function with these names that calls it."
OF_DTYPE = 'Calls are made in {dtype}. State the dtypes that the code takes, as dtypes = ("bfloat16",), or give --dtype.'
REMEDY = UNSTATED.partition("{")[0]  # how the message begins of a file that does not say which library it computes with


def summarise_and_diagnose(operations: list[tuple[Operation, list[Answer]]], trials: Trials | None = None) -> None:
    """Add to operations with their answers what all cases together say: achieved classes, positions, diagnoses."""
    known: Places = {}  # the calls of an operation are the same in every dtype
    for operation, answers in operations:
        summarise(operation, answers, known)
    _diagnose(operations, trials)


def report_unanswered(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Say of operations that refuse every call or raise how they are called: names or the order of arguments may differ."""
    for operation, _ in operations:
        has_remedy = any(case.message.startswith(REMEDY) for case in operation.cases)
        is_narrow = operation.scope is not None and operation.scope.wrong not in ("", NOTHING)  # some calls were answered
        if operation.counts and operation.counts.keys() <= {"unsupported", "error"} and not (has_remedy or is_narrow):
            diagnosis = operation.diagnosis or NO_DIAGNOSIS
            lead = "No call gives values" if operation.counts.get("error") else "No call is answered"
            text = f"{lead}. posref calls {called_as(operation.op)}. {diagnosis['text']}".strip()
            operation.diagnosis = {**diagnosis, "text": text, "hint": diagnosis["hint"] or _remedy(operation)}


def _remedy(operation: Operation) -> str:
    """Return where to look if no call gives values: at the dtype, if a refusal names it, or at the options, or their names."""
    if operation.counts.get("error"):
        return ""
    if any(operation.dtype in case.message for case in operation.cases):
        return OF_DTYPE.format(dtype=operation.dtype)
    lacking = {
        case.message.removeprefix(NO_OPTION).strip("'") for case in operation.cases if case.message.startswith(NO_OPTION)
    }
    required = {name for name, one in parameters_of(REGISTRY[operation.op].function).items() if one.default is one.empty}
    return WRAP if lacking & required else REFUSE


def _diagnose(operations: list[tuple[Operation, list[Answer]]], trials: Trials | None) -> None:
    """Add diagnoses, those of stages first: a stage that fails explains what is composed of it."""
    failing = [(o, answers) for o, answers in operations if any(c.kind != "reject" and c.verdict == "fail" for c in o.cases)]
    if not failing:
        return
    from ..diagnosis.explanation import diagnose, untried  # the mistakes take long to load, and what conforms needs none
    from ..diagnosis.hypotheses import Budget
    from .further_calls import further_calls

    wrong = {o.op for o, _ in failing if any(c.kind in ("value", "sequence") and c.verdict == "fail" for c in o.cases)}
    known: dict[str, Any] = {}
    earlier: dict[str, list[Any]] = {}
    budget = Budget()
    ordered = sorted(failing, key=lambda pair: len(stages(pair[0].op)))
    for count, (operation, answers) in enumerate(ordered, 1):
        if count > 1 and budget.spent():
            operation.diagnosis = untried(operation.op, operation.dtype if len({o.op for o, _ in failing}) == 1 else "")
            continue
        below = [s for s in stages(operation.op) if s in wrong]
        operation.diagnosis = diagnose(
            operation.op, _compared(operation, answers), operation.claim, below[0] if below else None,
            known={s: known[s] for s in below if s in known}, first=operation.first_failing_position,
            messages={c.id: c.message for c in operation.cases if c.verdict == "fail"},
            budget=budget.part(len(failing) - count), earlier=earlier.setdefault(operation.op, []),
            further=None if trials is None else further_calls(operation, answers, trials),
        )  # fmt: skip
        operation.diagnosis["text"] = _with_raised(operation, operation.diagnosis["text"])
        if operation.diagnosis["names"]:
            known.setdefault(operation.op, operation.diagnosis["explanations"])


def _with_raised(operation: Operation, text: str) -> str:
    """Return a diagnosis with how many cases ended in an error, which it does not see, and the first error: most lead."""
    raised = [c for c in operation.cases if c.kind != "reject" and c.verdict == "error"]
    if not raised:
        return text
    first = (raised[0].message.splitlines() or ["without a message"])[0].rstrip(".")
    lead = len(raised) > operation.counts.get("fail", 0)
    many = f"{len(raised)} {'' if lead else 'other '}case{'s' * (len(raised) > 1)}"
    said = f"{many} ended in an error: {first} ({raised[0].id})."
    return f"{said} Of the others: {text}" if lead else f"{text} {said}"


def _compared(operation: Operation, answers: Sequence[Answer]) -> list[tuple[Answer, bool]]:
    """Return the answers that passed or failed, each with whether it failed; of a large one, the rows to try hypotheses on."""
    verdicts = {c.id: c.verdict for c in operation.cases}
    judged = [a for a in answers if verdicts[a.case.id] in ("pass", "fail")]
    return [(with_few(a).few or a, verdicts[a.case.id] == "fail") for a in judged]
