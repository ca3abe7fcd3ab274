"""
Batch invariance, on request: whether a row of a result has the same bits alone and among other rows.

Rows are those of the registry: axes along which every index stands for itself. A call that passed is made longer, to 1, 2, 3,
7, 64, 65 and 257 rows, and its first, middle and last row are asked alone. Then the other rows are NaN, have other positions,
and lie in memory with strides. Gradients are asked too. It says nothing of conformance: an ulp more in a batch is as right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import BITS, round_to
from posref.scaling import RECORDS
from posref.spec import REGISTRY, Axes

from ..calls import given_dtype
from ..errors import Failure, Stopped, TargetError, Unsupported
from ..experiments.asker import Asker
from ..model import Answer, Arrays, Call, LoadedCase, Operation
from ..targets.base import Target
from ..targets.loader import load
from ..vocabulary.axes import Key, Rows, limits, rows_of, within
from ..vocabulary.traits import defaults
from .assertion import NAME, accepted, call_of, library_of, results_on_host
from .fresh_calls import is_small

Array = npt.NDArray[Any]
SIZES = (1, 2, 3, 7, 64, 65, 257)
CASES = 3  # of an operation, of each kind
LARGEST = 1 << 12  # numbers of a case, in and out
ALL = tuple(record.__name__ for record in RECORDS)
BESIDE = ("NaN", "other positions")


@dataclass(frozen=True)
class Invariance:
    """What was found of one operation in one dtype: how many rows were compared, and the first that differs."""

    op: str
    dtype: str
    compared: int
    broken: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for a report."""
        return {"op": self.op, "dtype": self.dtype, "compared": self.compared, "broken": self.broken}


def batch_invariance(target: Target, operations: Sequence[tuple[Operation, list[Answer]]]) -> list[Invariance]:
    """Return a result for each operation that has rows and a passing case."""
    outcomes = []
    for operation, answers in operations:
        passed = {one.id for one in operation.cases if one.verdict == "pass"}
        single_calls = [one.case for one in answers if one.case.id in passed and len(one.case.calls) == 1]
        cases = [case for case in single_calls if is_small(case.calls[0], LARGEST)]
        chosen = [case for kind in ("value", "vjp") for case in _spread([c for c in cases if c.kind == kind and not c.form])]
        outcome = invariance_of(target, operation.op, operation.dtype, chosen)
        if outcome.compared:
            outcomes.append(outcome)
    return outcomes


def _spread(cases: Sequence[LoadedCase]) -> list[LoadedCase]:
    """Return a few of some cases: the first, the last and those between, and that of the most channels, whose sums are long."""
    if not cases:
        return []
    widths = [max((x.shape[-1] for x in case.calls[0].inputs.values() if x.ndim), default=0) for case in cases]
    places = [*np.linspace(0, len(cases) - 1, CASES).astype(int).tolist(), int(np.argmax(widths))]
    return [cases[at] for at in dict.fromkeys(places)]


def invariance_of(target: Target, op: str, dtype: str, cases: Sequence[LoadedCase], sizes: Sequence[int] = SIZES) -> Invariance:
    """Compare rows of calls that are like some cases; the first that differs ends it."""
    asker, compared = Asker(target, op, dtype, 0), 0
    for case in cases:
        [call] = case.calls
        results = call.cotangents or call.expected
        rows = rows_of(op, call.inputs, call.params, {n: x.shape for n, x in results.items()})
        for key, size in rows.sizes.items():
            for count in sizes if size else ():
                for difference in _differences(asker, case, _grown(case, rows, key, count, dtype), rows, key, count):
                    compared += 1
                    if difference:
                        return Invariance(op, dtype, compared, difference)
    return Invariance(op, dtype, compared)


def batch_fault(
    op: str, function: Callable[..., Any], actual: Any, arrays: Sequence[Any], options: Mapping[str, Any]
) -> str | None:
    """Return which row of calls like this one differs from the row alone, values first, then gradients; None if none does."""
    call, results = call_of(NAME, op, arrays, options), results_on_host(op, actual, arrays)
    dtype, outputs = accepted(op, call, results)
    backend = library_of(actual, *arrays).name
    target = load(SimpleNamespace(__name__="function", backend=backend, dtypes=(dtype,), scalings=ALL, **{op: function}))
    cases = [LoadedCase(f"{op}/your/call", op, "value", "core", "", (dtype,), (replace(call, expected=outputs),))]
    reals = [name for name in call.inputs if _is_real(op, name)]
    if target.has_gradients(op) and reals and all(x.dtype.kind == "f" for x in outputs.values()):
        rng = np.random.default_rng(0)
        cotangents = {name: round_to(rng.standard_normal(x.shape), dtype) for name, x in outputs.items()}
        pull = replace(call, expected={name: call.inputs[name] for name in reals}, cotangents=cotangents)
        cases.append(LoadedCase(f"{op}/your/gradient", op, "vjp", "core", "", (dtype,), (pull,)))
    outcome = invariance_of(target, op, dtype, cases)
    if not outcome.compared:
        msg = f"{NAME}: {op} has no rows to compare in this call; leave out batch_invariant."
        raise TargetError(msg)
    return f"{op} in {dtype} is not batch-invariant: {outcome.broken}" if outcome.broken else None


