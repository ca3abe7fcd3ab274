"""Proofs of large calls: parts of their rows are proved on their own, in several processes, and put together."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import TargetError
from ..model import Arrays
from . import workers
from .build import Proof, proved
from .rows import LEAST, Rows, Selection, cost, rows_of
from .running import plain

PART, TRIAL = 1 << 15, 1 << 13  # values of a part, and of a trial; a term of a sum counts as one
SECONDS = {1: 5e-6, 2: 2e-5}  # for each of them, by witnesses, where no trial says it
OF_PART, OF_VALUE, OF_PROCESS = 2048, 256, 1 << 27  # bytes
SHARE = 0.75  # of the machine's memory
Shapes = dict[str, tuple[int, ...]]
Show = Callable[[str, int | None], None]


@dataclass(frozen=True)
class Effort:
    """What may be spent on a proof: witnesses, processes (by default one a core), and minutes."""

    witnesses: int = 2
    jobs: int | None = None
    minutes: float = 10.0
    stages: bool = False  # of a large call too, which is then proved in one piece


def proved_in_parts(op: str, inputs: Arrays, params: Mapping[str, Any], effort: Effort, show: Show | None = None) -> Proof:
    """
    Return what `build.proved` gives, part by part.

    A call of several parts has no stages, unless they are asked for: then it is proved in one piece. Which parts there are
    depends on the call alone, so that the result does not depend on the machine.

    Raises
    ------
    TargetError
        If it would take more time or memory than there is: with an estimate.
    BuildError
        If the witnesses disagree, or a decision lies within its tolerance.
    """
    shapes = shapes_of(op, inputs, params)
    rows = rows_of(op, inputs, params, shapes)
    values = cost(rows, _hollow(shapes), {}).values
    _require_memory(op, values, values * OF_VALUE)
    parts = [{}] if effort.stages else _split(rows, shapes, PART)
    count = max(1, min(effort.jobs or workers.cores(), len(parts) // 2))  # fewer take less time than a process takes to start
    _require_memory(op, values, values * OF_VALUE + count * (OF_PROCESS + _cost(rows, shapes, parts[0]) * OF_PART))
    if _cost(rows, shapes, {}) > PART:
        _require_time(op, values, _seconds(op, inputs, params, rows, shapes, effort.witnesses) / count / 60, effort)
    if len(parts) == 1:
        if show:
            show(op, 1)
        return proved(op, inputs, params, witnesses=effort.witnesses)
    tasks = {
        f"part {k} of {len(parts)} of {op}": (op, rows.cut(inputs, part), params, effort.witnesses)
        for k, part in enumerate(parts, 1)
    }
    found = []
    with workers.each(_of_part, tasks, count if count > 1 else 0) as proofs:
        for proof in proofs:
            found.append(proof)
            if show:
                show(op, len(parts))
    return _together(rows, shapes, parts, found)


def _of_part(op: str, inputs: Arrays, params: Mapping[str, Any], witnesses: int) -> tuple[Arrays, dict[str, Arrays]]:
    expected, _, widths = proved(op, inputs, params, witnesses=witnesses)
    return expected, widths


def shapes_of(op: str, inputs: Arrays, params: Mapping[str, Any]) -> Shapes:
    """Return the shapes of a call's results, from those of a few of its rows: the whole may be too large to compute."""
    free = rows_of(op, inputs, params, {})
    few = {key: np.arange(min(size, LEAST)) for key, size in free.sizes.items()}
    cut = free.cut(inputs, few)
    small = {n: x.shape for n, x in plain(op, cut, params).items()}
    near = rows_of(op, cut, params, small)
    if set(near.sizes) != set(few):
        return {n: x.shape for n, x in plain(op, inputs, params).items()}

    def size_of(name: str, axis: int, size: int) -> int:
        key = near.results.get(name, {}).get(axis)
        return free.sizes[key] if key is not None and size == near.sizes[key] else size

    return {n: tuple(size_of(n, axis, size) for axis, size in enumerate(shape)) for n, shape in small.items()}


