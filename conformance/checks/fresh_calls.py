"""
Fresh calls: what passed is asked once more, with other numbers, and judged live. A table of the suite's answers fails them.

Of every operation a few small cases that passed are drawn, by a seed that the report names. Reals are made smaller, each by its
own factor; positions are moved, those of queries farther than those of keys; indices of tables are drawn anew. Where an
operation takes no arrays its options are changed, and where tokens depend on their neighbours one of them is left out.

Code that refuses part of the suite, and does not state its scope, must answer one fresh call: else it may be a table that
refuses all that is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import BITS, round_to
from posref.spec import REGISTRY, Axes, Integer, Real

from ..calls import given_dtype, positions_of
from ..model import Answer, Call, LoadedCase, Operation, Scope
from ..proof.evaluation import plain
from ..suite.axes import arranged, holds, limits, result_axes, value_of, within
from ..targets.base import Target
from ..traits import LETTERS, RELATIONS, defaults, letters, traits_of
from .scope import is_inside, is_known
from .scope_result import CHANGES, NARROW, Asker, Progress, resized
from .scope_statement import Stated

CALLS = 4  # of an operation
REFUSED = 12  # cases of which other calls are tried while none is answered
LARGEST = 1 << 10  # numbers of a case, in and out
FARTHEST = 1 << 16  # its positions
SHORTEST = 3  # tokens of which one can be left out
Pairs = Sequence[tuple[Operation, list[Answer]]]
Stored = Sequence[Mapping[str, Any]]  # options of the suite's calls


def ask_fresh_calls(operations: Pairs, target: Target, stated: Stated, seed: int, progress: Progress | None) -> int:
    """Ask every operation that conforms a few fresh calls, and return how many were asked."""
    asked = 0
    for op in dict.fromkeys(operation.op for operation, _ in operations):
        own = [pair for pair in operations if pair[0].op == op]
        if all(operation.conformant for operation, _ in own):
            asker = _ask(op, own, target, stated, np.random.default_rng([seed, *op.encode()]), progress)
            asked += len(asker.results)
    return asked


def _ask(op: str, own: Pairs, target: Target, stated: Stated, rng: np.random.Generator, progress: Progress | None) -> Asker:
    """Ask one operation in one dtype, and put what is wrong into its scope."""
    operation, answers = min(own, key=lambda pair: pair[0].dtype == "float64")  # whose values would all be decided on balls
    passed = {one.id for one in operation.cases if one.verdict == "pass" and one.kind == "value"}
    near = [answer.case for answer in answers if answer.case.id in passed and _is_near(answer.case)]
    cases = [case for case in near if _is_small(case.calls[0])]
    known = [traits_of(case, operation.dtype) for case in cases]
    asker = Asker(target, op, operation.dtype, tuple(known), progress)

    def is_wrong(case: LoadedCase, call: Call | None, name: str) -> bool:
        result = None if call is None else asker.ask_shaped(f"{case.id}.{name}", call)
        if call is None or result is None or result.verdict == "pass":
            return False
        traits = traits_of(replace(case, calls=(call,)), operation.dtype)
        inside = is_known(traits, known) or (op in stated and is_inside(stated[op], traits))
        refused = result.verdict == "unsupported"
        if refused and not inside:
            return False
        text = f"it {'refuses' if refused else 'is wrong in'} a fresh call, {case.id} with other numbers: {result.message}"
        _decide(own, "selective" if refused else result.verdict, text)
        return True

    order = [cases[at] for at in rng.permutation(len(cases))]
    stored = [{**defaults(op), **call.params} for _, given in own for answer in given for call in answer.case.calls]
    if any(is_wrong(case, fresh(case, operation.dtype, rng, stored), "fresh") for case in order[:CALLS]):
        return asker
    if op in stated or not any(one.counts["unsupported"] for one, _ in own):
        return asker
    for case, name, call in _others(order, near, operation.dtype, rng, stored):
        if _answered(asker) or is_wrong(case, call, name):
            return asker
    if asker.results and not _answered(asker):
        calls = "the fresh call" if len(asker.results) == 1 else f"all {len(asker.results)} fresh calls"
        text = f"it refuses {calls}, cases that passed with other numbers; state the scope in `supports`"
        _decide(own, NARROW, f"its scope is too narrow: {text}")
    return asker


def _answered(asker: Asker) -> int:
    return sum(result.verdict != "unsupported" for result in asker.results.values())


def _others(
    small: Sequence[LoadedCase], near: Sequence[LoadedCase], dtype: str, rng: np.random.Generator, stored: Stored
) -> Iterator[tuple[LoadedCase, str, Call | None]]:
    """Yield more calls, also such as code of one base, or of positions from 0, answers."""
    for case in small[CALLS:REFUSED]:
        yield case, "fresh", fresh(case, dtype, rng, stored)
    for case in (near[at] for at in rng.permutation(len(near))[:REFUSED]):
        if not case.calls[0].inputs:
            yield case, "whole", _with_other_options(case.op, case.calls[0], rng, stored, whole=True)
            continue
        for axis in LETTERS.values():
            count = SHORTEST + int(rng.integers(4))
            yield case, f"{axis}-{count}", _of_tokens(case, axis, count)


def _of_tokens(case: LoadedCase, axis: str, count: int) -> Call | None:
    """Return a small call with another number of tokens, queries or keys; None where its arrays do not fit together then."""
    [call] = case.calls
    changed: Call | None = None
    with suppress(ValueError):
        if axis == "tokens" and len(call.inputs) == 1 and tuple(call.inputs) == positions_of(case.op):
            [(name, p)] = call.inputs.items()
            if p.ndim and p.size:
                changed = replace(call, inputs={name: resized(p, p.ndim - 1, count, follows=True)})
        else:
            changed = CHANGES[axis](case, count)
        if changed is not None:
            changed = replace(changed, expected=plain(case.op, changed.inputs, changed.params))
            return changed if _is_small(changed) else None
    return None


def _decide(own: Pairs, decided: str, text: str) -> None:
    """Put into the scope of an operation what fresh calls say of it."""
    op, counts = own[0][0].op, [operation.counts for operation, _ in own]
    asked, answered = (sum(c.total() - c[left] for c in counts) for left in ("", "unsupported"))
    scope = own[0][0].scope or Scope(op, asked, answered, passed=True)
    scope.decided, scope.narrow = decided, text
    for operation, _ in own:
        operation.scope = scope


def _is_near(case: LoadedCase) -> bool:
    """Return whether a case is one call at positions that are not too far away."""
    if len(case.calls) != 1:
        return False
    given = case.calls[0].inputs
    return all(np.max(np.abs(given[n]), initial=0.0) <= FARTHEST for n in positions_of(case.op) if n in given)


def _is_small(call: Call) -> bool:
    return 0 < sum(a.size for a in (*call.inputs.values(), *call.expected.values())) <= LARGEST


def fresh(case: LoadedCase, dtype: str, rng: np.random.Generator, stored: Stored = ()) -> Call | None:
    """Return the call of a case with other numbers, and options that are not stored; None where there are no others."""
    [call] = case.calls
    record = REGISTRY[case.op]
    known = {**defaults(case.op), **call.params}
    known |= {letter: size[0] for sizes in letters(case.op, call).values() for letter, size in sizes.items() if len(size) == 1}
    if not call.inputs:
        return _with_other_options(case.op, call, rng, stored)
    moves = any(not letter.startswith("~") for letter in record.rows) and not any(known.get(n) is not None for n in RELATIONS)
    shift = int(rng.integers(1, 32))
    inputs: dict[str, npt.NDArray[Any]] = {}
    for name, x in call.inputs.items():
        axes, narrow = record.arrays[name], given_dtype(case.op, name, dtype)
        if axes.kind in ("real", "wide"):
            inputs[name] = _reals(x, axes, known, narrow, rng)
        elif axes.kind == "mask":
            inputs[name] = x
        elif limits(axes, known)[1] is not None:
            inputs[name] = _indices(x, axes, known, rng)
        else:
            inputs[name] = _moved(x, shift + (name.startswith("q_") and 1 + shift % 3), narrow) if moves else x
    if any(not np.array_equal(inputs[n], x) for n, x in call.inputs.items()):
        return replace(call, inputs=inputs)
    [first, *others] = inputs
    if others or not inputs[first].ndim or inputs[first].shape[-1] < SHORTEST:
        return None
    inputs = {first: inputs[first][..., :-1]}
    return replace(call, inputs=inputs, expected=plain(case.op, inputs, call.params))


def _reals(
    x: npt.NDArray[Any], axes: Axes, known: Mapping[str, Any], dtype: str, rng: np.random.Generator
) -> npt.NDArray[Any]:  # fmt: skip
    """Return reals of the same signs, each smaller by up to a half, in the domain of the argument."""
    return round_to(within(x * (1 - rng.integers(1, 32, x.shape) / 64), axes, known, BITS[dtype]), dtype)


def _moved(x: npt.NDArray[Any], shift: int, dtype: str) -> npt.NDArray[Any]:
    """Return positions moved; fractions as a dtype holds them."""
    moved = np.asarray(x + shift)
    return round_to(moved, dtype) if moved.dtype.kind == "f" else moved


def _indices(x: npt.NDArray[Any], axes: Axes, known: Mapping[str, Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return positions that have an end, such as rows of a table, drawn anew."""
    low, high = limits(axes, known)
    if x.dtype.kind == "f":
        return x
    drawn = np.asarray(rng.integers(int(low or 0), int(high or 0) + 1, x.shape))
    return arranged(drawn, axes)


def _with_other_options(
    op: str, call: Call, rng: np.random.Generator, stored: Stored, *, whole: bool = False
) -> Call | None:  # fmt: skip
    """Return a call without arrays of which one number is another, a real if it has any, unless `whole`; None without one."""
    record, numbers = REGISTRY[op], {n: v for n, v in call.params.items() if type(v) in (int, float)}
    reals = [n for n in numbers if isinstance(record.domains[n], Real) and not whole]
    for name in map(str, rng.permutation(reals or [n for n in numbers if isinstance(record.domains[n], Integer)])):
        domain = record.domains[name]
        for k in map(int, rng.permutation(np.arange(1, 9))):
            other = numbers[name] + domain.step * k if isinstance(domain, Integer) else numbers[name] * (1 + k / 64)
            known = {**defaults(op), **call.params, name: other}
            high = domain.high if isinstance(domain, Integer) else None
            if (high is None or other <= high) and known not in stored and all(holds(t, known) for t in record.requires):
                shapes = {n: [value_of(axis, known) for axis in result_axes(op, n, 0)] for n in call.expected}
                expected = {n: np.zeros(shapes[n], x.dtype) for n, x in call.expected.items()}
                return replace(call, params={**call.params, name: other}, expected=expected)
    return None
