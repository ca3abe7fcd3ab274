"""
Computes the true values of any call: expected values and tolerances as suites store them, for some rows of the call.

The definition runs on live bounds (`posref.backends.live`): for class float64 they give values and how far these may be from
the truth, for the claimed class the tolerances. What that leaves undecided is decided on balls, and so is what is claimed in
float64: that needs python-flint. No rounding is proved: the expected value is a ball's midpoint, and its radius is added to the
tolerance. So a true value may lie halfway between two float64 numbers, and no value keeps others from being judged.

Of a large call some rows are judged: those where kernels break, and those that look farthest off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.bounds import rounded_up
from posref.backends.numbers import Undecided
from posref.backends.rounding import LARGEST
from posref.spec import REGISTRY

from ..accuracy import TRIG, base_of, tolerance_of
from ..errors import NotJudged
from ..model import Arrays, Call
from ..vocabulary.axes import LEAST, Budget, Key, Rows, Selection
from .evaluation import (
    Pullback,
    as_reals,
    decided,
    enclosed,
    live_bounds,
    moved_by_trigonometry,
    plain,
    results_of,
    wide,
    widths_of,
)  # fmt: skip

Mask = npt.NDArray[np.bool_]
Enclosure = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # values, and how far they may be from the true ones
ENOUGH = 2.0**-30  # of a tolerance: a radius below it decides nothing
HALVINGS, PROBES = 5, 8  # of an axis, to find the rows where a class leaves a decision open
NEEDED = "deciding it needs python-flint: pip install 'posref[vectors]'"
TILES = tuple(16 << k for k in range(9))  # 16 to 4096
DRAWN, FAR = 96, 32
Far = dict[Key, npt.NDArray[np.int64]]
PART = 1 << 18  # values that are compared at once: so many stay in a processor's cache


@dataclass(frozen=True)
class Sample:
    """The judged part of a call: true values where these matter, tolerances, the outputs, and where it lies in the whole."""

    call: Call
    outputs: Arrays
    rows: Rows
    selection: Selection
    judged: Mapping[str, int]  # values by output
    shapes: Mapping[str, tuple[int, ...]]  # of the whole

    def of(self, output: str) -> int:
        """Return how many values an output has."""
        return math.prod(self.shapes[output])

    def place(self, output: str, index: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index in the whole output of an index in the judged part."""
        if not self.selection:
            return index
        mesh = self.rows.indices(output, self.shapes[output], self.selection)
        return tuple(int(axis.ravel()[i]) for axis, i in zip(mesh, index, strict=True))


