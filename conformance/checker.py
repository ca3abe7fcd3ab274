"""The check of an implementation: every case asked, every answer judged, every failure explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from . import classes, diagnose, invoke, places, tensors
from .calls import makes_constants
from .errors import TargetError, Unsupported
from .report import CaseResult, Operation, Report, number
from .suite import INSTALLED, LoadedCase, load_groups, load_manifest, withdrawn_cases
from .target import Target, load

Progress = Callable[[str], None]


@dataclass
class Answer:
    """A case with what the implementation returned, for the diagnosis."""

    case: LoadedCase
    dtype: str
    outputs: list[invoke.Arrays] = field(default_factory=list)


def check(
    target: Any,
    *,
    op: str | None = None,
    case: str | None = None,
    tier: str = "core",
    backend: str | None = None,
    dtype: str | None = None,
    claim: str | None = None,
    device: Any = None,
    suite: Path = INSTALLED,
    progress: Progress | None = None,
) -> Report:
    """
    Return what an implementation does on the golden vectors.

    Parameters
    ----------
    target : str, module or object
        A built-in adapter's name, ``module``, ``module:object``, ``file.py``, or the thing itself.
    op, case : str, optional
        Only this operation, or this case.
    tier : {"smoke", "core"}
        Which cases are asked.
    backend, dtype, claim, device : optional
        In place of what the implementation states.
    suite : path
        The vectors; the installed ones by default.
    progress : callable, optional
        Called with the id of every case as it begins.

    Raises
    ------
    TargetError, VectorError, BackendMissing
        If the check cannot run.
    """
    if op is None and case is not None:
        op = case.split("/", maxsplit=1)[0]
    if op is not None and op not in REGISTRY:
        msg = f"check: op must be one of {', '.join(REGISTRY)}; got {op!r}."
        raise TargetError(msg)
    if tier not in ("smoke", "core"):
        msg = (
            f"check: tier must be smoke or core (full is built on demand: posref vectors build DIR --tier full); got {tier!r}."
        )
        raise TargetError(msg)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
        return _check(
            target,
            op=op,
            case=case,
            tier=tier,
            backend=backend,
            dtype=dtype,
            claim=claim,
            device=device,
            suite=suite,
            progress=progress,
        )


def _check(
    target: Any, *, op: str | None, case: str | None, tier: str, backend: str | None, dtype: str | None, claim: str | None,
    device: Any, suite: Path, progress: Progress | None,
) -> Report:  # fmt: skip
    """Return the report, the arguments being as they must."""
    loaded = load(target, backend=backend, dtype=dtype, claim=claim, device=device)
    manifest = load_manifest(suite)
    cases = [c for group in load_groups(suite, op=op) for c in group.cases if _wanted(c, tier, case)]
    withdrawn = withdrawn_cases(suite)
    cases = [c for c in cases if c.id not in withdrawn]
    if case in withdrawn:
        msg = f"check: case {case!r} was withdrawn: {withdrawn[case]}"
        raise TargetError(msg)
    if op is not None and case is None and not cases:
        msg = f"check: the suite in {suite} has no {tier} cases of {op!r}."
        raise TargetError(msg)
    if case is not None and not cases:
        msg = f"check: no case {case!r} in the {tier} tier; posref list --cases {op} lists them."
        raise TargetError(msg)
    operations, missing = [], []
    for name in dict.fromkeys(c.op for c in cases):
        if loaded.function(name) is None:
            missing.append(name)
            continue
        for width in asked_dtypes(loaded, name):
            operations.append(_operation(loaded, name, width, [c for c in cases if c.op == name], progress))
    _explain(loaded, operations)
    about = {
        "name": loaded.name, "backend": loaded.backend.name, "dtypes": list(loaded.dtypes), "claims": dict(loaded.claims),
        "versions": dict(loaded.versions), "notes": list(loaded.notes),
    }  # fmt: skip
    sums = {"version": manifest["suite"], "sha256": tensors.digest((suite / "SUITE.json").read_bytes())["sha256"]}
    return Report(about, sums, tier, [o for o, _ in operations], tuple(missing), complete=True)


def check_call(function: Callable[..., Any], *, op: str, **options: Any) -> Report:
    """Return what one function does on the vectors of the operation `op`; `options` are those of `check`."""
    stated = {n: getattr(function, n) for n in ("backend", "dtypes", "claims") if hasattr(function, n)}
    implementation = SimpleNamespace(**stated, **{op: function}, __name__=getattr(function, "__name__", op))
    return check(implementation, op=op, **options)


def asked_dtypes(target: Target, op: str) -> tuple[str, ...]:
    """Return the dtypes in which an operation is asked: constants never below float32, integers once."""
    if op == "t5_buckets":
        return target.dtypes[:1]
    if makes_constants(op):
        return tuple(dict.fromkeys("float32" if d in classes.UNIT else d for d in target.dtypes))
    return target.dtypes


def _wanted(case: LoadedCase, tier: str, only: str | None) -> bool:
    return case.id == only if only is not None else tier == "core" or case.tier == "smoke"


def _operation(
    target: Target, op: str, dtype: str, cases: list[LoadedCase], progress: Progress | None
) -> tuple[Operation, list[Answer]]:
    """Return one operation's results in one dtype, and the answers to its failing cases."""
    claim = target.claims.get(dtype, classes.DEFAULT_CLAIM[dtype])
    results, answers = [], []
    for case in cases:
        if case.kind != "reject" and dtype not in case.dtypes and op != "t5_buckets":
            continue
        if progress:
            progress(case.id)
        answer = Answer(case, dtype)
        result = _ask(target, case, dtype, claim, answer)
        results.append(result)
        answers.append(answer)
    operation = Operation(op, dtype, claim, results)
    _summarise(operation, answers)
    return operation, answers


