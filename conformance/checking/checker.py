"""The check of an implementation: every case asked, every answer judged, every failure explained."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..calls import held_to
from ..evidence.every import model_calls
from ..model import NOT_JUDGED, Answer, LoadedCase, Operation
from ..reports.report import Report
from ..suite import tensors
from ..suite.reading import INSTALLED, load_manifest
from ..target.base import Target
from ..target.loading import load
from . import demands, kernel
from .apart import Told, Watch, check_apart
from .asking import ask, asked_dtypes, asked_in, unasked
from .choice import Choice
from .guard import Guard
from .scope import ENOUGH
from .settling import settle, stated_scope
from .summary import finish

Progress = Callable[[str], None]


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
    model: str | None = None,
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
        Which cases are asked: one of each operation, those of the suite, or also calls of the sizes where kernels break.
    backend, dtype, claim, device : optional
        In place of what the implementation states.
    trig : float, optional
        The absolute error that its sines and cosines may have besides.
    suite : path
        The vectors; the installed ones by default.
    model : str, optional
        A preset's name, or the path of a config.json (with ``:layer_type`` where layers differ). The cases with the words of
        its options are asked, and calls of its own sizes and positions, which all must be answered.
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
        "claim": claim, "trig": trig, "device": device, "model": model,
    }  # fmt: skip
    required = demands.read(require, Path(suite), op=op, case=case, tier=tier)

    watch = Told(progress)
    if child and command is None and outputs is None and not isolate:
        report = check_apart(target, options, watch)
    else:
        report = checked(target, command=command, outputs=outputs, isolate=isolate, memory=memory, watch=watch, **options)
    report.unmet += demands.unmet(required, report)
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
    model: str | None = None,
    **options: Any,
) -> Report:
    """Return the report of a check, in this process; `watch` hears of every step, and `loading` returns the target."""
    choice = Choice(suite, tier, op, case, None if model is None else model_calls.read(model))
    names = choice.operations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
        guard = Guard()
        loaded = loading(target, suite=suite, **options)
        try:
            missing = tuple(name for name in names if not loaded.has(name))
            cases = choice.cases([name for name in names if name not in missing])
            guard.hold(cases)
            if choice.suite != INSTALLED:
                loaded.reproduce += f" --suite {shlex.quote(str(choice.suite))}"
            if choice.model is not None:
                loaded.reproduce += f" --for {shlex.quote(choice.model.name)}"
                loaded.scalings = (*loaded.scalings, *choice.model.scalings)
            return _trusted(_check(loaded, choice, cases, missing, watch), guard.changed())
        finally:
            loaded.close()


def _trusted(report: Report, changed: str) -> Report:
    """Return a report, in which nothing passes if the implementation changed something of the check itself."""
    for case in [case for operation in report.operations for case in operation.cases] if changed else ():
        case.verdict, case.message = "protocol", f"the implementation changed what judges it: {changed}"
    return report


def _check(target: Target, choice: Choice, cases: list[LoadedCase], missing: tuple[str, ...], watch: Watch) -> Report:
    """Return the report on loaded cases."""
    stated = stated_scope(target)
    operations = [
        (Operation(name, width, held_to(name, target.claims[width]), []), list[Answer]())
        for name in dict.fromkeys(c.op for c in cases)
        for width in asked_dtypes(target, name)
        if any(c.op == name and asked_in(c, width) for c in cases)
    ]
    watch("planned", _planned(target, choice, operations, cases, missing))
    complete = True
    try:
        for refusals in (False, True):  # what must be refused comes last: a program may end on each, and be asked no more
            for operation, answers in operations:
                own = [c for c in cases if c.op == operation.op and (c.kind == "reject") == refusals]
                _fill(operation, answers, target, own, watch)
    except KeyboardInterrupt:
        complete = False
    enough = ENOUGH if choice.model is None else 1  # its own calls are what must be answered
    settle(operations, target, stated, watch, whole=complete and choice.is_whole, enough=enough)
    finish(operations)
    return _report(target, choice, [o for o, _ in operations], missing, complete=complete)


def _report(
    target: Target, choice: Choice, operations: list[Operation], missing: tuple[str, ...], *, complete: bool = True
) -> Report:
    """Return the report of a target's operations."""
    notes = [*target.remarks(), *(note for operation in operations for note in kernel.notes(operation))]
    notes += [] if choice.model is None else [f"asked for {choice.model.text}"]
    about = {
        "name": target.name, "kind": target.kind, "backend": target.library, "dtypes": list(target.dtypes),
        "claims": dict(target.claims), "versions": dict(target.versions), "notes": notes,
        "reproduce": target.reproduce,
    }  # fmt: skip
    version = load_manifest(choice.suite)["suite"]
    sums = {"version": version, "sha256": tensors.digest((choice.suite / "SUITE.json").read_bytes())["sha256"]}
    report = Report(about, sums, choice.tier, operations, missing, complete, choice.part)
    return report if choice.model is None else _for_model(report, choice.model)


def _for_model(report: Report, model: model_calls.Model) -> Report:
    """Return a report that is about one model, all of whose calls must be answered."""
    report.model = model.name
    for name in dict.fromkeys(operation.op for operation in report.operations):
        own = [case for o in report.operations for case in o.cases if case.op == name and model_calls.is_of_model(case.id)]
        refused = [case for case in own if case.verdict in ("unsupported", "selective")]
        if refused:
            text = f"{name} refuses {len(refused)} of {len(own)} calls of {model.name}: {refused[0].message}"
            report.unmet = (*report.unmet, text)
    return report


def check_call(function: Callable[..., Any], *, op: str, **options: Any) -> Report:
    """Return what one function does on the vectors of the operation `op`; `options` are those of `check`."""
    stated = {
        n: getattr(function, n)
        for n in ("backend", "dtypes", "claims", "scalings", "supports", "in_place")
        if hasattr(function, n)
    }
    implementation = SimpleNamespace(**stated, **{op: function}, __name__=getattr(function, "__name__", op))
    return check(implementation, op=op, **options)


def _planned(
    target: Target, choice: Choice, operations: list[tuple[Operation, list[Answer]]], cases: list[LoadedCase],
    missing: tuple[str, ...],
) -> Report:  # fmt: skip
    """Return the report as it is if nothing is asked."""
    planned = [
        replace(o, cases=[unasked(target, c, o.dtype) for c in cases if c.op == o.op and asked_in(c, o.dtype)])
        for o, _ in operations
    ]
    return _report(target, choice, planned, missing)


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
