"""
Fuzzing: draws random calls, judges them against values proved on the spot, and shrinks the first failure of each operation.

Draws are numbered. Draw i of an operation in a dtype depends on the seed alone, so that a longer run finds what a shorter one
did and more, and a cluster what one process does. Failures are written as a suite and shown in a terminal.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from posref.core.composition import stages
from posref.spec import REGISTRY

from ..errors import TargetError, no_operation
from ..model import Case
from ..proof.build import write_suite
from ..reports.terminal import plain
from .hunt import Asking, Find, Hunt, Pair, Plan, Progress, Searched, Tally, Task, case_id, plan_of, written

ROUNDS = (5, 10, 20, 40)  # draws of an operation before the next one is drawn from; the last for all later rounds
SECONDS = 60.0
FEWEST = 10  # judged draws from which a run says something
SHOWN = 1000  # characters of a call
REASONS = 5
Search = Callable[[Sequence[Task]], list[Searched]]  # what each task gave, as far as time allowed


@dataclass
class Findings:
    """The failures that a run found, with the counts of its draws."""

    plan: Plan
    seed: int
    tallies: dict[Pair, Tally]
    finds: list[Find] = field(default_factory=list)
    complete: bool = True
    folder: Path | None = None
    least: int = FEWEST  # judged draws from which it says something

    @property
    def tally(self) -> Tally:
        """All draws together."""
        return sum(self.tallies.values(), Tally())

    @property
    def exit_code(self) -> int:
        """0 nothing found; 1 found; 2 interrupted before anything was found, or next to nothing could be judged."""
        if self.finds:
            return 1
        return 0 if self.complete and not self.is_poor else 2

    @property
    def judged(self) -> int:
        """How many draws were judged."""
        return self.tally.verdicts.total() - self.tally.verdicts["unsupported"]

    @property
    def is_poor(self) -> bool:
        """Whether too few draws were judged for a conclusion."""
        return self.judged < self.least


def fuzz(
    target: Any = None,
    *,
    seconds: float | None = None,
    examples: int | None = None,
    seed: int = 0,
    op: str | Sequence[str] | None = None,
    scheduler: str | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Findings:
    """
    Return what fails of an implementation on calls drawn at random, the smallest call for every operation and dtype.

    An interruption from the keyboard gives what was found so far.

    Parameters
    ----------
    target : str, module or object, optional
        As for `check`; ``command`` among the options takes its place.
    seconds : float, optional
        How long to draw; 60 unless `examples` says how much. A failure that is found is shrunk however long that takes.
    examples : int, optional
        The number of draws for every operation and dtype.
    seed : int
        Where the draws begin: the same seed, target and version of hypothesis find the same failures.
    op : str or list of str, optional
        Only these operations.
    scheduler : str, optional
        The address of a dask.distributed scheduler over which the draws are spread; its workers load the target by its name.
    output : path, optional
        The folder of a suite with the failures, written if there are any; one that is there is replaced.
    progress : callable, optional
        Called with what is being asked.
    options
        Of the target: ``command``, ``timeout``, ``memory``, ``backend``, ``dtype``, ``claim``, ``trig`` and
        ``device``, as for `check`.

    Raises
    ------
    TargetError
        If the target cannot be loaded, here or on a worker, or has not the operation.
    """
    wanted = None if op is None else (op,) if isinstance(op, str) else tuple(op)
    unknown = [name for name in wanted or () if name not in REGISTRY]
    if unknown:
        raise TargetError(no_operation("fuzz: op", unknown[0]))
    seconds = SECONDS if seconds is None and examples is None else seconds
    until = None if seconds is None else time.monotonic() + seconds
    settings = {"target": target, **options}
    if scheduler is None:
        asking = Asking(settings)
        try:
            plan = plan_of(asking.target, wanted)
            for pair in plan.pairs if len(plan.pairs) <= FEWEST else ():
                asking.trial(*pair)  # what it refuses is learned before the time of the draws begins
            until = None if seconds is None else time.monotonic() + seconds
            findings = _run(plan, seed, examples, until, partial(_search, asking, seed, until, progress))
        finally:
            asking.target.close()
    else:
        from .dask_cluster import Cluster

        with Cluster.connected(scheduler, settings, seed, until, progress) as cluster:
            findings = _run(cluster.plan(wanted), seed, examples, until, cluster.search, cluster.workers)
    if findings.finds and output is not None:
        by_op = {name: [_case(find, seed) for find in findings.finds if find.op == name] for name in REGISTRY}
        write_suite(output, by_op)
        findings.folder = output
    return findings


def _search(asking: Asking, seed: int, until: float | None, progress: Progress | None, tasks: Sequence[Task]) -> list[Searched]:
    """Return what each of `tasks` gave in this process, as far as time allowed."""
    result = []
    for op, dtype, first, last in tasks:
        result.append(Hunt(asking, op, dtype, seed).search(first, last, until, progress))
        if not result[-1].complete:
            break
    return result


def _rounds(examples: int | None, wide: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of draws, short ones first, so that every operation has its turn soon; `wide` is how many go at a time."""
    first, turn = 0, 0
    while examples is None or first < examples:
        last = first + wide * ROUNDS[min(turn, len(ROUNDS) - 1)]
        yield first, last if examples is None else min(last, examples)
        first, turn = last, turn + 1