def _ask(target: Target, case: LoadedCase, dtype: str, claim: str, answer: Answer) -> CaseResult:
    """Return the verdict of one case."""
    repeat = f"posref check {target.name} --case {case.id} --dtype {dtype}"
    result = CaseResult(case.id, case.op, case.kind, case.tier, dtype, "pass", flags=case.flags, reproduce=repeat)
    target.reset()
    try:
        if case.kind == "reject":
            return _ask_rejection(target, case, dtype, result)
        for call in case.calls:
            with np.errstate(all="ignore"):
                answer.outputs.append(invoke.run(target, case.op, call, dtype))
    except (Unsupported, NotImplementedError) as error:
        return replace(result, verdict="unsupported", message=str(error) or "not implemented")
    except invoke.Failure as failure:
        return replace(result, verdict="fail", message=str(failure))
    except Exception as error:  # whatever an implementation raises is its verdict, not ours
        message = f"{type(error).__name__}: {error}".strip()[:500]
        if all(value.size == 0 for call in case.calls for value in call.expected.values()):
            return replace(result, verdict="unsupported", message=f"raises where there is nothing to compute: {message}")
        return replace(result, verdict="error", message=message)
    return _judge(case, dtype, claim, answer, result)


def _ask_rejection(target: Target, case: LoadedCase, dtype: str, result: CaseResult) -> CaseResult:
    """Return "rejected" if the implementation raises, as it must."""
    call = case.calls[0]
    positional, keywords = invoke.arguments(target, case.op, call, dtype)
    function = target.function(case.op)
    assert function is not None
    try:
        function(*positional.values(), **keywords)
    except (Unsupported, NotImplementedError):
        raise
    except Exception as error:  # any refusal will do
        return replace(result, verdict="rejected", message=f"{type(error).__name__}: {error}"[:500])
    return replace(result, verdict="fail", message=f"was not refused: {case.comment}")


