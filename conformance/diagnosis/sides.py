"""
Finds mistakes between queries and keys: one is not rotated, or is computed from the other.

An adapter whose library takes both has the rows of x as queries and keys in turn, beside the row before, reversed
(`queries_and_keys` in ``adapters/_shared.py``). So these mistakes are rows of one call that come from others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ..evidence.tools.deviation import Deviation, Function, Real, Wrap, around

Mix = Callable[[Real, Real, Callable[[Real], Real], Real], Real]  # of rows, their rotation, the rotation, and which are keys
HINT = "Where an adapter calls `queries_and_keys`, even-numbered rows of a result are queries and odd-numbered rows are keys."


def _another(x: Real) -> Real:
    """Return the row that the other heads of a row's token hold."""
    return np.flip(np.roll(x.reshape(-1, x.shape[-1]), 1, axis=0), -1).reshape(x.shape)


def _crossed(first: bool) -> Mix:
    """Return a mixture in which the first or the second half of the queries comes from keys, and the rest conversely."""

    def mix(x: Real, out: Real, rotate: Callable[[Real], Real], key: Real) -> Real:
        half = np.arange(x.shape[-1]) < x.shape[-1] // 2
        return np.where(key == (half != first), rotate(_another(x)), out)

    return mix


def _row_before(x: Real, out: Real, rotate: Callable[[Real], Real], key: Real) -> Real:
    rows = _another(x).reshape(-1, x.shape[-1])
    return np.where(key, rotate(np.roll(rows, 1, axis=0).reshape(x.shape)), out)


MISTAKES: dict[str, tuple[str, Mix]] = {
    "key-not-rotated": (
        "odd-numbered rows, the keys of `queries_and_keys`, are not rotated: they come back as they are",
        lambda x, out, rotate, key: np.where(key, x, out),
    ),
    "query-not-rotated": (
        "even-numbered rows, the queries of `queries_and_keys`, are not rotated: they come back as they are",
        lambda x, out, rotate, key: np.where(key, out, x),
    ),
    "key-from-query": (
        "keys come from queries, or from another head",
        lambda x, out, rotate, key: np.where(key, rotate(_another(x)), out),
    ),
    "query-from-key": (
        "queries come from keys, or from another head",
        lambda x, out, rotate, key: np.where(key, out, rotate(_another(x))),
    ),
    "second-halves-crossed": (
        "the second half of queries comes from keys, and the first half of keys from queries",
        _crossed(first=False),
    ),
    "first-halves-crossed": (
        "the first half of queries comes from keys, and the second half of keys from queries",
        _crossed(first=True),
    ),
    "key-of-row-before": ("keys are those of the token before", _row_before),
}


def mistakes(op: str) -> Iterator[Deviation]:
    """Yield the mistakes between queries and keys that an operation of rows may show."""
    if REGISTRY[op].result == ("=x",):
        for name, (text, mix) in MISTAKES.items():
            yield Deviation(name, text, {op: _wrap(mix)}, hint=HINT)


def _wrap(mix: Mix) -> Wrap:
    def wrong(function: Function, x: Real, *arrays: Any, **options: Any) -> Real:
        key = (np.arange(x[..., 0].size) % 2 == 1).reshape(*x.shape[:-1], 1)
        return mix(x, function(x, *arrays, **options), lambda rows: function(rows, *arrays, **options), key)

    return around(wrong)
