"""What fuzzing found: as a suite that `posref check` and `posref vectors verify` take, and in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from posref.core.composition import stages
from posref.spec import REGISTRY

from ..model import FUZZ, Case
from ..proof.build import write_suite
from ..reports.terminal import plain
from .drawn_case import written
from .hunt import Find, case_id
from .plan import Findings

SHOWN = 1000  # characters of a call
REASONS = 5


def write(findings: Findings, directory: Path) -> Path:
    """Write the failures as a suite, one group for each operation; nothing but a suite is replaced."""
    by_op = {op: [_case(find, findings.seed) for find in findings.finds if find.op == op] for op in REGISTRY}
    write_suite("fuzz", directory, by_op, FUZZ)
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
