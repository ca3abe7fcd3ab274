"""The check of an implementation: every case asked, every answer judged, every failure explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from posref.spec import REGISTRY

from ..errors import TargetError
from ..model import Answer, LoadedCase, Operation
from ..reports.report import Report
from ..suite import tensors
from ..suite.reading import INSTALLED, load_groups, load_manifest, withdrawn_cases
from ..target.base import Target
from ..target.loading import load
from .asking import ask, asked_dtypes, asked_in
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
