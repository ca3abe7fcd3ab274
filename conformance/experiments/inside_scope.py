"""Moves a drawn number into a scope: to its multiples, limits and powers of two, or together with another number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .number_rules import Rule
from .records import Features, is_number

TIMES = (1, 2, 4)  # a multiple, of which an odd number is another case for a kernel
WHOLE = ("size ", "option ")


def numbers_in(rules: Iterable[Rule]) -> set[float]:
    """Return the numbers that rules speak of."""
    return {n for rule in rules for n in rule.numbers}


def moved(record: Features, name: str, other: Any, numbers: Collection[float]) -> Iterator[Features]:
    """Yield a record with another number of a feature, with numbers near it that a scope may allow, and with two that agree."""
    yield {**record, name: other}
    for n in _near(other, numbers):
        yield {**record, name: n}
    here = record[name]
    if type(other) is not int or type(here) is not int:
        return
    for b in (b for b, value in record.items() if b != name and b.startswith(WHOLE) and type(value) is int and value > 0):
        beside = (other, record[b] + other - here, other * record[b] // here if here else 0)
        yield from ({**record, name: other, b: n} for n in dict.fromkeys(beside) if n > 0 and n != record[b])


def _near(other: Any, numbers: Collection[float]) -> list[float]:
    """Return numbers at limits, or near another one: multiples, powers of two and what is within a limit."""
    if not is_number(other):
        return []
    if type(other) is not int:
        return sorted((type(other)(n) for n in numbers), key=lambda n: abs(n - other))
    whole = {int(n) for n in numbers if n == int(n) and n > 0}
    steps = {m for n in whole for m in (n, n // 2) if m > 1}
    near_values = {k * m for m in steps for k in (other // m, other // m + 1)} | {n + k for n in whole for k in (-1, 0, 1)}
    near_values |= {other % m + k for m in steps for k in (0, m)}
    near_values |= {1 << max(other.bit_length() - k, 0) for k in (0, 1)}
    return [n for n in sorted(near_values, key=lambda n: (abs(n - other), n)) if n > 0]


def odd_multiples(numbers: Collection[float]) -> list[list[int]]:
    """Return odd multiples of numbers, of their halves, as of channels in pairs, and of what is two and four times as much."""
    whole = sorted({int(n) for n in numbers if n == int(n) and n > 1})
    steps = dict.fromkeys(m for n in whole for m in (n // 2 * (n % 2 == 0), *(n * k for k in TIMES)) if m > 1)
    return [[m * k for k in (3, 5, 7, 1, 9)] for m in steps]
