"""
Makes calls inside a scope: fresh calls near answered ones, and others that are moved into it.

A drawn number moves to a multiple, a limit or a power of two, or together with another number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from ..model import LoadedCase
from .asker import ANY_ANSWER, NO_CALL, NO_VALUES, REFUSED, SPENT
from .cause_search import AROUND, DRAWS, NUMBERS, Experiment, Key, call_key, differing
from .number_rules import Rule
from .records import Features, is_number, make

TIMES = (1, 2, 4)  # a multiple, of which an odd number is another case for a kernel
MULTIPLES = (1, 2, 3, 5, 9, 17)
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


def _multiples(trial: Experiment) -> list[int]:
    """Return the first multiples of the steps that refusals speak of."""
    rules = [rule for cause in trial.causes for rule in cause.rules if rule.kind == "no multiple"]
    return sorted({int(n) * k for n in numbers_in(rules) for k in MULTIPLES})


def begin_at(trial: Experiment, record: Features, domains: Features) -> None:
    """Begin at an answered call: a small one, at far positions if possible. `domains` have more values."""
    for name in (name for name in trial.domains if name.startswith("size ")):
        usual, halves = trial.domains[name][0], [record[name] >> k for k in range(1, max(record[name], 1).bit_length() - 1)]
        for smaller in [{**record, name: n} for n in (usual, *halves[::-1]) if n < record[name]]:
            if trial.asker.answer(smaller) in ANY_ANSWER:
                record = smaller
                break
    trial.domains |= {
        name: list({repr(v): v for v in (*values, *domains[name])}.values()) for name, values in trial.domains.items()
    }
    trials = ({**record, "start": start} for start in (1000, 29) if start in trial.domains.get("start", ()))
    trial.anchors = {False: next((one for one in trials if trial.asker.answer(one) in ANY_ANSWER), record)}
    trial.answered = [trial.anchors[False] or record, record]


def calls_inside(
    trial: Experiment, count: int, may: Callable[[Features], bool], known: set[Key]
) -> list[tuple[LoadedCase, str]]:
    """
    Return fresh calls around those that were answered, and what came of each: answered, or refused without a cause.

    No two are the same, and none is one of the `known` calls. In up to a quarter one size is as large as it may be. In the
    others all features of which more than one value is taken change in turn, each to a value that `may` be asked.
    """
    calls: list[tuple[LoadedCase, str]] = []
    start, deck = trial.anchor(right=False), list[str]()
    answered = [] if start is None else [start]
    large = [] if start is None else _of_largest_sizes(trial, start, may)[: count // 4]
    for _ in range(3 * DRAWS * len(answered)):
        if len(answered) > count or trial.asker.is_spent:
            break
        record = large.pop() if large else _changed(trial, dict(trial.rng.choice(answered)), deck, may)
        call = make(trial.op, record, trial.rng.randrange(1 << 30))
        call = None if call is None else trial.asker.filled(call)
        if call is None or call.is_degenerate or call_key(trial.op, call) in known:
            continue
        known.add(call_key(trial.op, call))
        outcome = trial.asker.asked(call, record.get("memory", ""))
        trial.asker.calls += 1
        judged = call if trial.asker.sample is None else trial.asker.sample.call
        case, said = trial.asker.case(judged, record.get("memory", "")), trial.asker.said
        trial.drawn[case.id] = record
        answered += [record] if outcome in ANY_ANSWER else []
        if outcome == REFUSED and trial.causes:
            trial.learn(REFUSED, [(record, trial.numbers(record))])
        if outcome not in (NO_CALL, SPENT, NO_VALUES) and not trial.explained(record, (outcome,)):
            calls.append((replace(case, comment=said), outcome))
    return calls


def _of_largest_sizes(trial: Experiment, start: Features, may: Callable[[Features], bool]) -> list[Features]:
    """Return a record with each size, and the leading axes, as large as they may be, one at a time in a random order."""
    records = []
    for name in (name for name in trial.domains if name.startswith(("size ", "leading axes"))):
        sizes = sorted((n for n in trial.domains[name] if n and _count(n) > _count(start[name])), key=_count, reverse=True)
        larger = (one for one in ({**start, name: n} for n in sizes) if trial.numbers(one) and may(one))
        records += [one for one in islice(larger, AROUND) if not trial.explained(one, trial.kinds)][:1]
    return trial.rng.sample(records, len(records))


def _count(size: Any) -> int:
    """Return how many rows a size has: that of one axis, or of several."""
    return math.prod(size) if isinstance(size, tuple) else size or 0


def _changed(trial: Experiment, record: Features, deck: list[str], may: Callable[[Features], bool]) -> Features:
    """Return a record with a few features changed, drawn from a deck that is filled again when it is empty."""
    for _ in range(trial.rng.choice((2, 3, 4))):
        if not deck:
            deck += trial.rng.sample([*trial.domains], len(trial.domains))
        name = deck.pop()
        trials = islice((one for one in _changes(trial, record, name) if trial.numbers(one) and may(one)), AROUND)
        record = next((one for one in trials if not trial.explained(one, trial.kinds)), record)
    return record


def brought_inside(trial: Experiment, record: Features, is_inside: Callable[[Features], bool]) -> Features | None:
    """Return a record that lies inside, with as much of another as it can have; None without a right call to begin with."""
    anchor, record = trial.anchor(right=False), trial.full(record)
    if anchor is None or not is_inside(anchor):
        return None
    if is_inside(record) and trial.numbers(record):
        return record
    for name in differing(record, anchor):
        nearer = {**anchor, name: record[name]}
        if trial.numbers(nearer) and is_inside(nearer):
            anchor = nearer
    return anchor


def _changes(trial: Experiment, record: Features, name: str) -> Iterator[Features]:
    """Yield records with other values of a feature in a random order; of a number also with another one moved as far."""
    values, here = trial.domains[name], record[name]
    drawn = [here * (1 + trial.rng.randrange(1, 64) / 64)] if type(here) is float else []
    if type(here) is int and name.startswith(WHOLE):
        drawn = trial.rng.sample([*_multiples(trial)], min(AROUND, len(_multiples(trial))))
    for value in trial.rng.sample([*values, *drawn], len(values) + len(drawn)):
        if repr(value) != repr(here):
            yield {**record, name: value}
    whole = [n for n in trial.domains if n.startswith(NUMBERS[:2]) and n != name and type(record[n]) is int]
    for other in trial.rng.sample(whole, len(whole)) if name.startswith(NUMBERS[:2]) and type(here) is int else ():
        by = trial.rng.randrange(1, 9)
        yield {**record, name: here + by, other: record[other] + by}