def _judge(case: LoadedCase, dtype: str, claim: str, answer: Answer, result: CaseResult) -> CaseResult:
    """Return the result with the tightest class that holds, and the worst value if the claimed one does not."""
    ladder = classes.OF_DTYPE["float32" if makes_constants(case.op) and dtype in classes.UNIT else dtype]
    for accuracy in ladder:
        if all(invoke.compare(case.op, c, o, accuracy, dtype) is None for c, o in zip(case.calls, answer.outputs, strict=True)):
            result.achieved = accuracy
            break
    if result.achieved is not None and ladder.index(result.achieved) <= ladder.index(claim):
        return result
    worst, step = None, 0
    for k, (call, outputs) in enumerate(zip(case.calls, answer.outputs, strict=True)):
        found = invoke.compare(case.op, call, outputs, claim, dtype)
        if found is not None and (worst is None or found.ratio > worst.ratio):
            worst, step = found, k
    assert worst is not None
    where = places.places(case.op, case.calls[step], worst.output)
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


def _summarise(operation: Operation, answers: list[Answer]) -> None:
    """Fill in an operation's achieved class, overall and by band of positions, and its first failing position."""
    judged = [c for c in operation.cases if c.kind != "reject" and c.verdict in ("pass", "fail")]
    ladder = classes.OF_DTYPE[operation.dtype or "float32"]
    operation.achieved = _loosest([c.achieved for c in judged], ladder)
    by_id = {a.case.id: a for a in answers}
    complete = [by_id[c.id] for c in judged if len(by_id[c.id].outputs) == len(by_id[c.id].case.calls)]
    for low, high in places.BANDS:
        found = [cls for answer in complete for cls in _classes_in_band(answer, operation, (low, high), ladder)]
        if found:
            operation.bands.append({"from": low, "to": high, "achieved": _loosest(found, ladder)})
    ratios, failing = [], []
    for answer in complete:
        for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
            for name, output in outputs.items():
                error, width = invoke.errors(operation.op, call, name, output, operation.claim or ladder[-1], answer.dtype)
                if np.any(width > 0):
                    ratios.append(float(np.max(error[width > 0] / width[width > 0])))
                where = places.places(operation.op, call, name)
                if where is not None and where.shape == error.shape and np.any(error > width):
                    failing.append(float(np.min(where[error > width])))
    operation.worst_ratio = max(ratios, default=None)
    operation.first_failing_position = min(failing, default=None)
    if operation.first_failing_position:
        below = [c for a in complete for c in _classes_in_band(a, operation, (0, operation.first_failing_position), ladder)]
        operation.achieved_below = _loosest(below, ladder)


def _classes_in_band(
    answer: Answer, operation: Operation, band: tuple[float, float | None], ladder: tuple[str, ...]
) -> Iterator[str | None]:
    """Yield the tightest class that holds for the values of one case that stand at positions of a band."""
    for call, outputs in zip(answer.case.calls, answer.outputs, strict=True):
        for name, output in outputs.items():
            where = places.places(operation.op, call, name)
            if where is None:
                continue
            chosen = places.in_band(where, band)
            if not np.any(chosen):
                continue
            for accuracy in ladder:
                error, width = invoke.errors(operation.op, call, name, output, accuracy, answer.dtype)
                if np.all(error[chosen] <= width[chosen]):
                    yield accuracy
                    break
            else:
                yield None


def _loosest(found: list[str | None], ladder: tuple[str, ...]) -> str | None:
    """Return the loosest of classes, or None if one is none of them."""
    if not found or None in found:
        return None
    return max((f for f in found if f), key=ladder.index)


def _explain(target: Target, operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add diagnoses; a stage that fails explains what is composed of it."""
    failed = {op.op for op, _ in operations if any(c.kind != "reject" and c.verdict == "fail" for c in op.cases)}
    for operation, answers in operations:
        if operation.op not in failed:
            continue
        verdicts = {c.id: c.verdict for c in operation.cases}
        relevant = [(a, verdicts[a.case.id] == "fail") for a in answers if verdicts[a.case.id] in ("pass", "fail")]
        stage = next((s for s in REGISTRY[operation.op].stages if s in failed), None)
        operation.diagnosis = diagnose.diagnose(operation.op, relevant, operation.claim or "angle32", stage)
