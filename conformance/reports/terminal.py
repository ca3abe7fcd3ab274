"""A report in a terminal: what is wrong and how to repeat it, one line for each operation, the scope, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from ..errors import printable
from ..model import BAD, STANDINGS, Operation
from .document import SHOWN, batch_lines, class_names, failing, meanings, ratio, samples, scope_lines, verdict_text
from .report import Report

COLOURS = {"pass": "green", "in scope": "green", "selective": "yellow", "too narrow": "yellow", "no values": "yellow"}
COLUMNS = {  # of the table, each with the width of a terminal from which it is shown
    "operation": 0, "dtype": 0, "verdict": 0, "achieved": 76, "claimed": 92, "error/bound": 76, "cases": 0,
}  # fmt: skip
NAMED = 6  # more missing operations than this are only counted: `posref list` and the other forms of a report name them


def show(report: Report, console: Console) -> None:
    """Print a report."""
    versions = ", ".join(f"{name} {number}" for name, number in report.target["versions"].items())
    of = f" ({plain(versions)})" if versions else ""
    console.print(f"[bold]{plain(report.target['name'])}[/bold]{of} on vectors {report.suite['version']}, tier {report.tier}")
    document = report.to_json()
    hints = set[str]()  # each is printed once, with the first operation that has it
    for same in _alike(report.operations):
        _explain(same[0], same[1:], console, hints)
    for lacking in report.unmet:
        console.print(f"required: {plain(lacking)}")
    console.print(_table(report, console.width))
    for line in (*scope_lines(document), *meanings(document)):
        console.print(plain(line))
    for note in report.target.get("notes", ()):
        console.print(f"note: {plain(note)}")
    for line in batch_lines(document):
        console.print(plain(line))
    rejected, asked = report.validation
    if asked:
        console.print(f"invalid calls rejected: {rejected} of {asked} (informational)")
    console.print(verdict(report, verdict_text(document)))


def verdict(report: Report, word: str) -> str:
    """Return the closing line: the overall verdict, and the cases that passed, failed and lie outside."""
    counts = report.counts
    fresh = sum(scope.fresh for scope in report.scopes)
    parts = [f"{counts['pass']} passed"] if counts["pass"] or not fresh else []
    parts += [f"{fresh} fresh calls passed"] if fresh else []
    parts += [f"{counts[v]} {v}" for v in BAD if counts[v]]
    if counts["unsupported"]:
        parts.append(f"{counts['unsupported']} outside")
    if report.missing:
        parts.append(missing(report.missing))
    if report.part:
        parts.append(f"only {plain(report.part)}")
    colour = "green" if report.conformant else "red"
    return f"[bold {colour}]{plain(word)}[/bold {colour}]: {', '.join(parts)}"


def missing(names: Sequence[str]) -> str:
    """Return how many operations a target lacks, with their names if these are few."""
    named = f" ({', '.join(names)})" if len(names) <= NAMED else ""
    return f"{len(names)} operation{'s' * (len(names) > 1)} missing{named}"


def supports(report: Report) -> str:
    """Return the scope that was found as an implementation may state it: a dict of Python, or JSON for a program."""
    written = repr if report.target["kind"] == "python" else json.dumps
    offered = [scope for scope in report.scopes if scope.answered or scope.fresh]
    lines = [f'    "{scope.op}": {written(scope.supports)},' for scope in offered if not scope.unsaid]
    unsaid = [scope.op for scope in offered if scope.unsaid]
    left = [f"# no keys say all of the scope of {', '.join(unsaid)}: what is not stated is found by calls"] if unsaid else []
    return "\n".join(["supports = {", *lines, "}", *left])


def plain(text: str) -> str:
    """Return third-party text without control characters, and with its markup escaped."""
    return escape(printable(text))


def _table(report: Report, width: int) -> Table:
    """Return a line for each operation and dtype, of as many columns as the width has room for."""
    columns = [name for name, least in COLUMNS.items() if width >= least]
    table = Table(*(Column(name, no_wrap=name == "operation", overflow="fold") for name in columns), box=None, pad_edge=False,
                  header_style="bold")  # fmt: skip
    for op in report.operations:
        word, counts = op.standing, op.counts
        colour, named = COLOURS.get(word, "red"), {"unsupported": "outside"}
        cases = ", ".join(f"{counts[v]} {named.get(v, v)}" for v in ("pass", *BAD, "unsupported") if counts[v])
        cells = {
            "operation": op.op, "dtype": op.dtype, "verdict": f"[{colour}]{word}[/{colour}]",
            **dict(zip(("achieved", "claimed"), class_names(op.op, op.achieved, op.claim), strict=True)),
            "error/bound": ratio({"counts": counts, "worst_ratio": op.worst_ratio}), "cases": cases,
        }  # fmt: skip
        table.add_row(*(cells[name] for name in columns))
    return table


def _alike(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Return the results that do not conform, the gravest first. Dtypes of one operation are together if they fail alike."""
    groups: dict[tuple[object, ...], list[Operation]] = {}
    for operation in sorted(operations, key=lambda one: STANDINGS.index(one.standing)):
        names = tuple((operation.diagnosis or {}).get("names", ()))
        if not operation.conformant:
            groups.setdefault((operation.op, *names) if names else (id(operation),), []).append(operation)
    return list(groups.values())


def _explain(operation: Operation, alike: Sequence[Operation], console: Console, hints: set[str]) -> None:
    """Print why an operation is not conformant, and in which other dtypes it fails alike."""
    console.print(f"[bold]{operation.op}[/bold] {operation.dtype}: {plain(operation.reason)}")
    if operation.diagnosis:
        console.print(f"  [bold]diagnosis[/bold]: {plain(operation.diagnosis['text'])}")
        for key, title in (("hint", "look at"), ("seen_in", "seen in")):
            hint = operation.diagnosis.get(key) or ""
            if hint and hint not in hints:
                console.print(f"  {title}: {plain(hint)}")
            hints.add(hint)
    _print_failures(operation, console)
    for other in alike:
        console.print(f"  the same in {other.dtype}: {plain(other.reason)}")
    console.print()


def _print_failures(operation: Operation, console: Console) -> None:
    """Print some of the cases that fail, those outside if few were asked, and the command that repeats the first."""
    bad = failing(map(vars, operation.cases))
    shown, left = samples(bad)
    for case, others in shown:
        more = f" (and {others} more like it)" if others else ""
        message = "" if case["message"] in (operation.diagnosis or {}).get("text", "") else f": {plain(case['message'])}"
        console.print(f"  [red]{case['verdict']}[/red] {case['id']}{message}{more}")
        if case is bad[0] and case["call"]:
            console.print(f"    call: {plain(case['call'])}")
    for outside in operation.cases if len(operation.cases) <= SHOWN else ():
        if outside.verdict == "unsupported":
            console.print(f"  outside {outside.id}: {plain(outside.message)}")
    if left:
        console.print(f"  and {left} more")
    if bad:
        console.print(f"  repeat: {plain(bad[0]['reproduce'])}", soft_wrap=True)  # to copy
