"""The check of an implementation: every case asked, every answer judged, every failure explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from posref.spec import REGISTRY

from ..calls import held_to
from ..errors import TargetError
from ..model import NOT_JUDGED, Answer, LoadedCase, Operation
from ..reports.report import Report
from ..suite import tensors
from ..suite.quoting import shown
from ..suite.reading import INSTALLED, load_group, load_manifest, smoke_cases, withdrawn_cases
from ..target.base import Target
from ..target.loading import load
from . import demands, kernel
from .apart import Watch, check_apart
from .asking import ask, asked_dtypes, asked_in, unasked
from .guard import Guard
from .settling import settle, stated_scope
from .summary import finish

Progress = Callable[[str], None]
TIERS = ("smoke", "core", "kernel")


def check(
    target: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    outputs: str | Path | None = None,
    isolate: bool = False,
    timeout: float = 30.0,
    memory: float = 8.0,
    op: str | Sequence[str] | None = None,
    case: str | None = None,
    tier: str = "core",
    backend: str | None = None,
    dtype: str | None = None,
    claim: str | None = None,
    trig: float | None = None,
    device: Any = None,
    suite: Path = INSTALLED,
    require: str | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    child: bool = False,
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
    op : str or list of str, optional
        Only these operations.
    case : str, optional
        Only this case.
    tier : {"smoke", "core", "kernel"}
        Which cases are asked: one of each operation, those of the suite, or besides calls of the sizes where kernels break.
    backend, dtype, claim, device : optional
        In place of what the implementation states.
    trig : float, optional
        The absolute error that its sines and cosines may have besides.
    suite : path
        The vectors; the installed ones by default.
    require : str or dict, optional
        What its scope must have: words, a JSON file, or a dict as of `supports`.
    progress : callable, optional
        Called with the id of every case as it begins.
    child : bool
        Work with a Python target that is given by name in a process of its own, as ``posref check`` does: whatever it does to
        that process is a verdict, and each call has `timeout` seconds. An isolated target has such a process in any case.

    Raises
    ------
    TargetError, VectorError, BackendMissing
        If the check cannot run.
    """
    options: dict[str, Any] = {
        "op": op, "case": case, "tier": tier, "suite": Path(suite), "timeout": timeout, "backend": backend, "dtype": dtype,
        "claim": claim, "trig": trig, "device": device,
    }  # fmt: skip
    required = demands.read(require, Path(suite), op=op, case=case, tier=tier)

    def watch(word: str, value: Any) -> None:
        if progress and word == "asking":
            progress(value[0])

    if child and command is None and outputs is None and not isolate:
        report = check_apart(target, options, progress)
    else:
        report = checked(target, command=command, outputs=outputs, isolate=isolate, memory=memory, watch=watch, **options)
    report.unmet = demands.unmet(required, report)
    return report


