"""The check of an implementation: choose cases, run them, judge the answers, find the scope, explain failures, report."""

from __future__ import annotations

import gc
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..accuracy import UNIT
from ..calls import class_of_claim
from ..model import NOT_JUDGED, Answer, CaseResult, LoadedCase, Operation
from ..reports.report import Report
from ..suite import tensors
from ..suite.reader import INSTALLED, load_manifest
from ..targets import limits
from ..targets.base import PROCESSES, Target
from ..targets.loader import load
from ..targets.program import Program, Session
from . import scope_statement
from .case_run import TIER, answered, asked_dtypes, asked_in, cases_in, is_repeated, notes_on_unjudged, report_state
from .choice import Choice
from .conclusion import report_unanswered, summarise_and_diagnose
from .fresh_calls import ask_fresh_calls
from .halves import beside, halves
from .learned_scope import CALLS, INSIDE, Progress, Trials
from .scope_result import add_scopes, report_scope, stated_scope

if TYPE_CHECKING:
    from ..evidence.every.for_model import Model

LARGE = 4  # times as many calls inside of a narrow scope in the tier of large sizes
SELDOM = 50_000  # new objects until a process that only checks looks for circles of garbage: a check leaves few, and holds many


def check(
    target: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    outputs: str | Path | None = None,
    timeout: float = limits.TIMEOUT,
    memory: float = limits.MEMORY,
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
    layer: int | None = None,
    layout: str | None = None,
    component: str | None = None,
    require: str | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    seed: int | None = None,
    experiments: int = CALLS,
    batch_invariant: bool = False,
    jobs: int | None = 1,
) -> Report:
    """
    Return what an implementation does on the golden vectors.

    An interruption from the keyboard gives the report as far as it came, marked incomplete.

    Parameters
    ----------
    target : str, module or object, optional
        A built-in adapter's name, ``module``, ``module:object``, ``file.py``, or the thing itself. A name is loaded in a
        process of its own, which computes and is never told an expected value: whatever it does there is a verdict. A module
        or object stays in this process, and is trusted.
    command : str or list of str, optional
        Instead, a program that speaks the protocol over its standard input and output.
    outputs : path, optional
        Instead, a folder of exported requests with the results that someone computed for them.
    timeout, memory : float
        Seconds for each call, and GiB, of a program or a target that is given by name; memory 0 is no limit.
    op : str or list of str, optional
        Only these operations.
    case : str, optional
        Only this case.
    tier : {"smoke", "core", "kernel"}
        Which cases are asked: one of each operation, those of the suite, or also calls of the sizes where kernels break.
    backend, dtype, claim, device : optional
        In place of what the implementation states.
    trig : float, optional
        The absolute error that its sines and cosines may have besides, at most 0.0008.
    suite : path
        The vectors; the installed ones by default.
    model : str, optional
        A preset's name, or the path of a config.json or GGUF file. Only the calls that its layers make are asked, of every
        component and kind of layer, and all must be answered. With ``:layer_type`` behind the path, those of such layers.
    layer : int, optional
        The number of one layer of `model`, from 0. A layer that does not rotate must return `x` unchanged.
    layout : str, optional
        The layout of `model`, in place of the file's: "half", "interleaved" or "interleaved_to_half".
    component : str, optional
        One component of `model`, such as "text" or "indexer".
    require : str or dict, optional
        What its scope must have: words, a JSON file, or a dict as of `supports`.
    progress : callable, optional
        Called with the id of every case as it begins.
    seed : int, optional
        Ask what passed some fresh calls too, drawn by this seed, so that a table of the suite's answers fails.
    experiments : int
        How many calls of every operation and dtype may be asked besides, to find why some were refused or wrong; 0: none.
    batch_invariant : bool
        Also compare rows among others with rows alone, in every bit. It changes no verdict: `batch` of the report has what was
        found.
    jobs : int, optional
        With 2, or None where there are two cores, a process beside this one asks half of many operations, of a target of its
        own by the same name. A target on a `device` is loaded once.

    Raises
    ------
    TargetError, VectorError, BackendMissing
        If the check cannot run.
    """
    suite = Path(suite)
    required = scope_statement.require(require, suite, op=op, case=case, tier=tier)
    about = None
    if model is not None:
        from ..evidence.every import for_model  # other checks do not import what reads models

        about = for_model.read(model, layer, layout, component)
    choice = Choice(suite, tier, op, case, about)
    names = choice.operations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
        begin = partial(
            load, command=command, outputs=outputs, suite=suite, timeout=timeout, memory=memory, backend=backend, dtype=dtype,
            claim=claim, trig=trig, device=device,
        )  # fmt: skip
        loaded = begin(target)
        try:
            missing = tuple(name for name in names if not loaded.has(name))
            offered = [name for name in names if name not in missing]
            loaded.reproduce += _flags(choice, layer, layout, component)
            loaded.scalings = (*loaded.scalings, *(choice.model.scalings if choice.model is not None else ()))
            asking = Asking(choice, seed, experiments, batch_invariant)
            divided = isinstance(loaded, Program) and choice.model is None and case is None and device is None
            same = target.again() if isinstance(target, Session) else target
            again = partial(begin, same, path=[*sys.path]) if divided else None  # modules are where this process has them
            findings = _ask_in_halves(loaded, again, asking, offered, jobs, progress)
            report = _report(loaded, asking, findings, missing)
        finally:
            loaded.close()
    report.unmet += scope_statement.unmet(required, report, by_name=op is not None)
    return report


