"""
Fuzzing: calls drawn at random, judged against what is proved on the spot, and the first failure of each operation shrunk.

Draws are numbered. Draw i of an operation in a dtype depends on the seed alone, so that a longer run finds what a shorter one
did and more, and a cluster what one process does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from posref.spec import REGISTRY

from ..errors import TargetError, no_operation
from .findings import Findings, Plan, Task, opened, plan_of
from .hunt import Asking, Hunt, Progress, Searched, Tally

ROUNDS = (5, 10, 20, 40)  # draws of an operation before the next one is drawn from; the last for all later rounds
SECONDS = 60.0


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
        Of the target: ``command``, ``isolate``, ``timeout``, ``memory``, ``backend``, ``dtype``, ``claim``, ``trig`` and
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
    given = {"target": target, **options}
    if scheduler is None:
        asking = opened(given)
        try:
            findings = _run(plan_of(asking.target, wanted), seed, examples, until, _Here(asking, seed, until, progress))
        finally:
            asking.target.close()
    else:
        from .cluster import Cluster

        with Cluster.connected(scheduler, given, seed, until, progress) as cluster:
            findings = _run(cluster.plan(wanted), seed, examples, until, cluster)
    if findings.finds and output is not None:
        from .findings import write

        findings.folder = write(findings, output)
    return findings


class Searcher(Protocol):
    """The place of the draws: this process or a cluster."""

    workers: int

    def search(self, tasks: Sequence[Task]) -> list[Searched]:
        """Return what each of `tasks` gave, as far as time allowed."""


@dataclass
class _Here:
    """A search in this process."""

    asking: Asking
    seed: int
    until: float | None
    progress: Progress | None
    workers: int = 1

    def search(self, tasks: Sequence[Task]) -> list[Searched]:
        """Return what each of `tasks` gave, as far as time allowed."""
        found = []
        for op, dtype, first, last in tasks:
            found.append(Hunt(self.asking, op, dtype, self.seed).search(first, last, self.until, self.progress))
            if not found[-1].complete:
                break
        return found


def _rounds(examples: int | None, wide: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of draws, short ones first, so that every operation is asked soon; `wide` is how many go at a time."""
    first, turn = 0, 0
    while examples is None or first < examples:
        last = first + wide * ROUNDS[min(turn, len(ROUNDS) - 1)]
        yield first, last if examples is None else min(last, examples)
        first, turn = last, turn + 1


def _run(plan: Plan, seed: int, examples: int | None, until: float | None, where: Searcher) -> Findings:
    """Search round after round where nothing was found yet, until time or draws are used up."""
    findings = Findings(plan, seed, {pair: Tally() for pair in plan.pairs})
    for first, last in _rounds(examples, -(-where.workers // len(plan.pairs))):
        failed = {(find.op, find.dtype) for find in findings.finds}
        left = [pair for pair in plan.pairs if pair not in failed]
        if not left or (until is not None and time.monotonic() >= until):
            break
        results = where.search([(*pair, first, last) for pair in left])
        for pair, result in zip(left, results, strict=False):
            findings.tallies[pair] += result.tally
            findings.finds += [result.find] if result.find else []
        if len(results) < len(left) or not all(result.complete for result in results):
            findings.complete = until is not None and time.monotonic() >= until  # else it was the keyboard
            break
    return findings