def _run(plan: Plan, seed: int, examples: int | None, until: float | None, search: Search, workers: int = 1) -> Findings:
    """Search round after round where nothing was found yet, until time or draws are used up."""
    findings = Findings(plan, seed, {pair: Tally() for pair in plan.pairs})
    findings.least = FEWEST if examples is None else min(FEWEST, examples)
    for first, last in _rounds(examples, -(-workers // len(plan.pairs))):
        failed = {(find.op, find.dtype) for find in findings.finds}
        left = [pair for pair in plan.pairs if pair not in failed]
        if not left or (until is not None and time.monotonic() >= until):
            break
        results = search([(*pair, first, last) for pair in left])
        for pair, result in zip(left, results, strict=False):
            findings.tallies[pair] += result.tally
            findings.finds += [result.find] if result.find else []
        if len(results) < len(left) or not all(result.complete for result in results):
            findings.complete = until is not None and time.monotonic() >= until  # else it was the keyboard
            break
    return findings


def _case(find: Find, seed: int) -> Case:
    comment = f"posref fuzz --seed {seed}: draw {find.draw} in {find.dtype}, shrunk"
    name = case_id(find.op, seed, find.dtype)
    return Case(name, find.call.params, find.call.inputs, comment)


def show(findings: Findings, console: Console) -> None:
    """Print what was found, how it can be repeated, and what was drawn."""
    for find in findings.finds:
        for line in _lines(find, findings):
            console.print(line, soft_wrap=True)  # to copy
    tally = findings.tally
    for reason, count in tally.reasons.most_common(REASONS):
        console.print(f"not judged: {plain(reason)} ({count})")
    for doubt in dict.fromkeys(tally.doubts):
        console.print(f"[yellow]about posref itself, please report it[/yellow]: {plain(doubt[:SHOWN])}")
    silent = [f"{op} {dtype}" for (op, dtype), t in findings.tallies.items() if {*t.verdicts} == {"unsupported"}]
    if silent:
        console.print(f"nothing judged of {', '.join(silent)}: all draws were refused")
    judged = findings.judged
    pairs = sum(t.verdicts.total() > 0 for t in findings.tallies.values())
    calls = f"{judged} call{'s' * (judged != 1)}"
    what = f"{calls} judged in {pairs} of {len(findings.tallies)} operations and dtypes, seed {findings.seed}"
    outcome = f"[bold red]{len(findings.finds)} FAIL[/bold red]" if findings.finds else "[bold green]nothing found[/bold green]"
    console.print(f"{outcome}: {what}{'' if findings.complete else ', interrupted'}")
    if findings.is_poor and not findings.finds:
        console.print(f"too few calls were judged to say anything: {judged} of {tally.verdicts.total()} draws")
    if findings.folder is not None:
        console.print(f"written to {plain(str(findings.folder))}")


def _lines(find: Find, findings: Findings) -> Iterator[str]:
    """Yield the lines about one failure."""
    yield f"[bold]{find.op}[/bold] {find.dtype}: [red]{find.result.verdict}[/red] {plain(find.result.message)}"
    yield f"  call: {plain(written(find.op, find.call)[:SHOWN])}"
    failed = {other.op for other in findings.finds if other.dtype == find.dtype}
    stage = next((stage for stage in stages(find.op) if stage in failed), None)
    if stage:
        yield f"  its stage {stage} fails too: look there first"
    if find.diagnosis:
        yield f"  diagnosis: {plain(find.diagnosis)}"
    if find.note:
        yield f"  note: {find.note}"
    if findings.folder is not None:
        case = f"--case {case_id(find.op, findings.seed, find.dtype)} --dtype {find.dtype}"
        yield f"  repeat: {plain(findings.plan.reproduce)} --suite {plain(shlex.quote(str(findings.folder)))} {case}"
