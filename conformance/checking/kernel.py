"""The kernel tier: cases that are made when they are asked, and judged live, on some of their rows where they are large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import TargetError
from ..evidence.every import kernel_cases
from ..model import Answer, Arrays, Call, Case, CaseResult, LoadedCase, Operation
from ..proof import choosing, live, screening
from ..proof.computed import moved_by_trigonometry
from ..proof.running import askable
from ..suite.rows import Rows, Selection, rows_of

TIER = kernel_cases.GROUP
FEW = choosing.Budget(values=1 << 11, terms=1 << 17)  # of a case, with which the diagnosis tries hypotheses
ON_BALLS = 1 << 14  # values of a case that are proved: those of all cases together take seconds


def is_kernel(case: str | None) -> bool:
    """Return whether an id is that of a case of this tier."""
    return case is not None and f"/{TIER}/" in case


def load(ops: Sequence[str], only: str | None = None) -> Iterator[LoadedCase]:
    """Yield the cases of some operations, or `only` one of them. What is expected is near the truth: it is not judged by."""
    if only is not None and ops and all(only not in kernel_cases.names(op) for op in ops):
        msg = f"check: no case {only!r} in the kernel tier; posref list --cases {ops[0]} --tier kernel lists them."
        raise TargetError(msg)
    for op in ops:
        yield from made(kernel_cases.cases(op, only))


def made(cases: Iterable[Case]) -> Iterator[LoadedCase]:
    """Yield cases that are judged live."""
    for case in cases:
        inputs = {name: np.asarray(value) for name, value in case.inputs.items()}
        near = {
            n: x.astype(np.int64) if x.dtype.kind in "bi" else x
            for n, x in screening.plain(case.op, inputs, case.params).items()
        }
        call = Call(case.params, inputs, near)
        dtypes = tuple(askable(case.op, inputs, near))
        yield LoadedCase(case.id, case.op, case.kind, TIER, case.flags, case.comment, dtypes, (call,))


def judged(answer: Answer, claim: str, result: CaseResult) -> live.Settled:
    """Return the part of an answer that is judged, which becomes its part, and say in the result how large that is."""
    (call,) = answer.case.calls
    (outputs,) = answer.outputs
    settled = live.settle(answer.case.op, call, outputs, claim, answer.dtype, balls=ON_BALLS)
    divide(answer, settled)
    judged, of = sum(settled.judged.values()), sum(settled.of(name) for name in settled.judged)
    result.message = f"{judged} of {of} values judged" if judged < of else ""
    return settled


def divide(answer: Answer, settled: live.Settled) -> None:
    """Give an answer its part that is judged."""
    answer.part = _part(answer, settled.call, settled.outputs, settled.rows, settled.selection)


def _part(answer: Answer, call: Call, outputs: Arrays, rows: Rows, selection: Selection) -> Answer:
    """Return some rows of a whole answer as an answer."""
    shapes = {n: x.shape for n, x in answer.case.calls[0].expected.items()}
    lies = {n: (tuple(axis.ravel() for axis in rows.indices(n, shape, selection)), shape) for n, shape in shapes.items()}
    case = replace(answer.case, calls=(call,))
    return Answer(case, answer.dtype, [outputs], asked=answer.case, lies=lies)


def with_few(answer: Answer) -> Answer:
    """Return an answer that has few rows besides, those that are farthest off among them, if there are many."""
    judged = answer.part
    if judged is None or answer.few is not None:
        return answer
    (call,), (outputs,) = judged.case.calls, judged.outputs
    rows = rows_of(judged.case.op, call.inputs, call.params, {n: x.shape for n, x in call.expected.items()})
    selection = choosing.choose(rows, outputs, call.expected, FEW)
    widths = {c: rows.cut_results(dict(w), selection) for c, w in call.widths.items()}
    cut = replace(
        call, inputs=rows.cut(call.inputs, selection), expected=rows.cut_results(call.expected, selection), widths=widths,
        computed={},
    )  # fmt: skip
    cut = replace(cut, widths={**widths, **moved_by_trigonometry(answer.case.op, cut)})
    few = Answer(replace(judged.case, calls=(cut,)), answer.dtype, [rows.cut_results(outputs, selection)], judged)
    return replace(answer, few=replace(few, asked=answer.case))


def notes(operation: Operation) -> Iterator[str]:
    """Yield what a report says of cases that were not judged."""
    reasons = Counter(result.message for result in operation.unjudged)
    for reason, count in reasons.items():
        cases = f"{count} kernel {'case' if count == 1 else 'cases'}"
        judges = " (--claim fused judges them)" if operation.claim.startswith("low") else ""
        yield f"{operation.op} {operation.dtype}: {cases} not judged: {reason}{judges}"
