"""Asking a target one case, and judging what it answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posref.scaling import Scaling

from ..accuracy import UNIT
from ..calls import held_to, ladder, makes_constants, returns_reals
from ..errors import Failure, Stopped, Unsupported
from ..model import Answer, CaseResult, LoadedCase, number
from ..proof.live import NotJudged, Settled
from ..suite import value_positions
from ..target import comparing
from ..target.array_forms import OWN_DTYPE
from ..target.base import Target
from . import kernel, systematic


def asked_dtypes(target: Target, op: str) -> tuple[str, ...]:
    """Return the dtypes in which an operation is asked: constants never below float32, integers and masks once."""
    if not returns_reals(op):
        return target.dtypes[:1]
    if makes_constants(op):
        return tuple(dict.fromkeys("float32" if d in UNIT else d for d in target.dtypes))
    return target.dtypes


def asked_in(case: LoadedCase, dtype: str) -> bool:
    """Return whether a case is asked in a dtype: integers, masks and calls to be refused in any."""
    return case.kind == "reject" or dtype in case.dtypes or not returns_reals(case.op)


def unasked(target: Target, case: LoadedCase, dtype: str) -> CaseResult:
    """Return the result of a case before it is asked."""
    repeat = f"{target.reproduce} --case {case.id} --dtype {dtype}"
    return CaseResult(
        case.id, case.op, case.kind, case.tier, dtype, "not-run", message="not asked", flags=case.flags, reproduce=repeat
    )


def ask(target: Target, case: LoadedCase, dtype: str, answer: Answer | None = None) -> CaseResult:
    """Return the verdict of one case; what the implementation returned goes into `answer`."""
    answer = Answer(case, dtype) if answer is None else answer
    result = replace(unasked(target, case, dtype), verdict="pass", message="")
    lacking = {type(s).__name__ for c in case.calls for s in c.params.values() if isinstance(s, Scaling)} - {*target.scalings}
    if lacking and case.kind != "reject":
        return replace(result, verdict="unsupported", message=f"its scalings do not list {', '.join(sorted(lacking))}")
    try:
        target.begin(case)
        if case.kind == "reject":
            return replace(result, verdict="rejected", message=target.refuse(case, dtype))
        first = _first_dtype(target, case, dtype)
        answer.outputs += [target.run(case, call, dtype if k else first) for k, call in enumerate(case.calls)]
        if first != dtype:
            del answer.outputs[0]
            case = answer.case = replace(case, calls=case.calls[1:])
    except Unsupported as error:
        return replace(result, verdict="unsupported", message=str(error) or "not implemented")
    except Failure as failure:
        return replace(result, verdict="fail", message=str(failure))
    except Stopped as stopped:
        nothing = all(value.size == 0 for call in case.calls for value in call.expected.values())
        if stopped.verdict == "error" and nothing and case.kind != "reject":
            return replace(result, verdict="unsupported", message=f"raised although there is nothing to compute: {stopped}")
        if stopped.verdict == "error" and not {*OWN_DTYPE}.isdisjoint(case.flags):
            return replace(result, verdict="unsupported", message=f"raised for tables of another dtype: {stopped}")
        return replace(result, verdict=stopped.verdict, message=str(stopped))
    return _judged(answer, held_to(case.op, target.claims[dtype]), result)


def _first_dtype(target: Target, case: LoadedCase, dtype: str) -> str:
    """Return the dtype of a case's first call: the case's, or another one that the target states, half precision if it can."""
    if "other-dtype-first" not in case.flags:
        return dtype
    others = [d for d in target.dtypes if d in case.dtypes and (d != dtype or d in UNIT)]
    return min(others, key=lambda d: d not in UNIT, default=dtype)


def _judged(answer: Answer, claim: str, result: CaseResult) -> CaseResult:
    """Return the result judged, from what is stored of the case or else live."""
    if answer.case.tier != kernel.TIER:
        return _judge(answer, claim, result)
    try:
        settled = kernel.judged(answer, claim, result)
    except NotJudged as none:
        return replace(result, verdict=none.verdict, message=str(none))
    assert answer.part is not None
    return _judge(answer.part, claim, result, settled)


def _judge(answer: Answer, claim: str, result: CaseResult, settled: Settled | None = None) -> CaseResult:
    """Return the result with the tightest class that holds, and the worst value if the claimed one does not."""
    case, dtype = answer.case, answer.dtype
    classes = ladder(case.op, dtype, claim)
    for accuracy in classes:
        if all(
            comparing.compare(case.op, c, o, accuracy, dtype) is None for c, o in zip(case.calls, answer.outputs, strict=True)
        ):
            result.achieved = accuracy
            break
    if result.achieved is not None and classes.index(result.achieved) <= classes.index(claim):
        off = systematic.beyond(case, answer, claim, dtype)
        return result if off is None else replace(result, verdict="fail", message=off)
    worst, step = None, 0
    for k, (call, outputs) in enumerate(zip(case.calls, answer.outputs, strict=True)):
        found = comparing.compare(case.op, call, outputs, claim, dtype)
        if found is not None and (worst is None or found.ratio > worst.ratio):
            worst, step = found, k
    assert worst is not None
    where = value_positions.places(case.op, case.calls[step], worst.output)
    position = None if where is None else float(where[worst.index])
    index = settled.place(worst.output, worst.index) if settled else worst.index
    at = f"[{', '.join(map(str, index))}]" if index else ""
    of = f" of call {step + 1}" if len(case.calls) > 1 else ""
    place = "" if position is None else f" at position {position:g}"
    limit = "must be exact" if worst.tolerance == 0 else f"{claim} allows {worst.tolerance:.2g}"
    limit = limit if np.isfinite(worst.got) else "must be finite"
    text = (
        f"{worst.output}{at}{of}{place}: got {worst.got:.9g}, expected {worst.expected:.9g}; off by {worst.error:.2g}, {limit}"
    )
    text += f" ({result.message})" if result.message else ""
    record = {
        "output": worst.output, "index": list(index), "position": position, "expected": worst.expected,
        "got": number(worst.got), "error": number(worst.error), "tolerance": worst.tolerance, "ratio": number(worst.ratio),
    }  # fmt: skip
    return replace(result, verdict="fail", message=text, worst=record)
