"""Splits a check between two processes: each runs some of the operations."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from posref.core.composition import stages

from ..errors import PosrefError
from ..proof.workers import Worker, cores
from ..targets.program_process import SPARED, adopt

LEAST = 1000  # cases of a half: fewer are asked here before another process has started
REPORT = 1.1  # of the work of this half: it begins with what takes longest, and makes the report besides
PATIENCE = 5.0  # seconds for the other process to end after an interruption
Wait = Callable[..., Any]


def halves(cases: Mapping[str, int], jobs: int | None) -> tuple[list[str], list[str]]:
    """
    Return operations in two lists with about as many cases each; the second is empty where one process is as fast.

    An operation stays with its stages: a stage that fails explains what is composed of it.
    """
    if min(jobs or cores(), cores()) < 2 or sum(cases.values()) < LEAST:
        return [*cases], []
    groups: list[set[str]] = []
    for name in cases:
        linked = {name, *(stage for stage in stages(name) if stage in cases)}
        apart = [group for group in groups if not group & linked]
        groups = [*apart, linked.union(*(group for group in groups if group not in apart))]
    here: set[str] = set()
    there: set[str] = set()
    for group in sorted(groups, key=lambda group: -sum(cases[name] for name in group)):
        sizes = [sum(cases[name] for name in half) for half in (here, there)]
        least = here if sizes[0] * REPORT <= sizes[1] else there
        least |= group
    if sum(cases[name] for name in there) < LEAST:
        return [*cases], []
    return [name for name in cases if name in here], [name for name in cases if name in there]


@contextmanager
def beside(function: Callable[..., Any], *arguments: Any) -> Iterator[Wait]:
    """
    Run a function in another process, and yield what waits for its result; nothing of it outlives the block.

    With ``stop=True`` the function is interrupted, and there is None where it does not end soon.
    """
    worker = Worker()
    SPARED.add(worker.process.pid)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(worker.ask, "its half of the operations", interruptible, (function, arguments))

        def wait(*, stop: bool = False) -> Any:
            if not stop:
                return asked.result()
            try:
                worker.process.send_signal(signal.SIGINT)
                return asked.result(PATIENCE)
            except (ValueError, TimeoutError, PosrefError):  # Windows has no such signal
                return None

        try:
            yield wait
        finally:
            worker.process.kill()
    worker.close()
    SPARED.discard(worker.process.pid)


def interruptible(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a function in a worker that an interruption reaches, and that ends what a target leaves behind."""
    adopt()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return function(*arguments)
