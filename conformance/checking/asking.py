"""Asking a target one case, and judging what it answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posref.scaling import Scaling

from ..accuracy import UNIT, ladder_of
from ..calls import makes_constants, returns_reals
from ..errors import Failure, Stopped, Unsupported
from ..model import Answer, CaseResult, LoadedCase, number
from ..suite import value_positions
from ..target import comparing
from ..target.base import Target


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


def ask(target: Target, case: LoadedCase, dtype: str, answer: Answer | None = None) -> CaseResult:
    """Return the verdict of one case; what the implementation returned goes into `answer`."""
    answer = Answer(case, dtype) if answer is None else answer
    repeat = f"{target.reproduce} --case {case.id} --dtype {dtype}"
    result = CaseResult(case.id, case.op, case.kind, case.tier, dtype, "pass", flags=case.flags, reproduce=repeat)
    lacking = {type(s).__name__ for c in case.calls for s in c.params.values() if isinstance(s, Scaling)} - {*target.scalings}
    if lacking and case.kind != "reject":
        return replace(result, verdict="unsupported", message=f"its scalings do not list {', '.join(sorted(lacking))}")
    try:
        target.begin(case)
        if case.kind == "reject":
            return replace(result, verdict="rejected", message=target.refuse(case, dtype))
        answer.outputs += [target.run(case, call, dtype) for call in case.calls]
    except Unsupported as error:
        return replace(result, verdict="unsupported", message=str(error) or "not implemented")
    except Failure as failure:
        return replace(result, verdict="fail", message=str(failure))
    except Stopped as stopped:
        nothing = all(value.size == 0 for call in case.calls for value in call.expected.values())
        if stopped.verdict == "error" and nothing and case.kind != "reject":
            return replace(result, verdict="unsupported", message=f"raised although there is nothing to compute: {stopped}")
        return replace(result, verdict=stopped.verdict, message=str(stopped))
    return _judge(case, dtype, target.claims[dtype], answer, result)


def _judge(case: LoadedCase, dtype: str, claim: str, answer: Answer, result: CaseResult) -> CaseResult:
    """Return the result with the tightest class that holds, and the worst value if the claimed one does not."""
    ladder = ladder_of(dtype, claim)
    for accuracy in ladder:
        if all(
            comparing.compare(case.op, c, o, accuracy, dtype) is None for c, o in zip(case.calls, answer.outputs, strict=True)
        ):
            result.achieved = accuracy
            break
    if result.achieved is not None and ladder.index(result.achieved) <= ladder.index(claim):
        return result
    worst, step = None, 0
    for k, (call, outputs) in enumerate(zip(case.calls, answer.outputs, strict=True)):
        found = comparing.compare(case.op, call, outputs, claim, dtype)
        if found is not None and (worst is None or found.ratio > worst.ratio):
            worst, step = found, k
    assert worst is not None
    where = value_positions.places(case.op, case.calls[step], worst.output)
    position = None if where is None else float(where[worst.index])
    at = f"[{', '.join(map(str, worst.index))}]" if worst.index else ""
    of = f" of call {step + 1}" if len(case.calls) > 1 else ""
    place = "" if position is None else f" at position {position:g}"
    limit = "must be exact" if worst.tolerance == 0 else f"{claim} allows {worst.tolerance:.2g}"
    limit = limit if np.isfinite(worst.got) else "must be finite"
    text = (
        f"{worst.output}{at}{of}{place}: got {worst.got:.9g}, expected {worst.expected:.9g}; off by {worst.error:.2g}, {limit}"
    )
    record = {
        "output": worst.output, "index": list(worst.index), "position": position, "expected": worst.expected,
        "got": number(worst.got), "error": number(worst.error), "tolerance": worst.tolerance, "ratio": number(worst.ratio),
    }  # fmt: skip
    return replace(result, verdict="fail", message=text, worst=record)