@dataclass
class Truth:
    """One call, its outputs broadcast to the shapes of its results, and what they are judged by."""

    op: str
    call: Call
    outputs: Arrays
    accuracy: str
    dtype: str
    rows: Rows
    balls: int
    _latest: tuple[Selection, Call] | None = None  # what was cut last
    _near: Mapping[str, Enclosure] = field(default_factory=dict)  # what class float64 gave last

    def __post_init__(self) -> None:
        self.base = base_of(self.accuracy, self.dtype)
        self.reals = bool(self.call.cotangents) or REGISTRY[self.op].returns == "real"

    def sample(self, selection: Selection, *, proved: bool) -> Sample:
        """Return what is judged of the selected rows, decided; with `proved` all inexact values come from balls."""
        enclosures, selection = self._decided(selection)
        outputs = wide(self.rows.cut_results(self.outputs, selection))
        judged = {n: y.size for n, y in outputs.items()}
        if not self.reals:
            call = replace(self._cut(selection), expected=self._integers(selection))
            return self._result(call, outputs, selection, judged)
        expected = {n: np.array(np.broadcast_to(value, outputs[n].shape)) for n, (value, _) in enclosures.items()}
        widths = {self.base: widths_of({n: error for n, (_, error) in enclosures.items()}, expected)}
        if TRIG.search(self.accuracy):
            widths |= moved_by_trigonometry(self.op, replace(self._cut(selection), expected=expected))
        open_ = self._open(selection, outputs, enclosures, widths, proved)
        if any(np.any(mask) for mask in open_.values()):
            self._enclose(selection, open_, expected, widths)
            judged = {n: int(mask.size - np.count_nonzero(mask)) for n, mask in open_.items()}
        near = {"float64": widths_of({n: error for n, (_, error) in self._near.items()}, expected)} if self._near else {}
        call = replace(self._cut(selection), expected=expected, widths=widths, computed=near)
        self._require_telling(call)
        return self._result(call, outputs, selection, judged)

    def _result(self, call: Call, outputs: Arrays, selection: Selection, judged: dict[str, int]) -> Sample:
        shapes = {n: y.shape for n, y in self.outputs.items()}
        return Sample(call, outputs, self.rows, selection, judged, shapes)

    def _cut(self, selection: Selection) -> Call:
        if self._latest is None or self._latest[0] is not selection:
            inputs = wide(self.rows.cut(self.call.inputs, selection))
            self._latest = selection, replace(self.call, inputs=inputs, computed={})
        return replace(self._latest[1], computed={})

    def _run(self, system: Any, selection: Selection) -> dict[str, Enclosure]:
        """Return values and bounds by output; integers and masks have bounds of zero."""
        call = self._cut(selection)
        results = results_of(system, self.op, call.inputs, call.params, self._pullback())
        arrays = {n: as_reals(x, system) for n, x in results.items()}
        return {n: (x.parts[0], x.parts[1] if len(x.parts) > 1 else np.zeros(x.shape)) for n, x in arrays.items()}

    def _pullback(self) -> Pullback | None:
        return Pullback(self.call.cotangents, tuple(self.outputs)) if self.call.cotangents else None

    # ---- tolerances -----------------------------------------------------------------------------------------------------
    def _decided(self, selection: Selection) -> tuple[dict[str, Enclosure], Selection]:
        """Return values and bounds in the claimed class, of those selected rows where it leaves no decision open."""
        if not self.reals:
            return {}, selection
        system = live_bounds(self.base)
        try:
            return decided(system, lambda system: self._run(system, selection)), selection
        except Undecided as error:
            system = system.of_first_formulas()
            key = max(self.rows.sizes, key=lambda k: len(self._indices(k, selection)), default=None)
            kept = [] if key is None else self._closed(system, selection, key)
            if key is None or not kept:
                msg = f"{self.base} has no single answer here: {error}"
                raise NotJudged(msg) from error
            selection = {**selection, key: np.concatenate(kept)}
            return self._run(system, selection), selection

    def _indices(self, key: Key, selection: Selection) -> npt.NDArray[np.int64]:
        return selection[key] if key in selection else np.arange(self.rows.sizes[key])

    def _closed(self, system: Any, selection: Selection, key: Key) -> list[npt.NDArray[np.int64]]:
        """Return those parts of an axis where a class leaves no decision open; nothing if it does in all that are tried."""
        indices = self._indices(key, selection)
        tried = [part[:LEAST] for part in np.array_split(indices, PROBES) if len(part) >= LEAST]
        if tried and not any(self._halved(system, selection, key, np.tile(part, 2), 0) for part in tried):
            return []
        return self._halved(system, selection, key, indices, HALVINGS)

    def _halved(
        self, system: Any, selection: Selection, key: Key, indices: npt.NDArray[np.int64], depth: int
    ) -> list[npt.NDArray[np.int64]]:
        """Return those parts of an axis where a class leaves no decision open."""
        halves = []
        for half in np.array_split(indices, 2):
            if len(half) < LEAST:
                continue
            try:
                self._run(system, {**selection, key: half})
                halves.append(half)
            except Undecided:
                halves += self._halved(system, selection, key, half, depth - 1) if depth else []
        return halves

    def _allowed(self, name: str, expected: npt.NDArray[Any], widths: Mapping[str, Arrays]) -> npt.NDArray[np.float64]:
        return tolerance_of({c: w[name] for c, w in widths.items() if name in w}, expected, self.accuracy, self.dtype)

    def _require_telling(self, call: Call) -> None:
        """Raise `NotJudged` unless the class rules out zeros of a result (of each gradient), and the dtype has every value."""
        zeros = []
        for name, expected in call.expected.items():
            size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
            allowed = self._allowed(name, expected, call.widths)
            if np.any(np.isnan(allowed)):
                msg = f"{self.base} has no tolerance here: a number inside of the operation is beyond float64"
                raise NotJudged(msg)
            if np.any(size > LARGEST[self.dtype]):
                msg = f"out of the range of {self.dtype}"
                raise NotJudged(msg)
            if np.any(size):
                zeros.append("" if np.any(size > allowed) else name)
        if any(zeros) and (call.cotangents or all(zeros)):
            msg = f"{self.base} allows every value of {' and of '.join(filter(None, zeros))} to be zero here"
            raise NotJudged(msg)

    # ---- truth ----------------------------------------------------------------------------------------------------------
    def _integers(self, selection: Selection) -> Arrays:
        """Return integers and masks, from balls where float64 does not decide them."""
        try:
            return {n: value.astype(np.int64) for n, (value, _) in self._run(live_bounds("float64"), selection).items()}
        except Undecided:
            none = {n: np.asarray(np.inf) for n in self.outputs}
            return {n: value.astype(np.int64) for n, (value, _) in self._on_balls(selection, none).items()}

    def _on_balls(self, selection: Selection, enough: Arrays) -> dict[str, Enclosure]:
        """Return midpoints and radii of the selected rows; no radius that more bits can lower is above `enough`."""
        if find_spec("flint") is None:
            raise NotJudged(NEEDED, "not-run")
        try:
            return enclosed(self.op, self._cut(selection), self._pullback(), enough)
        except Undecided as error:
            msg = f"a decision is open on balls: {error}"
            raise NotJudged(msg) from error

    def _open(
        self, selection: Selection, outputs: Arrays, found: Mapping[str, Enclosure], widths: Mapping[str, Arrays], proved: bool
    ) -> dict[str, Mask]:  # fmt: skip
        """Return where the values of float64 do not decide; with `proved`, where they are inexact."""
        try:
            near = self._near = found if proved else self._run(live_bounds("float64"), selection)
        except Undecided:
            return {n: np.ones(y.shape, dtype=bool) for n, y in outputs.items()}
        open_ = {}
        for n, y in outputs.items():
            value, error = (np.broadcast_to(part, y.shape) for part in near[n])
            undecided = error > 0 if proved else self._undecided(n, y, value, error, widths)
            open_[n] = np.asarray(undecided & np.isfinite(value))
        return open_

    def _undecided(
        self, name: str, y: npt.NDArray[Any], value: npt.NDArray[Any], error: npt.NDArray[Any], widths: Mapping[str, Arrays]
    ) -> Mask:  # fmt: skip
        """Return where values off by up to `error` from the truth do not decide whether an output is within its tolerance."""
        with np.errstate(invalid="ignore"):
            error = np.where(error > 0, error + 2.0**-53 * np.abs(value), 0.0)  # the true value is rounded to float64
            off = np.abs(y - value)
            low = self._allowed(name, np.maximum(np.abs(value) - error, 0.0), widths) - error
            high = self._allowed(name, np.abs(value) + error, widths) + error
            return np.asarray(~((off <= low) | ~(off <= high) | (error == 0)))

    def _enclose(
        self, selection: Selection, open_: dict[str, Mask], expected: Arrays, widths: dict[str, Arrays]
    ) -> None:  # fmt: skip
        """
        Put midpoints into `expected` and add radii to `widths` where values are open, and mark these as decided in `open_`.

        Where there are too many values for balls, or a ball is not finite, a tolerance without bound excludes them.
        """
        inside = self._of_rows(selection, open_)
        part = {**selection, **{k: self._indices(k, selection)[i] for k, i in inside.items()}}
        local = self._local(selection)
        places = {n: Rows.indices(local, n, expected[n].shape, inside) for n in open_}
        allowed = {n: widths[self.base][n][places[n]].astype(np.float64) for n in open_}
        enough = {n: np.where(open_[n][places[n]], ENOUGH * allowed[n], np.inf) for n in open_}
        for name, (middle, radius) in self._on_balls(part, enough).items():
            where = places[name]
            known = open_[name][where] & np.isfinite(radius)
            expected[name][where] = np.where(known, middle, expected[name][where])
            more = np.where(known & (allowed[name] > 0), radius, 0.0)  # what must be exact has no radius
            widths[self.base][name][where] = rounded_up(allowed[name] + more)
            open_[name][where] &= ~known
            widths[self.base][name] = np.where(open_[name], np.float32(np.inf), widths[self.base][name])

    def _of_rows(self, selection: Selection, open_: Mapping[str, Mask]) -> Selection:
        """Return indices of a selection that hold all rows with open values, or as many of them as balls are spent on."""
        local = self._local(selection)
        inside: dict[Key, npt.NDArray[np.int64]] = {}
        for key, size in local.sizes.items():
            there = np.zeros(size, dtype=bool)
            for name, mask in open_.items():
                axis = next(a for a, k in local.results[name].items() if k == key)
                selected = np.any(mask, axis=tuple(a for a in range(mask.ndim) if a != axis))
                there |= selected if selected.size == size else bool(selected[0])
            there[:LEAST] |= np.count_nonzero(there) < LEAST
            inside[key] = np.flatnonzero(there)
        return _fitted(local, open_, inside, Budget(self.balls, self.balls), 1 / 2)

    def _local(self, selection: Selection) -> Rows:
        """Return the row axes of the selected part."""
        return replace(self.rows, sizes={key: len(self._indices(key, selection)) for key in self.rows.sizes})


