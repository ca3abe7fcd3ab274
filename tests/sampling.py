"""
Which parameters of a test a run asks.

A plain run has a few of many, and a thorough one a quarter of the others. Of tests that go over all operations, mistakes or
pairs a thorough run has a share, by a seed that is printed.
"""

import os
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

SHARE = float(os.environ.get("POSREF_SHARE", "1"))  # conftest.py sets all three, for all workers
SEED = int(os.environ.get("POSREF_SEED", "0"))
BY_NAME = bool(os.environ.get("POSREF_BY_NAME"))  # files or tests are named
STARTS = random.Random(SEED)
QUARTER = 0.25 / SHARE  # of all, whatever is shared

everything = pytest.mark.skipif(SHARE < 1, reason="judges all together of which this run has a share: --everything")


def few(
    count: int, names: str | Sequence[str], values: Iterable[Any], *, dear: bool = False, **options: Any
) -> pytest.MarkDecorator:
    """
    Return `parametrize` with values of which a plain run has so many, evenly; a thorough run has a quarter of the others.

    Values that are marked thorough themselves are among the others, which are `dear` if a run has a fifth of them alone.
    """
    every, single = list(values), isinstance(names, str) and "," not in names
    free = [k for k, value in enumerate(every) if all(mark.name != "thorough" for mark in getattr(value, "marks", ()))]
    plain = {free[k * len(free) // count] for k in range(count)} if free else set()
    others = {*share([k for k in range(len(every)) if k not in plain], QUARTER)}
    asked = sorted(plain | others)
    some = [every[k] if k in plain else _thorough(every[k], single, dear) for k in asked]
    if isinstance(options.get("ids"), Sequence):
        options["ids"] = [options["ids"][k] for k in asked]
    return pytest.mark.parametrize(names, some, **options)


def _thorough(value: Any, single: bool, dear: bool) -> Any:
    """Return a parameter that only a thorough run has."""
    if not hasattr(value, "marks"):
        value = pytest.param(value) if single else pytest.param(*value)
    return pytest.param(*value.values, id=value.id, marks=[*value.marks, pytest.mark.thorough(dear=dear)])


def in_turn(values: Iterable[Any]) -> list[Any]:
    """Return values in an order by the seed of the run: of these `few` gives a plain run others each day."""
    every = list(values)
    return random.Random(SEED).sample(every, len(every))


def share(values: Iterable[Any], part: float = 1.0) -> list[Any]:
    """
    Return the values that a run asks, evenly from a random start: all, or a share; of dear ones a part of it.

    Values are in the order of their operations, so that an operation with enough of them has one.
    """
    every = list(values)
    if SHARE == 1 or not every:
        return every
    count, start = max(1, round(SHARE * part * len(every))), STARTS.random()
    return [every[int((start + k) * len(every) / count)] for k in range(count)]
