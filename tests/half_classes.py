"""
The class that right code of every operation reaches in half precision, measured: ``python tests/half_classes.py --write``.

Right code is the definition with a rounding after each operation of an array library (`Stepwise`), the plain implementation,
the one in ``correct/torch_half.py``, and transformers. For each, the table has its worst error over what class mixed allows.
Calls that fail class low as well are left out: they are outside what that code offers. "narrow" rounds after each addition too,
which class mixed need not allow: libraries add in float32.

An operation is held to class mixed by default where all but "narrow" are inside in both dtypes, class low allows 1.5 times as
much at the median, and a sum is taken or only positions are given: norms, products, tables of positions. Rotations alone are
held to class low.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from reordered import Single
from sample import stored

from posref.backends.numbers import Array, Label, float32, storage
from posref.backends.rounding import round_to
from posref.conformance import judge
from posref.conformance.accuracy import HALF_PRECISION
from posref.conformance.calls import makes_constants, returns_reals
from posref.conformance.checks.better_fit import distinct
from posref.conformance.checks.case_run import ask
from posref.conformance.checks.fine_calls import fine_answers
from posref.conformance.checks.learned_scope import Trials
from posref.conformance.checks.rounding_fit import ALL, RoundingFit, by_mismatches, expressions, registered
from posref.conformance.diagnosis.hypotheses import Budget, quiet
from posref.conformance.errors import TargetError
from posref.conformance.model import Answer, Call, LoadedCase, Operation
from posref.conformance.proof.evaluation import call_of, half_widths
from posref.conformance.targets.python import load_python
from posref.spec import REGISTRY

HERE = Path(__file__).parent
TORCH_HALF = HERE / "correct" / "torch_half.py"
DTYPES = ("bfloat16", "float16")
LARGEST = 6000  # values of a case that is asked
CLEARLY = 1.5
SEEDS = (1, 2, 3)
Outputs = list[dict[str, np.ndarray[Any, Any]]]
Code = Callable[[LoadedCase], Outputs | None]  # what an implementation gives for the calls of a case, or None


class Stepwise(Single):
    """The namespace of code that rounds after each operation of a library, which adds in float32."""

    __name__ = "stepwise"

    def __init__(self, dtype: str, *, narrow: bool = False) -> None:
        self.dtype, self.narrow = dtype, narrow
        self.adds = False

    def array(self, value: Any, dtype: Label) -> Array:
        found = super().array(value, dtype)
        if dtype not in (float32, storage):
            return found
        return super().array(round_to(found.parts[0].astype(np.float64), self.dtype), dtype)

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        self.adds |= x.dtype in (float32, storage) and x.shape[axis] > 1
        if not self.narrow or not x.shape[axis]:
            return super().sum(x, axis=axis, keepdims=keepdims)
        total = x.xp.moved(self.real_cumulative_sum(x, axis), lambda part: np.take(part, [-1], axis=axis))
        return total if keepdims else x.xp.moved(total, lambda part: np.squeeze(part, axis=axis))

    def matmul(self, a: Array, b: Array) -> Array:
        self.adds |= a.shape[-1] > 1
        if self.narrow:
            return super().matmul(a, b)
        return self.array(a.parts[0] @ b.parts[0], self.result_type(a.dtype, b.dtype))

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        total, found = None, []
        for k in range(x.shape[axis]):
            term = x.xp.moved(x, lambda part, k=k: np.take(part, k, axis=axis))
            total = term if total is None else total + term
            found.append(total.parts[0])
        return self.array(np.stack(found, axis=axis) if found else x.parts[0], x.dtype)

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        return a


def cases(op: str, dtype: str) -> list[LoadedCase]:
    """Return the cases of values that are asked in a dtype, without very large ones."""
    return [
        case
        for case in stored(op)
        if case.kind in ("value", "sequence") and dtype in case.dtypes
        and 0 < sum(x.size for call in case.calls for x in call.expected.values()) <= LARGEST
    ]  # fmt: skip


def stepwise(system: Stepwise, case: LoadedCase) -> Outputs:
    """Return what a definition gives that rounds after each operation."""
    found = [call_of(system, case.op, call.inputs, call.params) for call in case.calls]
    return [{n: np.asarray(round_to(np.asarray(y.parts[0], float), system.dtype), float) for n, y in x.items()} for x in found]


def asked(target: Any, dtype: str, case: LoadedCase) -> Outputs | None:
    """Return what a target gives, or None if it does not answer."""
    answer = Answer(case, dtype)
    verdict = ask(target, case, dtype, answer).verdict
    return answer.outputs if verdict in ("pass", "fail") and len(answer.outputs) == len(case.calls) else None


def codes(op: str, dtype: str, system: Stepwise) -> Iterator[tuple[str, Code]]:
    """Yield the right implementations of an operation that are at hand, by a name."""
    yield "stepwise", partial(stepwise, system)
    yield "narrow", partial(stepwise, Stepwise(dtype, narrow=True))
    for name, file in (("plain", HERE / "plain" / f"{op}.py"), ("torch_half", TORCH_HALF), ("transformers", "transformers")):
        try:
            target = load_python(str(file), dtype=dtype)
        except TargetError:  # its library has no such dtype
            continue
        if target.has(op):
            yield name, partial(asked, target, dtype)


def worst(op: str, dtype: str, code: Code) -> float | None:
    """Return the worst error over what class mixed allows, of calls within class low; None where no call is answered."""
    found = None
    for case in cases(op, dtype):
        for call, outputs in zip(case.calls, code(case) or (), strict=False):
            if judge.compare(op, call, outputs, "low", dtype) is None:
                found = max(found or 0.0, *(ratio(op, call, name, outputs[name], dtype) for name in call.expected))
    return found


def ratio(op: str, call: Call, name: str, output: np.ndarray[Any, Any], dtype: str) -> float:
    """Return the largest error of an output over what class mixed allows."""
    error, width = (x.ravel() for x in (np.abs(output - call.expected[name]), half_widths(op, call, f"mixed-{dtype}")[name]))
    return float(np.max(judge.ratios(np.where(np.isinf(call.expected[name].ravel()), 0.0, error), width), initial=0.0))


def gain(op: str, dtype: str) -> float:
    """Return how many times more class low allows than mixed, at the median."""
    found = [np.ones(1)]
    for case in cases(op, dtype):
        for call in case.calls:
            for name, value in call.expected.items():
                low = judge.widths_of_all(op, [(call, name, value)], "low", dtype)
                mixed = half_widths(op, call, f"mixed-{dtype}")[name].ravel().astype(np.float64)
                told = (low > 0) & (mixed > 0) & np.isfinite(low) & np.isfinite(mixed)
                found.append(low[told] / mixed[told])
    return float(np.median(np.concatenate(found)))


def measured(op: str, seeds: Sequence[int] = ()) -> dict[str, Any]:
    """Return the row of the table for an operation; fresh calls of `seeds` show more roundings."""
    adds = all(axes.kind != "real" for axes in REGISTRY[op].arrays.values())
    row: dict[str, Any] = {}
    for dtype in DTYPES:
        system = Stepwise(dtype)
        of = {name: worst(op, dtype, code) for name, code in codes(op, dtype, system)}
        row[dtype] = {"gain": round(gain(op, dtype), 2)} | {n: float(f"{x:.3g}") for n, x in of.items() if x is not None}
        adds |= system.adds
    inside = all(x <= 1 for of in (row[d] for d in DTYPES) for n, x in of.items() if n not in ("gain", "narrow"))
    mixed = adds and inside and all(row[d]["gain"] >= CLEARLY for d in DTYPES)
    return {"default": "mixed" if mixed else "low", **row, "roundings": roundings(op, seeds)}


def roundings(op: str, seeds: Sequence[int] = ()) -> list[str]:
    """Return the roundings that released code of an operation makes: the plain implementation, and transformers."""
    found = set[str]()
    for dtype in DTYPES:
        for file in (str(HERE / "plain" / f"{op}.py"), "transformers"):
            with suppress(TargetError):  # its library has no such dtype
                target = load_python(file, dtype=dtype)
                for drawn in ((), seeds) if seeds else ((),):
                    found |= {fit.name for fit in fits(op, dtype, target, drawn)} if target.has(op) else set()
    return sorted(found)


def fits(op: str, dtype: str, target: Any, seeds: Sequence[int] = ()) -> list[RoundingFit]:
    """Return the roundings that fit the right answers of a target, to fresh calls of some seeds too."""
    answers, operation = [], Operation(op, dtype, "low", [])
    for case in cases(op, dtype):
        answer = Answer(case, dtype)
        result = ask(target, case, dtype, answer)
        if result.verdict == "pass" and len(answer.outputs) == len(case.calls):
            answers.append(answer)
            operation.cases.append(result)
    for seed in seeds:
        answers += fine_answers(operation, answers, Trials(target, 0, seed, None), seed)
    questions = list(distinct(op, answers, "low", Budget()))
    with quiet():
        return [
            *registered(op, dtype, questions),
            *expressions(op, dtype, by_mismatches(op, questions, len(questions) if seeds else ALL)),
        ]


def operations() -> list[str]:
    """Return the operations that have a class in half precision."""
    return sorted(op for op in REGISTRY if returns_reals(op) and not makes_constants(op))


def written(rows: dict[str, Any]) -> str:
    """Return the table as its file has it: one line an operation."""
    return "{\n" + ",\n".join(f" {json.dumps(op)}: {json.dumps(row)}" for op, row in sorted(rows.items())) + "\n}\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")] or operations()
    table = json.loads(HALF_PRECISION.read_text(encoding="utf-8")) if HALF_PRECISION.is_file() else {}
    for operation in wanted:
        table[operation] = measured(operation, SEEDS)
        print(operation, json.dumps(table[operation]), flush=True)
    if "--write" in sys.argv:
        HALF_PRECISION.write_text(written({op: table[op] for op in operations() if op in table}), encoding="utf-8")