# ---- which rows are judged ------------------------------------------------------------------------------------------------
def _fits(rows: Rows, results: Mapping[str, npt.NDArray[Any]], selection: Selection, budget: Budget) -> bool:
    cost = rows.cost(sum(x.size for x in results.values()), selection)
    return cost.values <= budget.values and cost.terms <= budget.terms


def _fitted(
    rows: Rows, results: Mapping[str, npt.NDArray[Any]], wanted: Selection, budget: Budget, part: float
) -> Selection:  # fmt: skip
    """Return the first of the wanted indices: of the longest axis again and again only a part, until all fit a budget."""
    kept = dict(wanted)
    while kept and not _fits(rows, results, kept, budget):
        longest = max(kept, key=lambda key: len(kept[key]))
        if len(kept[longest]) <= LEAST:
            break
        kept[longest] = kept[longest][: max(LEAST, int(len(kept[longest]) * part))]
    return kept


def choose(rows: Rows, outputs: Arrays, near: Arrays, budget: Budget, screen: Callable[[], Far] | None = None) -> Selection:
    """
    Return the indices to judge along every row axis; of an axis that is not among them all.

    First come the rows whose outputs are farthest from `near`, which is close to the truth. That they look right proves
    nothing, so the first and last rows, those around multiples of usual tile sizes and drawn ones are judged too. With a
    `screen`, which finds the farthest rows, only the shapes of `near` matter.
    """
    if not rows.sizes or _fits(rows, near, {}, budget):
        return {}
    far = farthest(rows, far_off(rows, outputs, near)) if screen is None else screen()
    wanted = {key: _in_order(size, far.get(key, ())) for key, size in rows.sizes.items()}
    kept = _fitted(rows, near, wanted, budget, 3 / 4)
    return {key: np.sort(indices) for key, indices in kept.items() if len(indices) < rows.sizes[key]}


