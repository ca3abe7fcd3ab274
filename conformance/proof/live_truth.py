"""
The truth of any call, computed on the spot: expected values and tolerances as suites store them, for some rows of the call.

The definition runs on live bounds (`posref.backends.live`): for class float64 they give values and how far these may be from
the truth, for the claimed class the tolerances. What that leaves undecided is decided on balls, and so is what is claimed in
float64: that needs python-flint. No rounding is proved: the expected value is a ball's midpoint, and its radius is added to the
tolerance. So a true value may lie halfway between two float64 numbers, and no value keeps others from being judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.bounds import rounded_up
from posref.backends.live import LiveSensitivity, live
from posref.backends.numbers import Array, Undecided
from posref.backends.rounding import LARGEST
from posref.spec import REGISTRY

from ..accuracy import TRIG, base_of, tolerance_of
from ..errors import NotJudged
from ..model import Arrays, Call
from .evaluation import Pullback, as_reals, decided, enclosed, results_of, wide, widths_of
from .rows import LEAST, Budget, Key, Rows, Sample, Selection, fits

Mask = npt.NDArray[np.bool_]
Enclosure = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # values, and how far they may be from the true ones
ENOUGH = 2.0**-30  # of a tolerance: a radius below it decides nothing
HALVINGS, PROBES = 5, 8  # of an axis, to find the rows where a class leaves a decision open
NEEDED = "deciding it needs python-flint: pip install 'posref[vectors]'"


class Truth:
    """One call, its outputs broadcast to the shapes of its results, and what they are judged by."""

    def __init__(
        self, op: str, call: Call, outputs: Arrays, accuracy: str, dtype: str, rows: Rows, balls: int
    ) -> None:  # fmt: skip
        self.op, self.call, self.outputs, self.rows, self.balls = op, call, outputs, rows, balls
        self.accuracy, self.dtype = accuracy, dtype
        self.base = base_of(accuracy, dtype)
        self.reals = bool(call.cotangents) or REGISTRY[op].returns == "real"
        self._latest: tuple[Selection, Call] | None = None  # what was cut last

    def sample(self, selection: Selection, *, proved: bool) -> Sample:
        """Return what is judged of the selected rows, decided; with `proved` all inexact values come from balls."""
        found, selection = self._decided(selection)
        outputs = wide(self.rows.cut_results(self.outputs, selection))
        judged = {n: y.size for n, y in outputs.items()}
        if not self.reals:
            call = replace(self._cut(selection), expected=self._integers(selection))
            return self._result(call, outputs, selection, judged)
        expected = {n: np.array(np.broadcast_to(value, outputs[n].shape)) for n, (value, _) in found.items()}
        widths = self._widths(selection, {n: error for n, (_, error) in found.items()}, expected)
        open_ = self._open(selection, outputs, found, widths, proved)
        if any(np.any(mask) for mask in open_.values()):
            self._enclose(selection, open_, expected, widths)
            judged = {n: int(mask.size - np.count_nonzero(mask)) for n, mask in open_.items()}
        call = replace(self._cut(selection), expected=expected, widths=widths)
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
        found = results_of(system, self.op, call.inputs, call.params, self._pullback())
        arrays = {n: as_reals(x, system) if not isinstance(x, Array) else x for n, x in found.items()}
        return {n: (x.parts[0], x.parts[1] if len(x.parts) > 1 else np.zeros(x.shape)) for n, x in arrays.items()}

    def _pullback(self) -> Pullback | None:
        return Pullback(self.call.cotangents, tuple(self.outputs)) if self.call.cotangents else None

    # ---- tolerances -----------------------------------------------------------------------------------------------------
    def _decided(self, selection: Selection) -> tuple[dict[str, Enclosure], Selection]:
        """Return values and bounds in the claimed class, of those selected rows where it leaves no decision open."""
        if not self.reals:
            return {}, selection
        system = live(self.base)
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
        found = []
        for half in np.array_split(indices, 2):
            if len(half) < LEAST:
                continue
            try:
                self._run(system, {**selection, key: half})
                found.append(half)
            except Undecided:
                found += self._halved(system, selection, key, half, depth - 1) if depth else []
        return found

    def _widths(self, selection: Selection, errors: Arrays, expected: Arrays) -> dict[str, Arrays]:
        """Return the half-widths of the claimed class, made as those that are stored."""
        widths = {self.base: widths_of(errors, expected)}
        if TRIG.search(self.accuracy):
            moved = {n: e / LiveSensitivity.SMALL for n, (_, e) in self._run(LiveSensitivity(), selection).items()}
            widths["trig"] = {n: rounded_up(np.broadcast_to(e, expected[n].shape)) for n, e in moved.items()}
        return widths

    def _allowed(self, name: str, expected: npt.NDArray[Any], widths: Mapping[str, Arrays]) -> npt.NDArray[np.float64]:
        return tolerance_of({c: w[name] for c, w in widths.items()}, expected, self.accuracy, self.dtype)

    def _require_telling(self, call: Call) -> None:
        """Raise `NotJudged` unless the class rules out zeros, and the dtype has every value."""
        for name, expected in call.expected.items():
            size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
            allowed = self._allowed(name, expected, call.widths)
            if np.any(np.isnan(allowed)):
                msg = f"{self.base} has no tolerance here: a number inside of the operation is beyond float64"
                raise NotJudged(msg)
            if np.any(size > LARGEST[self.dtype]):
                msg = f"out of the range of {self.dtype}"
                raise NotJudged(msg)
            if np.any(size) and not np.any(size > allowed):
                msg = f"{self.base} allows every value of {name} to be zero here"
                raise NotJudged(msg)

    # ---- truth ----------------------------------------------------------------------------------------------------------
    def _integers(self, selection: Selection) -> Arrays:
        """Return integers and masks, from balls where float64 does not decide them."""
        try:
            return {n: value.astype(np.int64) for n, (value, _) in self._run(live("float64"), selection).items()}
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
            near = found if proved else self._run(live("float64"), selection)
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
                found = np.any(mask, axis=tuple(a for a in range(mask.ndim) if a != axis))
                there |= found if found.size == size else bool(found[0])
            there[:LEAST] |= np.count_nonzero(there) < LEAST
            inside[key] = np.flatnonzero(there)
        results = {n: np.broadcast_to(0.0, mask.shape) for n, mask in open_.items()}
        while not fits(local, results, inside, Budget(self.balls, self.balls)):
            longest = max(inside, key=lambda key: len(inside[key]), default=None)
            if longest is None or len(inside[longest]) <= LEAST:
                break
            inside[longest] = inside[longest][: max(LEAST, len(inside[longest]) // 2)]
        return inside

    def _local(self, selection: Selection) -> Rows:
        """Return the row axes of the selected part."""
        return replace(self.rows, sizes={key: len(self._indices(key, selection)) for key in self.rows.sizes})