def _cost(rows: Rows, shapes: Shapes, selection: Selection) -> int:
    return cost(rows, _hollow(shapes), selection).terms


def _hollow(shapes: Shapes) -> Arrays:
    """Return arrays of these shapes that take no memory."""
    return {n: np.broadcast_to(0.0, shape) for n, shape in shapes.items()}


def _split(rows: Rows, shapes: Shapes, most: int) -> list[Selection]:
    """Return the parts of a call, of at most `most` values where its rows allow it."""
    needed = -(-_cost(rows, shapes, {}) // most)
    cuts: dict[Any, list[Any]] = {}
    for key, size in sorted(rows.sizes.items(), key=lambda item: -item[1]):
        pieces = min(size // LEAST, needed)
        if pieces > 1:
            cuts[key] = np.array_split(np.arange(size), pieces)
            needed = -(-needed // pieces)
    return [dict(zip(cuts, indices, strict=True)) for indices in itertools.product(*cuts.values())]


def _together(
    rows: Rows, shapes: Shapes, parts: list[Selection], found: list[tuple[Arrays, dict[str, Arrays]]]
) -> Proof:  # fmt: skip
    """Return the results and half-widths of all parts as those of the whole."""
    first, widths = found[0]
    expected = {n: np.empty(shapes[n], x.dtype) for n, x in first.items()}
    kept = [c for c in widths if c == "trig" or all(c in of_part for _, of_part in found)]
    kept += ["trig"] if "trig" not in kept and any("trig" in of_part for _, of_part in found) else []
    names = {c: dict.fromkeys(n for _, of_part in found for n in of_part.get(c, {})) for c in kept}
    whole = {c: {n: np.zeros(shapes[n], np.float32) for n in names[c]} for c in kept}
    for part, (values, of_part) in zip(parts, found, strict=True):
        for name, value in values.items():
            where = rows.indices(name, shapes[name], part)
            expected[name][where] = value
            for c in kept:
                if name in of_part.get(c, {}):  # what does not move with sines and cosines has no entry
                    whole[c][name][where] = of_part[c][name]
    return expected, {}, whole


# ---- estimates ------------------------------------------------------------------------------------------------------------
def memory() -> float:
    """Return the bytes of this machine's memory; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows
        return float("inf")


def _require_memory(op: str, values: int, needed: float) -> None:
    """Raise unless a request fits into memory."""
    spare = SHARE * memory()
    if needed > spare:
        msg = (
            f"golden: {op} of {values} values would take about {needed / 2**30:.1f} GiB of memory; {spare / 2**30:.1f} GiB may "
            "be used. Ask for fewer positions or heads, or with --jobs for fewer processes."
        )
        raise TargetError(msg)


def _require_time(op: str, values: int, minutes: float, effort: Effort) -> None:
    """Raise unless a request takes no longer than it may."""
    if minutes > effort.minutes:
        msg = (
            f"golden: {op} of {values} values would take about {_about(minutes)} minutes and "
            f"{max(values * OF_VALUE / 2**30, 0.1):.1f} GiB of memory; --minutes allows {effort.minutes:g}. Ask for fewer "
            f"positions or heads{', or for --witnesses 1' if effort.witnesses > 1 else ''}."
        )
        raise TargetError(msg)


def _about(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.2g}"


def _seconds(op: str, inputs: Arrays, params: Mapping[str, Any], rows: Rows, shapes: Shapes, witnesses: int) -> float:
    """Return how long one process takes, from the time of a few rows."""
    trial = _split(rows, shapes, TRIAL)[0]
    cost, whole = _cost(rows, shapes, trial), _cost(rows, shapes, {})
    if not trial or cost > PART:
        return whole * SECONDS[witnesses]
    arrays = rows.cut(inputs, trial)
    begin = time.perf_counter()
    proved(op, arrays, params, witnesses=witnesses)
    return (time.perf_counter() - begin) * whole / max(cost, 1)
