"""
Strength of the suite: for every mistake of the registry, the number of core cases that tell it from the definition.

A mutant is the definition with one mistake, its reals stored in float32 and judged by class angle32. A gradient of a
rotation is measured as the rotation of its cotangent that it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from posref.core.composition import reaches
from posref.spec import REGISTRY

from .. import judge
from ..errors import VectorError
from ..evidence.deviations import DEVIATIONS
from ..evidence.index import evidence_of
from ..evidence.tools.deviation import Deviation
from ..model import Arrays, LoadedCase
from ..suite.reader import INSTALLED, load_groups
from . import hypotheses
from .gradients import as_rotation

CLASS, DTYPE = "angle32", "float32"
LEAST = 2  # cases that must catch a mistake at its stage
Progress = Callable[[str], None]
Cases = dict[str, list[LoadedCase]]


@dataclass(frozen=True)
class StrengthLine:
    """One mistake: the operation where it sits, and how many cases of each operation that it touches catch it."""

    name: str
    stage: str
    caught: dict[str, int]


@dataclass(frozen=True)
class Idle:
    """A case that no mistake of the registry fails, and what it says of itself."""

    case: str
    comment: str


@dataclass(frozen=True)
class Strength:
    """How many cases catch every mistake, which cases catch none, and which cannot be measured, counted by the reason."""

    lines: tuple[StrengthLine, ...]
    idle: tuple[Idle, ...]
    measured: int
    apart: dict[str, int]

    @property
    def weak(self) -> list[StrengthLine]:
        """Mistakes with fewer than two catching cases in their own operation, if it was measured."""
        return [line for line in self.lines if line.caught.get(line.stage, LEAST) < LEAST]

    @property
    def exit_code(self) -> int:
        """0 if every mistake is caught twice and every case that can be measured catches one, else 1."""
        return 1 if self.weak or self.idle else 0

    def to_json(self) -> dict[str, Any]:
        """Return the measurement as JSON."""
        return {
            "class": CLASS, "dtype": DTYPE, "measured": self.measured, "not_measured": self.apart,
            "deviations": [{"name": line.name, "stage": line.stage, "caught": line.caught} for line in self.lines],
            "weak": [line.name for line in self.weak],
            "catch_nothing": [{"case": idle.case, "comment": idle.comment} for idle in self.idle],
        }  # fmt: skip


def touched(name: str) -> list[str]:
    """Return the operations that a mistake may change."""
    return [op for op in REGISTRY if DEVIATIONS[name].touches(op)]


def stage(name: str) -> str:
    """Return the operation where a mistake sits: of a part, the one in whose evidence it is, or that with fewest options."""
    first = next(iter(DEVIATIONS[name].wraps))
    if first in REGISTRY:
        return first
    having = [op for op in REGISTRY if first in reaches(op)]
    defining = [op for op in having if DEVIATIONS[name] in getattr(evidence_of(op), "DEVIATIONS", ())]
    return min(defining or having, key=lambda op: len(REGISTRY[op].domains))


def apart(case: LoadedCase) -> str:
    """Return why a case cannot be measured; empty if it can."""
    if case.kind == "reject":
        return "refusals, which no mistake gives"
    if DTYPE not in case.dtypes:
        return f"not possible in {DTYPE}"
    if case.kind == "vjp" and as_rotation(case) is None:
        return "gradients other than those of a rotation"
    if all(value.size == 0 for call in case.calls for value in call.expected.values()):
        return "results without values"
    return ""


def cases(suite: Path = INSTALLED, ops: Sequence[str] = ()) -> tuple[Cases, Counter[str]]:
    """Return the core cases that can be measured by operation, all or some, and the number of others by the reason."""
    by_operation: Cases = {op: [] for op in ops or REGISTRY}
    others: Counter[str] = Counter()
    for group in load_groups(suite, ops=ops or None):
        for case in group.cases:
            why = apart(case)
            if why:
                others[why] += 1
            else:
                by_operation[group.op].append(as_rotation(case) or case)
    return by_operation, others


def outputs(deviation: Deviation, case: LoadedCase) -> list[Arrays]:
    """Return what a mutant gives in float32; a call that makes no sense for it gives nothing."""
    predicted = hypotheses.predict(deviation, case.op, case.calls)
    with hypotheses.quiet():
        return [{n: v.astype(np.float32) if v.dtype.kind == "f" else v for n, v in o.items()} for o in predicted]


def fails(case: LoadedCase, given: list[Arrays]) -> bool:
    """Return whether outputs fail a case."""
    for call, output in zip(case.calls, given, strict=True):
        if any(n not in output or not fits(output[n], e) for n, e in call.expected.items()):
            return True
        if judge.compare(case.op, call, output, CLASS, DTYPE) is not None:
            return True
    return False


def fits(value: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    """Return whether a value broadcasts to the shape that is expected."""
    try:
        return bool(np.broadcast_shapes(value.shape, expected.shape) == expected.shape)
    except ValueError:
        return False


def measure(progress: Progress | None = None, suite: Path = INSTALLED, ops: Sequence[str] = ()) -> Strength:
    """
    Return how many cases catch every mistake; `progress` is called with the name of each as its turn comes.

    With `ops`, only mistakes that touch one of these are tried, in these operations alone.
    """
    by_operation, others = cases(suite, ops)
    if lacking := [op for op in ops if not by_operation[op]]:
        msg = f"strength: the suite in {suite} has no core cases of {lacking[0]!r} that measure mistakes."
        raise VectorError(msg)
    seen: set[str] = set()
    lines = []
    for name, deviation in DEVIATIONS.items():
        changed = [op for op in touched(name) if op in by_operation]
        if not changed:
            continue
        if progress:
            progress(name)
        by_op = {op: {c.id for c in by_operation[op] if fails(c, outputs(deviation, c))} for op in changed}
        seen |= set[str]().union(*by_op.values())
        lines.append(StrengthLine(name, stage(name), {op: len(ids) for op, ids in by_op.items()}))
    every = [case for of_operation in by_operation.values() for case in of_operation]
    idle = tuple(Idle(case.id, case.comment) for case in every if case.id not in seen)
    return Strength(tuple(lines), idle, len(every), dict(sorted(others.items())))


def record(suite: Path = INSTALLED, known: Mapping[str, Any] | None = None) -> str:
    """
    Return, as JSON, which cases catch every mistake of every operation: bit k of a number stands for case k.

    What is `known` of a case is kept, for mistakes that some case of its operation catches.
    """
    lines, known = [], known or {}
    for op, having in sorted(cases(suite)[0].items()):
        before = known.get(op, {"cases": [], "caught": {}})
        place = {case: k for k, case in enumerate(before["cases"])}
        caught = {}
        for name, deviation in sorted(DEVIATIONS.items()):
            old = int(before["caught"].get(name, "0"), 16)
            kept = place if old else {}
            bits = sum(
                1 << k
                for k, c in enumerate(having)
                if (old >> place[c.id] & 1 if c.id in kept else deviation.touches(op) and fails(c, outputs(deviation, c)))
            )
            if bits:
                caught[name] = f"{bits:x}"
        lines.append(
            f' {json.dumps(op)}: {{"cases": {json.dumps([case.id for case in having])},\n  "caught": {json.dumps(caught)}}}'
        )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def show(strength: Strength, console: Console) -> None:
    """Print a measurement: a table in a terminal, lines in a pipe."""
    if console.is_terminal:
        table = Table("mistake", "at its stage", "", "and through", box=None, pad_edge=False, header_style="bold")
        for line in strength.lines:
            count, colour = line.caught.get(line.stage, ""), "red" if line in strength.weak else "green"
            elsewhere = [f"{op} {n}" for op, n in line.caught.items() if op != line.stage]
            table.add_row(line.name, line.stage, f"[{colour}]{count}[/{colour}]", ", ".join(elsewhere))
        console.print(table)
    else:
        for line in strength.lines:
            in_order = sorted(line.caught.items(), key=lambda item: item[0] != line.stage)
            console.print(f"{line.name}: {', '.join(f'{op} {count}' for op, count in in_order)}", soft_wrap=True)
    for idle in strength.idle:
        why = idle.comment and f" ({idle.comment})"
        console.print(f"[red]catches nothing[/red] {idle.case}{why}", highlight=False, soft_wrap=True)
    for line in strength.weak:
        count = line.caught[line.stage]
        console.print(f"[red]weak[/red] {line.name}: {count} cases of {line.stage} catch it; {LEAST} must", soft_wrap=True)
    for why, count in strength.apart.items():
        console.print(f"not measured: {why} ({count})", highlight=False, soft_wrap=True)
    console.print(
        f"mistakes: {len(strength.lines)} ({len(strength.weak)} caught by fewer than {LEAST} cases); "
        f"cases: {strength.measured} ({len(strength.idle)} catch no mistake)",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