def _flags(choice: Choice, layer: int | None, layout: str | None, component: str | None) -> str:
    """Return the flags with which a command asks of the same choice."""
    flags = "" if choice.suite == INSTALLED else f" --suite {shlex.quote(str(choice.suite))}"
    if choice.model is not None:
        named = {"for": choice.model.name, "layer": layer, "layout": layout, "component": component}
        flags += "".join(f" --{name} {shlex.quote(str(value))}" for name, value in named.items() if value is not None)
    return flags


@dataclass(frozen=True)
class Asking:
    """What is asked of a target besides its stored cases, and how those are chosen."""

    choice: Choice
    seed: int | None
    experiments: int
    batch: bool


@dataclass
class Findings:
    """What was found of some operations."""

    operations: list[Operation]
    complete: bool
    fits: list[str]  # remarks on mistakes that fit better than the definition
    fresh: int  # calls drawn afresh
    alone: bool  # whether a scope comes from stored cases alone
    batch: list[Mapping[str, Any]] | None
    remarks: tuple[str, ...]  # of the target

    def add(self, other: Findings | None, names: Sequence[str]) -> None:
        """Add what another process found of others, if it ended, in the order of all names."""
        if other is None:
            self.complete = False
            return
        self.operations = sorted([*self.operations, *other.operations], key=lambda one: names.index(one.op))
        self.complete &= other.complete
        self.fits += other.fits
        self.fresh += other.fresh
        self.alone |= other.alone
        self.batch = None if self.batch is None or other.batch is None else [*self.batch, *other.batch]
        self.remarks = tuple(dict.fromkeys((*self.remarks, *other.remarks)))


def _ask_in_halves(
    target: Target, again: Callable[[], Target] | None, asking: Asking, ops: Sequence[str], jobs: int | None,
    progress: Progress | None,
) -> Findings:  # fmt: skip
    """Return what is found of operations, half of them by another process where there are many and it can begin `again`."""
    here, there = halves(asking.choice.sizes(ops), jobs) if again else ([*ops], [])
    if not there:
        return _ask_operations(target, asking, here, progress)
    with beside(_ask_beside, again, asking, there, target.reproduce) as other:
        findings = _ask_operations(target, asking, here, progress)
        findings.add(other(stop=not findings.complete), ops)
    return findings


