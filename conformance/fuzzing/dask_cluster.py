"""Fuzzing on a dask.distributed cluster: every task draws a range of calls, and the findings are those of one process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from distributed import Client, Future, KilledWorker, wait

from ..errors import TargetError
from .hunt import Asking, Hunt, LoadOptions, Plan, Progress, Searched, Tally, Task, plan_of

PIECE = 5  # draws of a task
PATIENCE = 10.0  # seconds to reach a scheduler
_ONE_AT_A_TIME = Lock()  # the precision of balls is a setting of the whole process
_OPEN: dict[str, Asking] = {}  # the targets of this worker, by their options


@dataclass
class Cluster:
    """A search on the workers of a cluster."""

    client: Client
    options: LoadOptions
    seed: int
    until: float | None
    progress: Progress | None
    workers: int

    @classmethod
    @contextmanager
    def connected(
        cls, address: str, options: LoadOptions, seed: int, until: float | None, progress: Progress | None
    ) -> Iterator[Cluster]:
        """Yield the cluster of a scheduler; `TargetError` if there is none, or the target has no name to load it by."""
        target = options.get("target")
        if not (target is None or isinstance(target, str)):
            msg = f"fuzz: with a scheduler, target must be a name that its workers can import; got {type(target).__name__}."
            raise TargetError(msg)
        if target is not None and target.endswith(".py"):
            options = {**options, "target": str(Path(target).resolve())}
        try:
            client = Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            msg = f"fuzz: no scheduler answers at {address!r} ({type(error).__name__}: {error})."
            raise TargetError(msg) from error
        with client, client.as_current():
            _require_workers(client, address)
            try:
                yield cls(client, options, seed, until, progress, max(1, sum(client.nthreads().values())))
            except (CancelledError, KilledWorker, OSError) as error:
                if isinstance(error, OSError) and client.status == "running":
                    raise
                msg = f"fuzz: the scheduler at {address!r} or its workers are gone ({type(error).__name__}: {error})."
                raise TargetError(msg) from error
            finally:
                with suppress(CancelledError, OSError):
                    client.run(_close, options)

    def plan(self, ops: Sequence[str] | None) -> Plan:
        """Return what there is to search, as a worker sees it."""
        result: Plan = self.client.submit(_plan, self.options, ops, pure=False).result()
        return result

    def search(self, tasks: Sequence[Task]) -> list[Searched]:
        """Return what each of `tasks` gave, as far as time allowed."""
        pieces = [[(op, dtype, n, min(n + PIECE, last)) for n in range(first, last, PIECE)] for op, dtype, first, last in tasks]
        futures = [[self.client.submit(_search, self.options, self.seed, p, pure=False) for p in ps] for ps in pieces]
        waiting, interrupted = {f for fs in futures for f in fs}, False
        seen = time.monotonic()  # when there was a worker
        try:
            while waiting and (self.until is None or time.monotonic() < self.until):
                waiting = self._wait(waiting)
                seen = time.monotonic() if self.client.nthreads() else seen
                if time.monotonic() > seen + PATIENCE:
                    msg = f"fuzz: all workers of the scheduler are gone, with {len(waiting)} tasks left; start one again."
                    raise TargetError(msg)
        except KeyboardInterrupt:
            interrupted = True
        self.client.cancel(list(waiting))
        result = [_joined(fs) for fs in futures]
        if interrupted:
            result[-1].complete = False
        return result

    def _wait(self, waiting: set[Future]) -> set[Future]:
        """Wait a while and return the tasks that are left; raise what a task raised."""
        with suppress(TimeoutError):
            wait(waiting, timeout=0.5, return_when="FIRST_COMPLETED")
        left = {future for future in waiting if not future.done()}
        for future in waiting - left:
            result = future.result()
            if self.progress:
                self.progress(f"{sum(result.tally.verdicts.values())} draws")
        return left


def _require_workers(client: Client, address: str) -> None:
    """Raise `TargetError` unless the cluster has workers, and posref is where they run; tasks would wait for ever."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        msg = f"fuzz: the scheduler at {address!r} has no workers; start one with: dask worker {address}"
        raise TargetError(msg) from error
    for worker, failed in client.run(exec, f"import {__name__}", on_error="return").items():
        if failed is not None:
            why = f"{type(failed).__name__}: {failed}"
            msg = f"fuzz: worker {worker} did not answer ({why}); start another."
            if isinstance(failed, ImportError):
                msg = f"fuzz: worker {worker} cannot import posref ({why}); install posref[fuzz] there."
            raise TargetError(msg) from failed


def _joined(futures: Sequence[Future]) -> Searched:
    """Return the results of one range's pieces as those of one search: up to the first failure, or what is missing."""
    total = Searched(Tally())
    for future in futures:
        if future.status != "finished":
            total.complete = False
            break
        piece = future.result()
        total = Searched(total.tally + piece.tally, piece.find, piece.complete)
        if piece.find or not piece.complete:
            break
    return total


def _asking(options: LoadOptions) -> Asking:
    """Return a target of this worker, loaded once."""
    key = repr(sorted(options.items()))
    if key not in _OPEN:
        _OPEN[key] = Asking(options)
    return _OPEN[key]


def _plan(options: LoadOptions, ops: Sequence[str] | None) -> Plan:
    with _ONE_AT_A_TIME:
        return plan_of(_asking(options).target, ops)


def _search(options: LoadOptions, seed: int, task: Task) -> Searched:
    op, dtype, first, last = task
    with _ONE_AT_A_TIME:
        return Hunt(_asking(options), op, dtype, seed).search(first, last)


def _close(options: LoadOptions) -> None:
    """Leave nothing of a target on this worker."""
    asking: Any = _OPEN.pop(repr(sorted(options.items())), None)
    if asking is not None:
        asking.target.close()
