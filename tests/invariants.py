"""Invariants of any operation that names them, on its stored cases: nothing here knows an operation."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sample import sample

from posref.backends.bounds import bounds
from posref.conformance.calls import bind, positions_of
from posref.conformance.model import Call
from posref.conformance.suite.axes import alternatives, names_in, value_of
from posref.spec import REGISTRY

Arrays = dict[str, np.ndarray]
SHIFT = 1000  # tokens
SUMS = ("sum", "matmul", "skew_exponential")  # of a number system: libraries add in an order that depends on the shape


def positions(call: Call) -> str:
    """Return the argument that has the positions of tokens: of queries, where keys have their own."""
    return "q_positions" if "q_positions" in call.inputs else "positions"


def ways(op: str, name: str) -> list[list[str]]:
    """Return the axes of an argument, in each of its alternatives, as the registry names them."""
    return [[token.lstrip("~") for token in way.split()] for way in REGISTRY[op].arrays[name].shape.split("|")]


def tokens(op: str, call: Call) -> int | None:
    """Return how many tokens a call has, None for less than two; a first axis may be that of coordinates: A in A T."""
    name = positions(call)
    first = {way[0] if way else None for way in ways(op, name)}
    named = {token for token in first if token and not token.startswith("*")}
    coordinates = len(named) == len(first) == 1 and max(map(len, ways(op, name))) > 1
    shape = call.inputs[name].shape[1 if coordinates else 0 :]
    return next((n for n in reversed(shape) if n > 1), None)


def cut(op: str, call: Call, n: int, row: int) -> Arrays | None:
    """Return the inputs of one token, cut along their axis of size `n`; None if it is unclear which axis that is."""
    letter = {"Q"} if "q_positions" in call.inputs else {"T", "*P"}
    found = {}
    for name, array in call.inputs.items():
        behind = [len(way) - 1 - k for way in ways(op, name) for k, token in enumerate(way) if token in letter]  # axes after it
        axes = [axis for axis, size in enumerate(array.shape) if size == n and array.ndim - axis > min(behind, default=9)]
        if len(axes) > 1:
            return None
        found[name] = np.take(array, [row], axis=axes[0]) if axes else array
    return found


def results(op: str, inputs: Arrays, call: Call) -> tuple[Any, ...]:
    positional, keywords = bind(op, inputs, call.params)
    found = REGISTRY[op].function(*positional, **keywords)
    return found if isinstance(found, tuple) else (found,)


def errors(op: str, inputs: Arrays, call: Call, monkeypatch: pytest.MonkeyPatch) -> tuple[list[np.ndarray], bool]:
    """Return how far float64 results may be from the truth, and whether anything is added up on the way to them."""
    xp, added = bounds("float64"), []
    with monkeypatch.context() as patch:
        for name in SUMS:
            owner = next(kind for kind in type(xp).__mro__ if name in vars(kind))
            patch.setattr(owner, name, noted(getattr(owner, name), added))
        given = {n: xp.asarray(x, dtype=xp.float64 if x.dtype.kind == "f" else None) for n, x in inputs.items()}
        found = [out.parts[1] if len(out.parts) > 1 else np.zeros(out.shape) for out in results(op, given, call)]
    return found, bool(added)


def noted(function: Callable[..., Any], seen: list[bool]) -> Callable[..., Any]:
    def noting(*arguments: Any, **options: Any) -> Any:
        seen.append(True)
        return function(*arguments, **options)

    return noting


def alone(op: str) -> Iterator[tuple[str, Call, int, dict[int, Arrays]]]:
    """Yield the sampled calls of an operation, how many tokens they have, and the first, middle and last token alone."""
    for case in sample(op):
        (call,) = case.calls
        n = tokens(op, call)
        if n is not None:
            rows = {row: cut(op, call, n, row) for row in sorted({0, n // 2, n - 1})}
            yield case.id, call, n, {row: one for row, one in rows.items() if one is not None}


def decode(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Assert that one token alone is its row of the whole.

    Bit for bit where nothing is added up; otherwise both are within their own bounds of the same truth.
    """
    count = 0
    for name, call, n, rows in alone(op):
        together, (of_all, _) = results(op, call.inputs, call), errors(op, call.inputs, call, monkeypatch)
        for row, one in rows.items():
            of_one, added = errors(op, one, call, monkeypatch)
            for got, whole, error, other in zip(results(op, one, call), together, of_one, of_all, strict=True):
                axes = [a for a, (m, k) in enumerate(zip(whole.shape, got.shape, strict=True)) if m != k]
                assert [(whole.shape[a], got.shape[a]) for a in axes] in ([(n, 1)], []), name
                taken = [np.take(x, [row], axis=axes[0]) if axes else x for x in (whole, other)]  # a result may lack that axis
                apart = np.abs(np.subtract(got, taken[0], dtype=np.float64))
                assert np.all(apart <= (error + taken[1] if added else 0)), f"{name}: token {row} alone is not its row"
                count += len(axes)
    assert count, f"{op}: no sampled case has two tokens and an axis of theirs that no other has; add one"


def fixed(op: str, call: Call) -> bool:
    """Return whether options make an axis of the result 1 whatever its size: ALiBi's form "key" forgets the queries."""
    axes = {axis for shape in REGISTRY[op].result for way in alternatives(shape) for axis in way if "(" in axis}
    return any(value_of(axis, dict.fromkeys(names_in(axis), 2) | dict(call.params)) == 1 for axis in axes)


def shift_invariant(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Assert that positions that are all later by as much give the same.

    Bit for bit where nothing is added up; otherwise both are within their own bounds of the same truth.
    """
    count = 0
    for case in sample(op):
        (call,) = case.calls
        names = positions_of(op)
        if fixed(op, call) or any(call.inputs[name].dtype.kind == "f" for name in names):
            continue
        later = {**call.inputs, **{name: call.inputs[name] + SHIFT for name in names}}
        of_later, added = errors(op, later, call, monkeypatch)
        of_now, _ = errors(op, call.inputs, call, monkeypatch)
        parts = zip(results(op, later, call), results(op, call.inputs, call), of_later, of_now, strict=True)
        for got, now, error, other in parts:
            apart = np.abs(np.subtract(got, now, dtype=np.float64))
            assert np.all(apart <= (error + other if added else 0)), f"{case.id}: shifted positions give another result"
            count += got.size > 0
    assert count, f"{op}: no sampled case has integer positions; add one"


GENERIC: dict[str, Callable[[str, pytest.MonkeyPatch], None]] = {"decode": decode, "shift invariant": shift_invariant}
