"""
Proofs in several processes: each starts afresh, does one job at a time, and ends with its parent.

A worker is ``python -P -m`` of this module: nothing is forked, and the user's main module does not run again. Requests come
through a pipe. When the process that asks dies, of whatever, the pipe closes and the worker ends at once, in the middle of a
proof too. Workers have a session of their own: a ctrl-c in the terminal reaches only the process that asks, which kills them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from ..errors import PosrefError
from . import proof_cache

CASES, CASES_BESIDE = 100, 20  # for each worker: fewer take less time than it takes to start, or to start beside another one
Function = Callable[..., Any]
Tasks = Mapping[str, tuple[Any, ...]]
LOST = (OSError, EOFError, pickle.UnpicklingError)


def cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says it
        return os.cpu_count() or 1


def fitting(jobs: int | None, cases: int, *, here: bool = True) -> int:
    """
    Return how many workers prove so many cases soonest, at most `jobs` (by default one a core).

    It is 0 if they are proved sooner in this process, and that is allowed (`here`).
    """
    count = min(jobs or cores(), cases // (CASES if here else CASES_BESIDE))
    return max(count, 1) if not here else count if count > 1 else 0


@contextmanager
def each(function: Function, tasks: Tasks, count: int) -> Iterator[Iterator[Any]]:
    """
    Yield an iterator over the results of `function` for the named tasks, in their order; without workers they are made here.

    It raises what the first task in that order raises. However the block ends, no worker outlives it.

    `PosrefError` if a worker does not start, runs other code than this process, or dies; it names the task.
    """
    if not count:
        yield (function(*arguments) for arguments in tasks.values())
        return
    crew: list[Worker] = []
    idle: SimpleQueue[Worker] = SimpleQueue()
    pool = ThreadPoolExecutor(min(count, max(len(tasks), 1)))

    def asked(name: str, arguments: tuple[Any, ...]) -> Any:
        worker = idle.get()
        try:
            return worker.ask(name, function, arguments)
        finally:
            idle.put(worker)

    try:
        for _ in range(min(count, len(tasks))):
            crew.append(Worker())
            idle.put(crew[-1])
        results = [pool.submit(asked, *task) for task in tasks.items()]
        yield (result.result() for result in results)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in crew:
            worker.process.kill()
        pool.shutdown()
        for worker in crew:
            worker.close()


class Worker:
    """A process that answers one request at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", __name__]  # -P: a folder named posref here is not this package
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._known = False  # to run the same code as this process

    def ask(self, name: str, function: Function, arguments: tuple[Any, ...]) -> Any:
        """Return what the function returns there, or raise what it raises."""
        try:
            if not self._known and self._call(proof_cache.stamp) != (True, proof_cache.stamp()):
                msg = f"a worker runs other code than this process: python -P -m {__name__} must find this posref."
                raise PosrefError(msg)
            self._known = True
            done, result = self._call(function, *arguments)
        except LOST as error:
            code = self.process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            when = f"at {name}" if self._known else "at its start"
            msg = f"a worker ended {when} ({how}); --jobs 1 takes the least memory."
            raise PosrefError(msg) from error
        if not done:
            raise result
        return result

    def close(self) -> None:
        """Close the pipes of the process, which was killed."""
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # what was not yet sent
                pipe.close()  # type: ignore[union-attr]
        self.process.wait()

    def _call(self, function: Function, *arguments: Any) -> tuple[bool, Any]:
        """Return whether the function returned there, and what it returned or raised."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump(pickle.dumps((function, arguments)), self.process.stdin)
        self.process.stdin.flush()
        answer: tuple[bool, Any] = pickle.loads(pickle.load(self.process.stdout))
        return answer


def main() -> None:
    """Answer requests on standard input until it closes; what is printed meanwhile goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing, end = os.pipe()  # as empty as the null device, which a bare container lacks
    os.close(end)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # which writes every line at once: this process may be killed
    asked: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(requests, asked), daemon=True).start()
    while True:
        answer = _answer(asked.get())
        try:
            pickle.dump(answer, replies)
            replies.flush()
        except OSError:  # who asked has died since
            os._exit(0)


def _receive(requests: BinaryIO, asked: SimpleQueue[bytes]) -> None:
    """Pass requests on, and end this process when nobody is there to send any more."""
    try:
        while True:
            asked.put(pickle.load(requests))
    finally:
        os._exit(0)


def _answer(request: bytes) -> bytes:
    """Return what a request gives."""
    try:
        function, arguments = pickle.loads(request)
        return pickle.dumps((True, function(*arguments)))
    except Exception as error:
        return _raised(error)


def _raised(error: Exception) -> bytes:
    """Return an error so that the other side can raise it, with where it came from; as text if it cannot be sent."""
    where = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"in a worker:\n{where}")
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:
        return pickle.dumps((False, RuntimeError(where)))
    return answer


if __name__ == "__main__":
    main()