def _in_order(size: int, far: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return indices of an axis, those that matter most first."""
    borders = [m * s + d for m in (1, 2, 3) for s in TILES for d in (-1, 0, 1)]
    drawn = np.random.default_rng(size).integers(0, max(size, 1), DRAWN)
    first = [*np.asarray(far, dtype=np.int64), 0, size - 1, 1, size - 2, *borders, *drawn]
    return np.asarray(list(dict.fromkeys(int(i) for i in first if 0 <= i < size)), dtype=np.int64)


def far_off(rows: Rows, outputs: Arrays, near: Arrays) -> npt.NDArray[np.float64]:
    """Return how much the outputs of every row differ from `near`, for the size of the row; the axes are those of `rows`."""
    keys = list(rows.sizes)
    total = np.zeros(tuple(rows.sizes.values()))
    for name, expected in near.items():
        axes = {key: axis for axis, key in rows.results.get(name, {}).items() if expected.shape[axis] == rows.sizes[key]}
        others = tuple(axis for axis in range(expected.ndim) if axis not in axes.values())
        with np.errstate(all="ignore"):
            error = np.asarray(outputs[name] - expected.astype(np.float64, copy=False))
            error = np.abs(error, out=error)
            size = np.abs(expected)
            if others:
                error, size = np.max(error, axis=others, initial=0.0), np.max(size, axis=others, initial=0.0)
            ratio = np.nan_to_num(error / (size + np.finfo(np.float32).tiny), nan=np.inf)
        order = sorted(axes, key=axes.__getitem__)
        ratio = ratio.transpose([order.index(key) for key in keys if key in axes])
        total = np.maximum(total, ratio[tuple(slice(None) if key in axes else None for key in keys)])
    return total


def farthest(rows: Rows, total: npt.NDArray[np.float64]) -> Far:
    """Return the indices of the rows that are farthest off, the farthest first."""
    worst = np.argpartition(total, -FAR, axis=None)[-FAR:] if total.size > FAR else np.arange(total.size)
    worst = worst[np.argsort(total.ravel()[worst], kind="stable")[::-1]]
    return dict(zip(rows.sizes, np.unravel_index(worst, total.shape), strict=True)) if rows.sizes else {}


def screened(op: str, call: Call, rows: Rows, outputs: Arrays) -> Far:
    """Return the rows of a call whose outputs are farthest from what the definition gives in float64."""
    if not rows.sizes:
        return {}
    total = np.zeros(tuple(rows.sizes.values()))
    key = max(rows.sizes, key=lambda key: (_having(rows, call.inputs, key), rows.sizes[key]))
    for part in _parts(rows.sizes[key], max(y.size for y in outputs.values())):
        near = plain(op, wide(rows.cut(call.inputs, {key: part})), call.params)
        local = replace(rows, sizes={**rows.sizes, key: part.stop - part.start})
        where = tuple(part if other == key else slice(None) for other in rows.sizes)
        total[where] = far_off(local, rows.cut_results(outputs, {key: part}), near)
    return farthest(rows, total)


def _having(rows: Rows, inputs: Arrays, key: Key) -> int:
    """Return how many arguments have a row axis: divided by that of most, little is computed again in every part."""
    axes = {
        name: axis for name, axes_of_array in rows.arguments.items() for axis, other in axes_of_array.items() if other == key
    }
    return sum(inputs[name].shape[axis] == rows.sizes[key] for name, axis in axes.items())


def _parts(size: int, values: int) -> list[slice]:
    """Return slices of an axis, each of at least two indices, so that about `PART` values belong to each."""
    count = max(1, min(size // LEAST, -(-values // PART)))
    edges = [size * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
