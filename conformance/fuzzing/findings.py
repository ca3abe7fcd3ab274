"""The plan and the findings of fuzzing: failures are written as a suite and shown in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from posref.core.composition import stages
from posref.spec import REGISTRY

from ..checks.case_run import asked_dtypes
from ..errors import TargetError
from ..model import FUZZ, Case
from ..proof.build import write_suite
from ..reports.terminal import plain
from ..targets.base import Target
from ..targets.loader import load
from .hunt import Asking, Find, Tally, case_id, written

Pair = tuple[str, str]  # operation, dtype
LoadOptions = Mapping[str, Any]
Task = tuple[str, str, int, int]  # operation, dtype, first draw, the draw after the last


@dataclass(frozen=True)
class Plan:
    """The plan of a run: the name of the target, and the operations and dtypes to draw calls of."""

    name: str
    reproduce: str
    pairs: tuple[Pair, ...]


@dataclass
class Findings:
    """The failures that a run found, with the counts of its draws."""

    plan: Plan
    seed: int
    tallies: dict[Pair, Tally]
    finds: list[Find] = field(default_factory=list)
    complete: bool = True
    folder: Path | None = None

    @property
    def tally(self) -> Tally:
        """All draws together."""
        return sum(self.tallies.values(), Tally())

    @property
    def exit_code(self) -> int:
        """0 nothing found; 1 found; 2 interrupted before anything was found, or nothing could be judged."""
        if self.finds:
            return 1
        judged = self.tally.verdicts.total() - self.tally.verdicts["unsupported"]
        return 0 if self.complete and judged else 2


def opened(options: LoadOptions) -> Asking:
    """Return a target that can be opened again."""
    return Asking(partial(load, **options), load(**options))


def plan_of(target: Target, ops: Collection[str] | None) -> Plan:
    """Return the plan for a target: its operations, or those of `ops` that it has."""
    wanted = [name for name in REGISTRY if (ops is None or name in ops) and target.has(name)]
    if not wanted:
        msg = f"{target.name}: has no {'operation' if ops is None else ', '.join(ops)}."
        raise TargetError(msg)
    return Plan(target.name, target.reproduce, tuple((n, d) for n in wanted for d in asked_dtypes(target, n)))


SHOWN = 1000  # characters of a call
REASONS = 5


def write(findings: Findings, directory: Path) -> Path:
    """Write the failures as a suite, one group for each operation; nothing but a suite is replaced."""
    by_op = {op: [_case(find, findings.seed) for find in findings.finds if find.op == op] for op in REGISTRY}
    write_suite(directory, by_op, FUZZ)
    return directory


def _case(find: Find, seed: int) -> Case:
    comment = f"posref fuzz --seed {seed}: draw {find.draw} in {find.dtype}, shrunk"
    name = case_id(find.op, seed, find.dtype)
    return Case(name, find.call.params, find.call.inputs, ("fuzz",), comment)


def show(findings: Findings, console: Console) -> None:
    """Print what was found, how it can be repeated, and what was drawn."""
    for find in findings.finds:
        for line in _lines(find, findings):
            console.print(line)
    tally = findings.tally
    for reason, count in tally.reasons.most_common(REASONS):
        console.print(f"not judged: {count} draws: {plain(reason)}")
    for doubt in dict.fromkeys(tally.doubts):
        console.print(f"[yellow]about posref itself, please report it[/yellow]: {plain(doubt[:SHOWN])}")
    judged = tally.verdicts.total() - tally.verdicts["unsupported"]
    pairs = sum(t.verdicts.total() > 0 for t in findings.tallies.values())
    what = f"{judged} calls judged in {pairs} of {len(findings.tallies)} operations and dtypes, seed {findings.seed}"
    outcome = f"[bold red]{len(findings.finds)} FAIL[/bold red]" if findings.finds else "[bold green]nothing found[/bold green]"
    console.print(f"{outcome}: {what}{'' if findings.complete else ', interrupted'}")
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
