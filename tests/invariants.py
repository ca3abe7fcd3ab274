"""Invariants of any operation that names them, on its stored cases: nothing here knows an operation."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sample import sample

from posref.backends.bounds import bounds
from posref.conformance.calls import bind, positions_of
from posref.conformance.model import Call
from posref.conformance.vocabulary.axes import alternatives, names_in, value_of
from posref.spec import REGISTRY

Arrays = dict[str, np.ndarray]
SHIFT = 2**16 + 7  # tokens: beyond what int16, float16 and most tables hold
OF_ROLES = 1000  # where scales of queries overflow by that shift
SUMS = ("sum", "matmul", "skew_exponential")  # of a number system: libraries add in an order that depends on the shape


def positions(call: Call) -> str:
    """Return the argument that has the positions of tokens: of queries, where keys have their own."""
    return "q_positions" if "q_positions" in call.inputs else "positions"


def ways(op: str, name: str) -> list[list[str]]:
    """Return the axes of an argument, in each of its alternatives, as the registry names them."""
    return [[token.lstrip("~") for token in way.split()] for way in REGISTRY[op].arrays[name].shape.split("|")]


def of_coordinates(op: str, name: str) -> bool:
    """Return whether the first axis of positions is that of coordinates: A in A T."""
    first = {way[0] if way else None for way in ways(op, name)}
    named = {token for token in first if token and not token.startswith("*")}
    return len(named) == len(first) == 1 and max(map(len, ways(op, name))) > 1


def tokens(op: str, call: Call) -> int | None:
    """Return how many tokens a call has, None for less than two."""
    name = positions(call)
    shape = call.inputs[name].shape[1 if of_coordinates(op, name) else 0 :]
    shape = shape[-1:] if name == "q_positions" else shape  # of one query, an axis before it is one of rows
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


def shifted(op: str) -> Iterator[tuple[str, Call, Arrays]]:
    """Yield the sampled calls, and their inputs with positions that are all later; on a grid, by more on each axis."""
    for case in sample(op):
        (call,) = case.calls
        later, exact = dict(call.inputs), True
        for name in positions_of(op):
            now = call.inputs[name]
            shift: Any = OF_ROLES if "role" in call.params else SHIFT
            if of_coordinates(op, name):
                shift = shift * np.arange(1, len(now) + 1).reshape(-1, *[1] * (now.ndim - 1))
            later[name] = now + shift
            exact &= np.array_equal(later[name] - shift, now)  # else fractions are rounded
        if exact:
            yield case.id, call, later


def shift_invariant(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Assert that positions that are all later by as much give the same.

    Bit for bit where nothing is added up; otherwise both are within their own bounds of the same truth.
    """
    count = 0
    for name, call, later in shifted(op):
        if fixed(op, call):
            continue
        of_later, added = errors(op, later, call, monkeypatch)
        of_now, _ = errors(op, call.inputs, call, monkeypatch)
        parts = zip(results(op, later, call), results(op, call.inputs, call), of_later, of_now, strict=True)
        for got, now, error, other in parts:
            apart = np.abs(np.subtract(got, now, dtype=np.float64))
            assert np.all(apart <= (error + other if added else 0)), f"{name}: shifted positions give another result"
            count += got.size > 0
    assert count, f"{op}: no sampled case has positions that a shift leaves exact; add one"


def logits(op: str, inputs: Arrays, call: Call, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of all rotated tokens, of queries and keys where there are roles, and their errors by rounding."""
    roles = [{"role": role} for role in ("query", "key")] if "role" in call.params else [{}, {}]
    calls = [replace(call, params={**call.params, **role}) for role in roles]
    q, k = (results(op, inputs, of_role)[0] for of_role in calls)
    (of_q,), (of_k,) = (errors(op, inputs, of_role, monkeypatch)[0] for of_role in calls)
    k, of_k = np.swapaxes(k, -1, -2), np.swapaxes(of_k, -1, -2)
    summed = q.shape[-1] * 2.0**-53 * np.abs(q) @ np.abs(k)
    return q @ k, np.abs(q) @ of_k + of_q @ np.abs(k) + of_q @ of_k + summed


def relative(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Assert <R(p)x, R(q)y> == <R(p+s)x, R(q+s)y>, or that a result of both positions depends on their difference alone.

    Within the bounds of both sides. Calls are left out whose tokens have frequencies of their own, or are not side by side.
    """
    if "q_positions" in REGISTRY[op].arrays:
        shift_invariant(op, monkeypatch)
        return
    count = 0
    for name, call, later in shifted(op):
        n = tokens(op, call)
        first = cut(op, call, n, 0) if n else None
        if first is None or first["x"].shape[-2] != 1:
            continue
        if any(first[key].size < call.inputs[key].size for key in first.keys() - {"x", "positions"}):
            continue
        (now, error), (then, other) = (logits(op, inputs, call, monkeypatch) for inputs in (call.inputs, later))
        assert np.all(np.abs(then - now) <= error + other), f"{name}: shifted positions give other logits"
        count += now.shape[-1] > 1
    assert count, f"{op}: no sampled case has two tokens; add one"


GENERIC: dict[str, Callable[[str, pytest.MonkeyPatch], None]] = {
    "decode": decode,
    "shift invariant": shift_invariant,
    "relative": relative,
}
