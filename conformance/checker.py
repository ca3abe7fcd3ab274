"""The check of an implementation: every case asked, every answer judged, every failure explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from posref.scaling import Scaling
from posref.spec import REGISTRY

from . import classes, invoke, places, tensors
from .calls import makes_constants, returns_reals
from .diagnosis import diagnose
from .errors import Stopped, TargetError, Unsupported
from .report import CaseResult, Operation, Report, number
from .reports import curves
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
    target: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    outputs: str | Path | None = None,
    isolate: bool = False,
    timeout: float = 30.0,
    memory: float = 8.0,
    op: str | None = None,
    case: str | None = None,
    tier: str = "core",
    backend: str | None = None,
    dtype: str | None = None,
    claim: str | None = None,
    trig: float | None = None,
    device: Any = None,
    suite: Path = INSTALLED,
    progress: Progress | None = None,
) -> Report:
    """
    Return what an implementation does on the golden vectors.

    An interruption from the keyboard gives the report as far as it came, marked incomplete.

    Parameters
    ----------
    target : str, module or object, optional
        A built-in adapter's name, ``module``, ``module:object``, ``file.py``, or the thing itself.
    command : str or list of str, optional
        Instead, a program that speaks the protocol over its standard input and output.
    outputs : path, optional
        Instead, a folder of exported requests with the results that someone computed for them.
    isolate : bool
        Run a Python target in a process of its own.
    timeout, memory : float
        Seconds for each call, and GiB, of a program or an isolated target; memory 0 is no limit.
    op, case : str, optional
        Only this operation, or this case.
    tier : {"smoke", "core"}
        Which cases are asked.
    backend, dtype, claim, device : optional
        In place of what the implementation states.
    trig : float, optional
        The absolute error that its sines and cosines may have besides.
    suite : path
        The vectors; the installed ones by default.
    progress : callable, optional
        Called with the id of every case as it begins.

    Raises
    ------
    TargetError, VectorError, BackendMissing
        If the check cannot run.
    """
    suite = Path(suite)
    names = operations_of(suite, op=op, case=case, tier=tier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
        loaded = load(
            target, command=command, outputs=outputs, isolate=isolate, timeout=timeout, memory=memory, backend=backend,
            dtype=dtype, claim=claim, trig=trig, device=device, suite=suite,
        )  # fmt: skip
        try:
            missing = tuple(name for name in names if not loaded.has(name))
            cases = choose(suite, ops=[name for name in names if name not in missing], case=case, tier=tier)
            return _check(loaded, cases, missing, tier, suite, progress)
        finally:
            loaded.close()


def operations_of(suite: Path, *, op: str | None, case: str | None, tier: str) -> list[str]:
    """Return the operations to ask, or raise for a name that is none."""
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
    held = dict.fromkeys(entry["op"] for entry in load_manifest(suite)["groups"])
    if op is not None and op not in held:
        msg = f"check: the suite in {suite} has no cases of {op!r}."
        raise TargetError(msg)
    return [name for name in held if op in (None, name)]


def choose(suite: Path, *, ops: Sequence[str], case: str | None = None, tier: str = "core") -> list[LoadedCase]:
    """Return the cases of some operations to ask, or raise if there is not the one asked for; other files are not read."""
    withdrawn = withdrawn_cases(suite)
    if case in withdrawn:
        msg = f"check: case {case!r} was withdrawn: {withdrawn[case]}"
        raise TargetError(msg)
    found = [c for group in load_groups(suite, ops=ops) for c in group.cases if _wanted(c, tier, case)]
    found = [c for c in found if c.id not in withdrawn]
    if case is not None and ops and not found:
        msg = f"check: no case {case!r} in the {tier} tier; posref list --cases {ops[0]} lists them."
        raise TargetError(msg)
    return found


def _check(
    target: Target, cases: list[LoadedCase], missing: tuple[str, ...], tier: str, suite: Path, progress: Progress | None
) -> Report:
    """Return the report on loaded cases."""
    operations = [
        (Operation(name, width, target.claims[width], []), list[Answer]())
        for name in dict.fromkeys(c.op for c in cases)
        for width in asked_dtypes(target, name)
        if any(c.op == name and asked_in(c, width) for c in cases)
    ]
    complete = True
    try:
        for refusals in (False, True):  # what must be refused comes last: a program may end on each, and be asked no more
            for operation, answers in operations:
                own = [c for c in cases if c.op == operation.op and (c.kind == "reject") == refusals]
                _fill(operation, answers, target, own, progress)
    except KeyboardInterrupt:
        complete = False
    finish(operations)
    about = {
        "name": target.name, "kind": target.kind, "backend": target.library, "dtypes": list(target.dtypes),
        "claims": dict(target.claims), "versions": dict(target.versions), "notes": list(target.remarks()),
        "reproduce": target.reproduce,
    }  # fmt: skip
    version = load_manifest(suite)["suite"]
    sums = {"version": version, "sha256": tensors.digest((suite / "SUITE.json").read_bytes())["sha256"]}
    return Report(about, sums, tier, [o for o, _ in operations], missing, complete)


def check_call(function: Callable[..., Any], *, op: str, **options: Any) -> Report:
    """Return what one function does on the vectors of the operation `op`; `options` are those of `check`."""
    stated = {n: getattr(function, n) for n in ("backend", "dtypes", "claims", "scalings") if hasattr(function, n)}
    implementation = SimpleNamespace(**stated, **{op: function}, __name__=getattr(function, "__name__", op))
    return check(implementation, op=op, **options)


def asked_dtypes(target: Target, op: str) -> tuple[str, ...]:
    """Return the dtypes in which an operation is asked: constants never below float32, integers and masks once."""
    if not returns_reals(op):
        return target.dtypes[:1]
    if makes_constants(op):
        return tuple(dict.fromkeys("float32" if d in classes.UNIT else d for d in target.dtypes))
    return target.dtypes


def _wanted(case: LoadedCase, tier: str, only: str | None) -> bool:
    return case.id == only if only is not None else tier == "core" or case.tier == "smoke"


def _fill(
    operation: Operation, answers: list[Answer], target: Target, cases: list[LoadedCase], progress: Progress | None
) -> None:
    """Ask one operation's cases in one dtype."""
    for case in cases:
        if not asked_in(case, operation.dtype):
            continue
        if progress:
            progress(case.id)
        answer = Answer(case, operation.dtype)
        operation.cases.append(ask(target, case, operation.dtype, answer))
        answers.append(answer)


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
        return replace(result, verdict="unsupported", message=f"{', '.join(sorted(lacking))} is not among its scalings")
    try:
        target.begin(case)
        if case.kind == "reject":
            return replace(result, verdict="rejected", message=target.refuse(case, dtype))
        answer.outputs += [target.run(case, call, dtype) for call in case.calls]
    except Unsupported as error:
        return replace(result, verdict="unsupported", message=str(error) or "not implemented")
    except invoke.Failure as failure:
        return replace(result, verdict="fail", message=str(failure))
    except Stopped as stopped:
        nothing = all(value.size == 0 for call in case.calls for value in call.expected.values())
        if stopped.verdict == "error" and nothing and case.kind != "reject":
            return replace(result, verdict="unsupported", message=f"raises where there is nothing to compute: {stopped}")
        return replace(result, verdict=stopped.verdict, message=str(stopped))
    return _judge(case, dtype, target.claims[dtype], answer, result)


