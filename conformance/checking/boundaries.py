"""
The limits of a scope, tried on both sides with drawn calls: inside they must be answered and right, outside not wrong.

A drawn call is a case that passed, at the limit, with its positions moved or its tokens and channels cut or repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..calls import positions_of
from ..model import Call, LoadedCase
from .drawn import Asker
from .scope import Bound, Restriction, is_known
from .traits import LETTERS, RELATIONS, has_coordinates, letters, traits_of

Change = Callable[[LoadedCase, float], Call | None]
LARGEST = 1 << 14  # numbers of a drawn call


def reason(op: str, passed: Sequence[LoadedCase], restrictions: Sequence[Restriction], asker: Asker) -> str:
    """Return what is wrong at a limit; empty if nothing is."""
    for restriction in restrictions:
        change = CHANGES.get(restriction.axis[0]) if len(restriction.axis) == 1 else None
        if change is None or not isinstance(restriction.allowed, Bound) or restriction.allowed.high is None:
            continue
        found = _tried(op, passed, restriction, change, restrictions, asker)
        if found:
            return found
    return ""


def _tried(
    op: str, passed: Sequence[LoadedCase], restriction: Restriction, change: Change,
    restrictions: Sequence[Restriction], asker: Asker,
) -> str:  # fmt: skip
    """Return what is wrong on either side of one limit."""
    [axis], high = restriction.axis, float(restriction.allowed.high)
    case = _at_limit(passed, axis, high, asker.dtype)
    if case is None:
        return ""
    for value, inside in _values(axis, high, restriction):
        call = change(case, value)
        if call is None or sum(a.size for a in call.inputs.values()) > LARGEST:
            continue
        traits = traits_of(replace(case, calls=(call,)), asker.dtype)
        if any(other.excludes(traits) for other in restrictions if inside or other is not restriction):
            continue
        result = asker.ask(f"{case.id}.{axis.replace('_', '-')}-{value:.0f}", call)
        if result is None or result.verdict == "pass" or (not inside and result.verdict == "unsupported"):
            continue
        told = f"{axis.replace('_', ' ')} {value:g}"
        if result.verdict == "unsupported" and not is_known(traits, asker.answered):
            continue
        if result.verdict == "unsupported":
            return f"it refuses {told}, inside its limit ({case.id}, moved): {result.message}"
        side = "inside" if inside else "beyond"
        return f"{side} its limit, at {told}, it is wrong ({case.id}, moved): {result.message}"
    return ""


def _at_limit(passed: Sequence[LoadedCase], axis: str, high: float, dtype: str) -> LoadedCase | None:
    """Return the smallest of the cases nearest to a limit that have one call, and no option that goes with its length."""
    found = [
        (high - traits_of(case, dtype).sizes.get(axis, (0.0, 0.0))[1], sum(a.size for a in case.calls[0].inputs.values()), case)
        for case in passed
        if not any(case.calls[0].params.get(name) is not None for name in RELATIONS)
    ]
    return min(found, key=lambda one: (*one[:2], one[2].id), default=(0, 0, None))[2]


def _values(axis: str, high: float, restriction: Restriction) -> Iterator[tuple[float, bool]]:
    """Yield values to try, and whether they lie inside."""
    refused = min((one.traits.sizes[axis][1] for one in restriction.outside if one.traits.sizes[axis][1] > high), default=high)
    if axis != "head_size":
        yield high - 1, True
    step = 2 if axis == "head_size" else 1
    yield from ((value, False) for value in (refused, refused + step * max(1, int(refused) // 3)) if value > high)


# ---- drawn calls ----------------------------------------------------------------------------------------------------------
def _farther(case: LoadedCase, value: float) -> Call | None:
    """Return a call whose positions are moved so that the largest is `value`, as far apart as before but for a start at 0."""
    [call] = case.calls
    given = {n: call.inputs[n] for n in positions_of(case.op) if n in call.inputs and call.inputs[n].size}
    if not given or any(np.any(p < 0) or p.dtype.kind == "f" for p in given.values()):
        return None
    shift = int(value) - max(int(p.max()) for p in given.values())
    return replace(call, inputs={**call.inputs, **{n: np.maximum(p + shift, 0) for n, p in given.items()}})


def _longer(letter: str) -> Change:
    """Return what gives a call with another number of tokens: cut off, or repeated at the positions that follow."""

    def change(case: LoadedCase, value: float) -> Call | None:
        [call] = case.calls
        inputs: dict[str, Any] = dict(call.inputs)
        for name, sizes in letters(case.op, call).items():
            if letter not in sizes or sizes[letter] == (1,):
                continue
            before = [*sizes][: [*sizes].index(letter)]
            if any(key.startswith("*") for key in before):
                return None
            axis = inputs[name].ndim - 1 - len(before)
            inputs[name] = _resized(inputs[name], axis, int(value), follows=name in positions_of(case.op))
        return None if all(inputs[n] is a for n, a in call.inputs.items()) else replace(call, inputs=inputs)

    return change


def _resized(array: Any, axis: int, size: int, *, follows: bool) -> Any:
    """Return an array with another size of an axis; positions go on as they began."""
    given = array.shape[axis]
    index = np.arange(size) % given
    found = np.take(array, index, axis=axis)
    if follows and np.issubdtype(array.dtype, np.integer):
        span = int(array.max() - array.min()) + 1
        rounds = (np.arange(size) // given).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
        found = found + span * rounds
    return found


def _wider(case: LoadedCase, value: float) -> Call | None:
    """Return a call with a larger head, whose channels are repeated."""
    [call] = case.calls
    if has_coordinates(case.op) or call.params.get("rotary_dim") is not None:
        return None
    return _longer("D")(case, value)


CHANGES: dict[str, Change] = {
    "position": _farther, "head_size": _wider, **{name: _longer(letter) for letter, name in LETTERS.items()},
}  # fmt: skip
