"""
Time and memory of the two sides of a line.

Both sides run in turn, in one process, and the first of a round is the second in the next: machine, allocator and clock are the
same for both. A ratio is the median over rounds, and its spread is from the lower to the upper quartile. It is taken of elapsed
time and of CPU time, which counts all threads and the processes that a call starts. Where other programs run, read CPU time.
"""

import ctypes
import gc
import resource
import time
from collections.abc import Iterable
from statistics import median, quantiles
from typing import Any, NamedTuple

from .lines import Call, Line, Work

LEAST = 2e-3  # seconds of one side of a round, so that the clock's step does not matter
MOST_ROUNDS, FEWEST_ROUNDS, FEWEST_SMALL = 101, 7, 3


class Taken(NamedTuple):
    """Seconds of one call."""

    elapsed: float
    cpu: float


def taken(call: Call, calls: int = 1) -> Taken:
    """Return how long a call takes, as a mean of `calls`."""
    children, cpu, start = _of_children(), time.process_time(), time.perf_counter()
    for _ in range(calls):
        call()
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Taken(elapsed / calls, (cpu + _of_children() - children) / calls)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(line: Line, work: Work, *, seconds: float) -> dict[str, Any]:
    """Return the figures of a line, as a JSON file has them. It takes about `seconds`, or seven rounds (three if 0)."""
    if work.theirs is None:
        return _alone(line, work)
    sides = (work.ours, work.theirs)
    calls = [_calls(side) for side in sides]
    rounds = _rounds(sides, calls, seconds)
    result: dict[str, Any] = {
        "rounds": len(rounds),
        "calls": calls,
        "ours": median(ours.elapsed for ours, _ in rounds),
        "theirs": median(theirs.elapsed for _, theirs in rounds),
        "ratio": spread(ours.elapsed / theirs.elapsed for ours, theirs in rounds),
        "cpu_ratio": spread(ours.cpu / max(theirs.cpu, 1e-9) for ours, theirs in rounds),
    }
    if line.memory is not None:
        result["memory"] = _memory(line, work)
    return result


def _alone(line: Line, work: Work) -> dict[str, Any]:
    """Return the figures of a line without a peer."""
    if line.memory is not None and line.goal is None:
        return {"memory": _memory(line, work)}
    time_ = taken(work.ours)
    result: dict[str, Any] = {"rounds": 1, "ours": time_.elapsed, "cpu": time_.cpu}
    if work.items:
        result["a_second"] = work.items / time_.cpu
    return result


def _calls(side: Call) -> int:
    """Return how many calls last long enough for the clock, after one for warming up."""
    side()
    return max(1, int(LEAST / max(1e-7, taken(side).elapsed)))


def _rounds(sides: tuple[Call, Call], calls: list[int], seconds: float) -> list[tuple[Taken, Taken]]:
    rounds: list[tuple[Taken, Taken]] = []
    end = time.perf_counter() + seconds
    fewest = FEWEST_ROUNDS if seconds else FEWEST_SMALL
    while len(rounds) < fewest or (len(rounds) < MOST_ROUNDS and time.perf_counter() < end):
        order = (0, 1) if len(rounds) % 2 else (1, 0)
        pair = {k: taken(sides[k], calls[k]) for k in order}
        rounds.append((pair[0], pair[1]))
    return rounds


def spread(values: Iterable[float]) -> list[float]:
    """Return the lower quartile, the median and the upper quartile."""
    return quantiles(values, n=4, method="inclusive")


# ---- memory -----------------------------------------------------------------------------------------------------------------
def _memory(line: Line, work: Work) -> dict[str, Any] | None:
    """Return the peak of posref's side in bytes, what it is compared with, and the ratio; None where no system tells."""
    ours = peak(work.ours)
    if ours is None:
        return None
    beside = bytes_of(work.ours()) if line.of_result or work.theirs is None else peak(work.theirs)
    return {"ours": ours, "theirs": beside, "ratio": ours / beside if beside else None}


def peak(call: Call) -> int | None:
    """Return by how many bytes the memory of this process grows in a call, its result included. Only Linux tells."""
    try:
        call()  # constants are not counted
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # else memory that was freed before is used again, and does not show
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        before = _status("VmRSS")
        result = call()
        grown = _status("VmHWM") - before
        del result
    except (OSError, AttributeError):
        return None
    return max(0, grown)


def _status(name: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(row.split()[1]) * 1024 for row in file if row.startswith(name + ":"))


def bytes_of(result: Any) -> int:
    """Return the bytes of arrays."""
    return sum(map(bytes_of, result)) if isinstance(result, tuple | list) else int(result.nbytes)
