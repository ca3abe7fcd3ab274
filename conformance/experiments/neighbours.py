"""Records near two calls, on which rules of numbers differ: two numbers have to do with each other, or another changes."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .records import Features

WHOLE = ("size ", "option ")  # how the names of features begin that may be whole numbers
NEAR = 400  # records in which another feature changes too
STRIDE = 5  # one in so many values of that is tried
BESIDE = ((3, 2), (2, 3), (9, 8), (8, 9))  # what two numbers may be that are beside each other
MOST = 1 << 10  # a number beyond it grows at most twofold
SQUARES = (4, 9)  # of which two sizes may be at once
Domains = Mapping[str, list[Any]]
Ends = tuple[Features, Features]  # a call with an outcome, and a good one


def is_whole(name: str, ends: Ends) -> bool:
    """Return whether a size or an option is a whole number in both calls."""
    return name.startswith(WHOLE) and all(type(end[name]) is int for end in ends)


def tied(domains: Domains, ends: Ends, numbers: Sequence[str]) -> Iterator[Features]:
    """Yield records in which a number has to do with another: equal, beside it, twice it, or moved as far."""
    pairs = [(a, b) for a in numbers for b in domains if a != b and is_whole(a, ends) and is_whole(b, ends)]
    for end in ends:
        for a in dict.fromkeys(a for a, _ in pairs):  # all other numbers are multiples of it
            tied_to_a = [b for one, b in pairs if one == a and b.startswith("option ")]
            yield {**end, **{b: 2 * end[a] for b in tied_to_a if _is_usual(2 * end[a], end[b])}}
        for a, b in pairs:
            x, y = end[a], end[b]
            both = [(n, n) for n in SQUARES] if x == y else []
            both += [(x + 1, y + 1), (2 * x, 2 * y), (x + 5, y + 5), (3 * x, 3 * y), (y, y), (y + 1, y), (y - 1, y)]
            both += [(2 * y, y), (y // 2, y), (3 * y, y), (x, x), (x, x + 1), (x, x - 1), (x, 2 * x), (x // 2, y // 2)]
            usual = ((n, m) for n, m in dict.fromkeys((*both, *BESIDE)) if _is_usual(n, x) and _is_usual(m, y))
            yield from ({**end, a: n, b: m} for n, m in usual)


def _is_usual(number: int, before: int) -> bool:
    """Return whether a number is not too large in place of another: a definition may list all numbers up to it."""
    return number <= max(MOST, 2 * before)


def near(
    domains: Domains, ends: Ends, numbers: Sequence[str], base: Sequence[Features], shown: Collection[str], rng: random.Random
) -> Iterator[Features]:  # fmt: skip
    """Yield the tied records first, then those of a `base` in which a feature changes that is not `shown`."""
    yield from tied(domains, ends, numbers)
    related = [name for name in domains if name.startswith(("size ", "start", "leading")) and name not in shown]
    related += [name for name in domains if name.startswith("option ") and is_whole(name, ends)]
    values = {name: [*domains[name][:4], *domains[name][4::STRIDE]] for name in related}
    trials = [{**one, name: value} for one in base for name in related for value in values[name]]
    yield from rng.sample(trials, min(len(trials), NEAR))
