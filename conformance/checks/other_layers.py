"""Failing calls of one kind of layer against the options of the model's other layers and components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..diagnosis.explanation import UNEXPLAINED
from ..evidence.every.for_model import Kind, Model
from ..evidence.every.model_cases import kind_of
from ..judge import judge
from ..model import Answer, Operation
from .case_run import with_few

Pairs = Sequence[tuple[Operation, list[Answer]]]
SAME = object()


def report_other_layers(operations: Pairs, model: Model) -> None:
    """Say in the diagnosis of an operation whose options its failing calls fit, for each kind of layer."""
    for operation, answers in operations:
        failing = {case.id for case in operation.cases if case.verdict == "fail"}
        sentences = [
            f"{kind.where}: these are the options of {other.where} ({_changes(kind, other)})"
            for kind in model.kinds
            if (
                failing_answers := [
                    answer for answer in answers if answer.case.id in failing and kind_of(model, answer.case.id) is kind
                ]
            )
            if (other := next(_fitting(operation, failing_answers, kind, model), None)) is not None
        ]
        if sentences:
            before = operation.diagnosis or {"text": "", "names": [], "explanations": [], "hint": "", "seen_in": ""}
            rest = str(before["text"]).removeprefix(UNEXPLAINED).strip()
            text = f"{'; '.join(sentences)}. {rest}".strip()
            operation.diagnosis = {**before, "text": text[0].upper() + text[1:]}


def _fitting(operation: Operation, answers: Sequence[Answer], kind: Kind, model: Model) -> Iterator[Kind]:
    """Yield the other kinds of layers whose options give all failing values of one kind."""
    for other in (*model.kinds, *model.others) if answers else ():
        alike = other.op == kind.op and other.lanes <= kind.sizes.head_size
        differs = other.arguments(operation.op, kind.longest) != kind.arguments(operation.op, kind.longest)
        if alike and differs and all(_fits(operation, answer, other) for answer in answers):
            yield other


def _fits(operation: Operation, answer: Answer, other: Kind) -> bool:
    few = with_few(answer).few or answer.part or answer
    ((call,), (outputs,)) = few.case.calls, few.outputs
    length = int(max((np.max(x, initial=0) for n, x in call.inputs.items() if "positions" in n), default=0)) + 1
    options = other.arguments(operation.op, call.params.get("length") or length)
    if other.lanes != call.inputs.get("x", np.empty(0)).shape[-1] and "rotary_dim" in other.options:
        options["rotary_dim"] = other.lanes
    judgement = judge(operation.op, replace(call, params=options), outputs, operation.claim, operation.dtype, truth="live")
    return judgement.sample is not None and judgement.worst is None


def _changes(kind: Kind, other: Kind) -> str:
    """Return the options of another kind that differ, in words."""
    names = [name for name, value in other.options.items() if kind.options.get(name, SAME) != value]
    return ", ".join(f"{name}={other.options[name]}" for name in names)