def _grown(case: LoadedCase, rows: Rows, key: Key, count: int, dtype: str) -> Call:
    """Return a call with so many rows along an axis, those of the case over and over with other reals."""
    [call] = case.calls
    rng = np.random.default_rng([count, *case.id.encode()])
    known = {**defaults(case.op), **call.params}
    chosen = {key: np.arange(count) % rows.sizes[key]}
    inputs = {
        name: _reals(x, REGISTRY[case.op].arrays[name], known, given_dtype(case.op, name, dtype), rng)
        if key in rows.arguments.get(name, {}).values() and _is_real(case.op, name)
        else x
        for name, x in rows.cut(call.inputs, chosen).items()
    }
    return replace(call, inputs=inputs, cotangents=rows.cut_results(call.cotangents, chosen), expected={})


def _reals(x: Array, axes: Axes, known: Mapping[str, Any], dtype: str, rng: np.random.Generator) -> Array:
    """Return smaller reals of the same signs with all bits of a dtype: sums of few bits are exact in any order."""
    return round_to(within(x * rng.uniform(0.5, 1, x.shape), axes, known, BITS[dtype]), dtype)


def _is_real(op: str, name: str) -> bool:
    return REGISTRY[op].arrays[name].kind in ("real", "wide")


def _differences(asker: Asker, case: LoadedCase, grown: Call, rows: Rows, key: Key, count: int) -> Iterator[str]:
    """Yield for every row that is compared what differs, or nothing."""
    rows, call = replace(rows, sizes={**rows.sizes, key: count}), _filled(asker, case, grown)
    if call is None:
        return
    alone: dict[int, Arrays] = {}
    for at in dict.fromkeys((0, count // 2, count - 1)):
        row = _filled(asker, case, _row(grown, rows, key, at))
        outputs = None if row is None else _outputs(asker, case, row)
        if outputs is not None:
            alone[at] = outputs
    asked: list[tuple[str, Sequence[int], Call, str]] = [("", [*alone], call, "")]
    if count > 1:
        asked.append((" in strides", [*alone], call, "non-contiguous"))
        changed = ((how, at, _company(case, call, rows, key, at, how)) for how in BESIDE for at in alone)
        asked += [(f" beside rows of {how}", [at], other, "") for how, at, other in changed if other is not None]
    for how, compared, changed_call, form in asked:
        whole = _outputs(asker, case, changed_call, form)
        for at in () if whole is None else compared:
            yield _compared(case, rows, key, at, whole or {}, alone[at], how)


def _row(call: Call, rows: Rows, key: Key, at: int) -> Call:
    one = {key: np.asarray([at])}
    return replace(call, inputs=rows.cut(call.inputs, one), cotangents=rows.cut_results(call.cotangents, one))


def _company(case: LoadedCase, call: Call, rows: Rows, key: Key, at: int, how: str) -> Call | None:
    """Return a call in which one row is as it was, and the others are not; None where there is nothing to change."""
    if call.cotangents and how == "NaN":
        return None
    changed: dict[str, npt.NDArray[Any]] = {}
    for name, x in call.inputs.items():
        axis = next((a for a, k in rows.arguments.get(name, {}).items() if k == key and x.shape[a] == rows.sizes[key]), None)
        record = REGISTRY[case.op].arrays[name]
        free = record.kind == "position" and limits(record, {**defaults(case.op), **call.params})[1] is None
        if axis is None or not (_is_real(case.op, name) if how == "NaN" else free):
            continue
        mine = (slice(None),) * axis + (slice(at, at + 1),)
        other = np.full_like(x, np.nan) if how == "NaN" else x + 3
        other[mine] = x[mine]
        changed[name] = other
    return replace(call, inputs={**call.inputs, **changed}) if changed else None


def _filled(asker: Asker, case: LoadedCase, call: Call) -> Call | None:
    """Return a call with results of the shapes that are expected; None if the operation refuses it."""
    if call.cotangents:
        return replace(call, expected={name: np.zeros_like(call.inputs[name]) for name in case.calls[0].expected})
    return asker.filled(call)


def _outputs(asker: Asker, case: LoadedCase, call: Call, form: str = "") -> Arrays | None:
    """Return what a call gives, or its gradients; None where it is refused or ends without a result."""
    asked = LoadedCase(f"{case.op}/batch/{case.kind}", case.op, case.kind, "core", "", (asker.dtype,), (call,), form)
    try:
        return asker.target.run(asked, call, asker.dtype)
    except (Unsupported, Failure, Stopped):
        return None


def _compared(case: LoadedCase, rows: Rows, key: Key, at: int, whole: Arrays, alone: Arrays, how: str) -> str:
    """Return what is not the same in a row, in words; nothing if every bit is."""
    kept = case.calls[0].cotangents
    one = {key: np.asarray([at])}
    places = rows.arguments if kept else rows.results
    cut = rows.cut(whole, one) if kept else rows.cut_results(whole, one)
    for name, row in alone.items():
        axis = next((a for a, k in places.get(name, {}).items() if k == key), None)
        shared = axis is None or whole[name].shape[axis] != rows.sizes[key]  # by all rows
        if shared or cut[name].shape != row.shape or cut[name].tobytes() == row.tobytes():
            continue
        a, b = (np.ascontiguousarray(x).reshape(-1) for x in (cut[name], row))
        different = np.flatnonzero(a.view(f"V{a.itemsize}") != b.view(f"V{b.itemsize}"))
        first = int(different[0])
        index = ", ".join(str(int(i)) for i in np.unravel_index(first, row.shape))
        what = f"the gradient of {name}" if kept else name
        along = f"{at} of {rows.sizes[key]} along {key[0]}"
        values = f"{what}[{index}] is {a[first]:.9g} there and {b[first]:.9g} alone"
        return f"row {along}{how} differs from the row alone in {len(different)} of {row.size} values: {values}"
    return ""