def _ask_beside(begin: Callable[[], Target], asking: Asking, ops: Sequence[str], reproduce: str) -> Findings:
    """Return what a process beside that of the check finds of operations of a target that it begins."""
    gc.set_threshold(SELDOM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = begin()
        target.reproduce = reproduce
        try:
            return _ask_operations(target, asking, ops, None)
        finally:
            target.close()


def _ask_operations(target: Target, asking: Asking, ops: Sequence[str], progress: Progress | None) -> Findings:
    """Return what is found of some operations of a target."""
    choice, seed = asking.choice, asking.seed
    stated = stated_scope(target)
    by_op: dict[str, list[LoadedCase]] = {}
    for case in choice.cases(ops):
        by_op.setdefault(case.op, []).append(case)
    operations = [
        (Operation(name, width, class_of_claim(name, target.claims[width]), []), list[Answer]())
        for name, cases in by_op.items()
        for width in asked_dtypes(target, name)
        if any(asked_in(case, width) for case in cases)
    ]
    repeated = partial(is_repeated, target, seed) if seed is not None and choice.is_whole and choice.tier != TIER else None
    target.repeated = repeated
    complete = _ask_cases(target, operations, by_op, progress)
    target.repeated = None
    asks_all = choice.model is None  # else no call is asked that no layer of the model makes
    inside_calls = INSIDE * (LARGE if choice.tier == TIER else 1)
    trials = Trials(target, asking.experiments if asks_all else 0, seed or 0, progress, inside_calls)
    add_scopes(operations, target, stated, trials, whole=complete and choice.is_whole)
    fresh = 0
    fresh_asked = seed is not None and complete and target.kind != "outputs" and asks_all
    if seed is not None and fresh_asked:
        target.repeated = repeated
        fresh = ask_fresh_calls(operations, stated, seed, trials, whole=choice.case is None)
    alone = asks_all and not trials.can_ask() and any(o.counts["unsupported"] and o.op not in stated for o, _ in operations)
    summarise_and_diagnose(operations, trials)
    _report_other_layers(operations, choice.model)
    fits = []
    if any(o.dtype in UNIT for o, _ in operations):
        from .better_fit import better_fit  # the known mistakes take long to load, and only half precision asks for them
        from .fine_calls import fine_answers

        fine = [fine_answers(o, answers, trials, seed or 0) if fresh_asked else [] for o, answers in operations]
        fits = [text for (o, answers), cases in zip(operations, fine, strict=True) if (text := better_fit(o, answers, cases))]
    target.repeated = None
    if complete and not all(operation.conformant for operation, _ in operations):
        from .failure_causes import report_failure_causes  # takes long to load, and what conforms needs none

        report_failure_causes(operations, trials)
    if target.kind == "python":
        report_unanswered(operations)
    report_scope(operations, stated)
    if complete:
        report_state(operations, target)
    rows = _batch(trials.target, operations) if asking.batch and complete else None
    trials.close()
    for operation, _ in operations:
        if operation.diagnosis is not None:  # what it was for is done
            operation.diagnosis = {n: value for n, value in operation.diagnosis.items() if n not in ("whole", "trait")}
    return Findings([o for o, _ in operations], complete, fits, fresh, alone, rows, target.remarks())


def _batch(target: Target, operations: list[tuple[Operation, list[Answer]]]) -> list[Mapping[str, Any]] | None:
    """Measure batch invariance; None if the target can answer stored calls alone."""
    if target.kind == "outputs":
        return None
    from .batch_invariance import batch_invariance  # other checks do not ask for it

    return [one.to_json() for one in batch_invariance(target, operations)]


def _ask_cases(
    target: Target, operations: Sequence[tuple[Operation, list[Answer]]], by_op: Mapping[str, Sequence[LoadedCase]],
    progress: Progress | None,
) -> bool:  # fmt: skip
    """Run the stored cases and put results and answers into `operations`; return whether all ran."""
    asked = [(o, answers, case) for o, answers in operations for case in cases_in(target, by_op[o.op], o.dtype)]
    asked.sort(key=lambda one: one[2].kind == "reject")  # comes last: a program may end on each, and be asked no more
    expect = getattr(progress, "expect", None)  # a display wants to know how many cases there are
    if expect is not None:
        expect(len(asked))
    later = _Later()
    target.meanwhile = later.finish
    try:
        for operation, answers, case in asked:
            if progress:
                progress(case.id)
            answer = Answer(case, operation.dtype)
            judge = answered(target, case, operation.dtype, answer)
            later.finish()
            later.keep = partial(_keep, operation, answers, answer, judge)
        later.finish()
    except KeyboardInterrupt:
        later.finish()
        return False
    finally:
        target.meanwhile = None
    return True


class _Later:
    """What is left to do for the last case: to judge it, while the next one is computed."""

    keep: Callable[[], None] | None = None

    def finish(self) -> None:
        """Do it, unless it is done."""
        if self.keep is not None:
            self.keep()
            self.keep = None


def _keep(operation: Operation, answers: list[Answer], answer: Answer, judge: Callable[[], CaseResult]) -> None:
    """Put the result and the answer of a case where the report looks for them."""
    result = judge()
    if result.verdict == NOT_JUDGED:
        operation.unjudged.append(result)
    else:
        operation.cases.append(result)
        answers.append(answer)


def _report_other_layers(operations: list[tuple[Operation, list[Answer]]], model: Model | None) -> None:
    """Say whose options the failing calls of a model's layers fit."""
    if model is not None:
        from .other_layers import report_other_layers  # with what reads models

        report_other_layers(operations, model)


def _report(target: Target, asking: Asking, findings: Findings, missing: tuple[str, ...]) -> Report:
    """Return the report of what was found of a target."""
    choice, operations = asking.choice, findings.operations
    notes = [*findings.remarks, *findings.fits]
    notes += [f"{findings.fresh} fresh calls as well (repeat them with --seed {asking.seed})"] if findings.fresh else []
    notes += ["the scope comes from stored cases only, without experiments"] if findings.alone else []
    notes += [note for operation in operations for note in notes_on_unjudged(operation)]
    notes += [f"computed {PROCESSES['plain']}"] if target.process == "plain" else []
    notes += [] if choice.model is None else [f"asked for {choice.model.text}"]
    about = {
        "name": target.name, "kind": target.kind, "backend": target.library, "dtypes": list(target.dtypes),
        "claims": dict(target.claims), "versions": dict(target.versions), "notes": notes,
        "reproduce": target.reproduce, "process": target.process,
    }  # fmt: skip
    version = load_manifest(choice.suite)["suite"]
    sums = {"version": version, "sha256": tensors.digest((choice.suite / "SUITE.json").read_bytes())["sha256"]}
    report = Report(about, sums, choice.tier, operations, missing, findings.complete, choice.part, batch=findings.batch)
    return report if choice.model is None else _for_model(report, choice.model)


def _for_model(report: Report, model: Model) -> Report:
    """Return a report that is about one model, all of whose calls must be answered."""
    from ..evidence.every.model_cases import is_of_model

    report.model = model.name
    for name in dict.fromkeys(operation.op for operation in report.operations):
        of_model = [case for o in report.operations for case in o.cases if case.op == name and is_of_model(case.id)]
        refused = [case for case in of_model if case.verdict in ("unsupported", "selective")]
        if refused:
            text = f"{name} refuses {len(refused)} of {len(of_model)} calls of {model.name}: {refused[0].message}"
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