def checked(
    target: Any,
    *,
    op: str | Sequence[str] | None,
    case: str | None,
    tier: str,
    suite: Path,
    watch: Watch,
    loading: Any = load,
    **options: Any,
) -> Report:
    """Return the report of a check, in this process; `watch` hears of every step, and `loading` returns the target."""
    names = operations_of(suite, op=op, case=case, tier=tier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
        guard = Guard()
        loaded = loading(target, suite=suite, **options)
        try:
            missing = tuple(name for name in names if not loaded.has(name))
            cases = choose(suite, ops=[name for name in names if name not in missing], case=case, tier=tier)
            guard.hold(cases)
            return _trusted(_check(loaded, cases, missing, tier, suite, watch, case), guard.changed())
        finally:
            loaded.close()


def _trusted(report: Report, changed: str) -> Report:
    """Return a report, in which nothing passes if the implementation changed something of the check itself."""
    for case in [case for operation in report.operations for case in operation.cases] if changed else ():
        case.verdict, case.message = "protocol", f"the implementation changed what judges it: {changed}"
    return report


def operations_of(suite: Path, *, op: str | Sequence[str] | None, case: str | None, tier: str) -> list[str]:
    """Return the operations to ask, or raise for a name that is none."""
    if op is None and case is not None:
        op = case.split("/", maxsplit=1)[0]
    wanted = None if op is None else [op] if isinstance(op, str) else list(op)
    unknown = [name for name in wanted or () if name not in REGISTRY]
    if unknown:
        msg = f"check: op must be one of {', '.join(REGISTRY)}; got {shown(unknown[0])!r}."
        raise TargetError(msg)
    if tier not in TIERS:
        of = "smoke, core or kernel (full is built on demand: posref vectors build DIR --tier full)"
        msg = f"check: tier must be {of}; got {tier!r}."
        raise TargetError(msg)
    held = dict.fromkeys(entry["op"] for entry in load_manifest(suite)["groups"])
    lacking = [name for name in wanted or () if name not in held]
    if lacking:
        msg = f"check: the suite in {suite} has no cases of {lacking[0]!r}."
        raise TargetError(msg)
    return [name for name in held if wanted is None or name in wanted]


def choose(suite: Path, *, ops: Sequence[str], case: str | None = None, tier: str = "core") -> list[LoadedCase]:
    """Return the cases of some operations to ask, or raise if there is not the one asked for; other files are not read."""
    withdrawn = withdrawn_cases(suite)
    if case in withdrawn:
        msg = f"check: case {case!r} was withdrawn: {withdrawn[case]}"
        raise TargetError(msg)
    if kernel.is_kernel(case):
        return list(kernel.load(ops, case))
    smoke = smoke_cases(suite) if tier == "smoke" else frozenset()
    entries = [entry for entry in load_manifest(suite)["groups"] if entry["op"] in ops and _holds(entry, case, smoke)]
    found = [c for entry in entries for c in load_group(suite, entry).cases if _wanted(c, tier, case)]
    found = [c for c in found if c.id not in withdrawn]
    found += kernel.load(ops) if tier == kernel.TIER and case is None else []
    if case is not None and ops and not found:
        msg = f"check: no case {case!r} in the {tier} tier; posref list --cases {ops[0]} lists them."
        raise TargetError(msg)
    return found


def _check(
    target: Target, cases: list[LoadedCase], missing: tuple[str, ...], tier: str, suite: Path, watch: Watch, case: str | None
) -> Report:
    """Return the report on loaded cases."""
    stated = stated_scope(target)
    operations = [
        (Operation(name, width, held_to(name, target.claims[width]), []), list[Answer]())
        for name in dict.fromkeys(c.op for c in cases)
        for width in asked_dtypes(target, name)
        if any(c.op == name and asked_in(c, width) for c in cases)
    ]
    watch("planned", _planned(target, operations, cases, missing, tier, suite, case))
    complete = True
    try:
        for refusals in (False, True):  # what must be refused comes last: a program may end on each, and be asked no more
            for operation, answers in operations:
                own = [c for c in cases if c.op == operation.op and (c.kind == "reject") == refusals]
                _fill(operation, answers, target, own, watch)
    except KeyboardInterrupt:
        complete = False
    settle(operations, target, stated, watch, whole=complete and case is None and tier != "smoke")
    finish(operations)
    return _report(target, [o for o, _ in operations], missing, tier, suite, case, complete=complete)


def _report(
    target: Target, operations: list[Operation], missing: tuple[str, ...], tier: str, suite: Path, case: str | None, *,
    complete: bool = True,
) -> Report:  # fmt: skip
    """Return the report of a target's operations."""
    notes = [*target.remarks(), *(note for operation in operations for note in kernel.notes(operation))]
    about = {
        "name": target.name, "kind": target.kind, "backend": target.library, "dtypes": list(target.dtypes),
        "claims": dict(target.claims), "versions": dict(target.versions), "notes": notes,
        "reproduce": target.reproduce,
    }  # fmt: skip
    version = load_manifest(suite)["suite"]
    sums = {"version": version, "sha256": tensors.digest((suite / "SUITE.json").read_bytes())["sha256"]}
    return Report(about, sums, tier, operations, missing, complete, part_of(suite, tier, case))


def part_of(suite: Path, tier: str, case: str | None) -> str:
    """Return what is asked, where it is not a whole tier of the installed suite, on which alone conformance is spoken of."""
    parts = [f"case {case}"] if case is not None else ["one case of each operation"] if tier == "smoke" else []
    if suite != INSTALLED and (suite / "SUITE.json").read_bytes() != (INSTALLED / "SUITE.json").read_bytes():
        parts.append(f"the suite in {suite}")
    return ", ".join(parts)


def check_call(function: Callable[..., Any], *, op: str, **options: Any) -> Report:
    """Return what one function does on the vectors of the operation `op`; `options` are those of `check`."""
    stated = {
        n: getattr(function, n)
        for n in ("backend", "dtypes", "claims", "scalings", "supports", "in_place")
        if hasattr(function, n)
    }
    implementation = SimpleNamespace(**stated, **{op: function}, __name__=getattr(function, "__name__", op))
    return check(implementation, op=op, **options)


def _holds(entry: Mapping[str, Any], only: str | None, smoke: Collection[str]) -> bool:
    """Return whether a group may hold a case that is asked: the one, or one of `smoke`. Files of others are not read."""
    if only is not None:
        return only in entry["cases"]
    listed = any(case.startswith(f"{entry['op']}/") for case in smoke)
    return not listed or any(case in smoke for case in entry["cases"])


def _wanted(case: LoadedCase, tier: str, only: str | None) -> bool:
    return case.id == only if only is not None else tier != "smoke" or case.tier == "smoke"


def _planned(
    target: Target, operations: list[tuple[Operation, list[Answer]]], cases: list[LoadedCase], missing: tuple[str, ...],
    tier: str, suite: Path, case: str | None,
) -> Report:  # fmt: skip
    """Return the report as it is if nothing is asked."""
    planned = [
        replace(o, cases=[unasked(target, c, o.dtype) for c in cases if c.op == o.op and asked_in(c, o.dtype)])
        for o, _ in operations
    ]
    return _report(target, planned, missing, tier, suite, case)


def _fill(operation: Operation, answers: list[Answer], target: Target, cases: list[LoadedCase], watch: Watch) -> None:
    """Ask one operation's cases in one dtype."""
    for case in cases:
        if not asked_in(case, operation.dtype):
            continue
        watch("asking", [case.id, operation.dtype])
        answer = Answer(case, operation.dtype)
        result = ask(target, case, operation.dtype, answer)
        if result.verdict == NOT_JUDGED:
            operation.unjudged.append(result)
            continue
        operation.cases.append(result)
        answers.append(answer)
        watch("answered", result)