def _judge(case: LoadedCase, dtype: str, claim: str, answer: Answer, result: CaseResult) -> CaseResult:
    """Return the result with the tightest class that holds, and the worst value if the claimed one does not."""
    ladder = classes.ladder(dtype, claim)
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


def finish(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add to operations with their answers what all cases together say: achieved classes, positions, diagnoses."""
    for operation, answers in operations:
        _summarise(operation, answers)
    _explain(operations)


def _summarise(operation: Operation, answers: list[Answer]) -> None:
    """Fill in an operation's achieved class, overall and by band of positions, and its first failing position."""
    judged = [c for c in operation.cases if c.kind != "reject" and c.verdict in ("pass", "fail")]
    ladder = classes.ladder(operation.dtype, operation.claim)
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
                error, width = invoke.errors(operation.op, call, name, output, operation.claim, answer.dtype)
                ratio = curves.ratios(error, width)
                if np.any((width > 0) | (ratio > 0)):
                    ratios.append(float(np.max(ratio)))
                where = places.places(operation.op, call, name)
                if where is not None and where.shape == error.shape and np.any(ratio > 1):
                    failing.append(float(np.min(where[ratio > 1])))
    operation.worst_ratio = max(ratios, default=None)
    operation.first_failing_position = min(failing, default=None)
    if operation.first_failing_position:
        below = [c for a in complete for c in _classes_in_band(a, operation, (0, operation.first_failing_position), ladder)]
        operation.achieved_below = _loosest(below, ladder)
    curves.fill(operation, answers)


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


def _explain(operations: list[tuple[Operation, list[Answer]]]) -> None:
    """Add diagnoses, those of stages first: a stage that fails explains what is composed of it."""
    failing = [(o, answers) for o, answers in operations if any(c.kind != "reject" and c.verdict == "fail" for c in o.cases)]
    failed = {operation.op for operation, _ in failing}
    known: dict[str, Any] = {}
    for operation, answers in sorted(failing, key=lambda pair: len(REGISTRY[pair[0].op].stages)):
        verdicts = {c.id: c.verdict for c in operation.cases}
        relevant = [(a, verdicts[a.case.id] == "fail") for a in answers if verdicts[a.case.id] in ("pass", "fail")]
        stages = [s for s in REGISTRY[operation.op].stages if s in failed]
        operation.diagnosis = diagnose.diagnose(
            operation.op, relevant, operation.claim, stages[0] if stages else None,
            known={s: known[s] for s in stages if s in known}, first=operation.first_failing_position,
        )  # fmt: skip
        if operation.diagnosis["names"]:
            known.setdefault(operation.op, operation.diagnosis["explanations"])
