"""
Finds a call that an implementation answers, if it answers none of the suite.

The search begins at a call of the sizes that released models have, and changes one thing at a time: a size, an option, two
numbers together. A refusal with a sentence that was not heard before is followed: another condition may be met there. After
that several changes are made at once, the likeliest first.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, product, zip_longest
from typing import Any

from posref.spec import REGISTRY, Integer, Integers, OneOf, Real

from ..vocabulary.axes import alternative, alternatives, names_in, value_of
from ..vocabulary.traits import defaults, main_array
from .asker import ANY_ANSWER, NO_CALL, REFUSED, key_of
from .cause_search import Experiment, is_scaling
from .records import GRID, Features, is_number, part

HEADS = (64, 128, 32, 80, 96, 256, 16, 48, 72, 40, 112, 160, 192, 8)  # head sizes and widths
COUNTS = (8, 7, 12, 16, 14, 32, 4, 1, 2, 3, 6, 24, 10, 20, 40)  # heads, windows, grids, groups
LENGTHS = (8, 2048, 512, 4096, 1024, 8192, 32768, 131072, 128, 256, 77, 197)
FOUR = 4  # axes of a batch, heads, tokens and channels
BASES = (10_000.0, 500_000.0, 1_000_000.0, 100.0, 1000.0, 5_000_000.0)
SIDES = (4, 3, 7)  # of square grids
LEADING = ((2, 3), (2,), (), (1, 8), (2, 1, 3), (1,), (1, 1))  # batch and heads
TIES: tuple[Callable[[int], tuple[int, int]], ...] = (lambda n: (n, n), lambda n: (n, 2 * n - 1), lambda n: (2 * n - 1, n))
COSTS = {  # how unlikely a change of a feature is: the first value, and each that follows
    "size": (0.6, 0.12), "leading": (0.5, 0.15), "rows": (0.6, 0.0), "circle": (0.6, 0.0), "option": (0.6, 0.1),
    "array": (0.7, 0.0), "way": (0.9, 0.1), "mask": (0.7, 0.0), "queries": (0.9, 0.2), "coordinates": (0.9, 0.0),
    "bands": (0.7, 0.0), "memory": (3.0, 0.5), "bits": (3.0, 0.0), "order": (0.7, 0.0),
}  # fmt: skip
NEAR = 6  # likely values of a feature, beside those of its domain
TIED = 8  # sizes that two numbers have together
TOKENS = 8  # of the call to begin with
DRAWN, LIKELIEST = 400, 3  # several changes at once, and values of a feature for them
STORED = 24  # options of stored calls, with the optional arrays
ASKED, TRIED = 600, 3000  # calls of one operation, and changes of which some give no call
Move = tuple[float, Features]  # how unlikely a change is, and the features that it sets


def seek(
    trial: Experiment, stored: Sequence[Features], numbers: Collection[float], may: Callable[[Features], bool],
    lacking_arrays: Collection[str] = (),
) -> Features | None:  # fmt: skip
    """
    Return a call that is answered, of those that `may` be asked; None without one.

    `numbers` are those of a stated scope, which has none of the optional arrays `lacking_arrays`.
    """
    base = _released(trial)
    base |= next(_released_lists(trial.op, base, stored), {})
    base = _offered(trial, base | {f"array {n}": False for n in lacking_arrays if f"array {n}" in base}, may)
    known = _moves(trial, base, stored, numbers)
    asked = tried = 0
    lacking = set[str]()  # options and arrays that the implementation does not have

    def is_answered(record: Features) -> bool:
        nonlocal asked, tried
        if any(repr(record[name]) != repr(base[name]) for name in lacking):
            return False
        tried += 1
        if trial.asker.is_known(record) or not trial.numbers(record) or not may(record):
            return False
        outcome = trial.asker.answer(record)
        asked += outcome != NO_CALL
        lacks = re.fullmatch(r"no option '(\w+)'", trial.asker.messages.get(key_of(record), ""))
        lacking.update(name for name in base if lacks and name in (f"option {lacks[1]}", f"array {lacks[1]}"))
        return outcome in ANY_ANSWER

    heard, stack = {""}, [(base, iter([(0.0, base), *known]))]
    while stack and asked < ASKED and tried < TRIED:
        record, left = stack[-1]
        _, move = next(left, (0.0, None))
        if move is None:
            stack.pop()
            continue
        changed = {**record, **move}
        if is_answered(changed):
            return changed
        said = trial.asker.messages.get(key_of(changed), "")
        pattern = re.sub(r"\d+", "#", said)
        if pattern not in heard:
            heard.add(pattern)
            stack.append((changed, iter([*_hinted(trial.op, base, said), *known])))
    drawn = (_drawn(trial, known, lacking) for _ in range(DRAWN))
    for move in (one for pair in zip_longest(drawn, _together(known)) for one in pair if one is not None):
        if asked >= ASKED or tried >= TRIED:
            return None
        if is_answered({**base, **move}):
            return {**base, **move}
    return None


def _offered(trial: Experiment, base: Features, may: Callable[[Features], bool]) -> Features:
    """Return a record without the optional arrays that an implementation has no argument for."""
    for _ in [name for name in base if name.startswith("array ")]:
        if not trial.numbers(base) or not may(base) or trial.asker.answer(base) != REFUSED:
            break
        lacks = re.fullmatch(r"no option '(\w+)'", trial.asker.messages.get(key_of(base), ""))
        if not lacks or not base.get(f"array {lacks[1]}"):
            break
        base = {**base, f"array {lacks[1]}": False}
    return base


def _drawn(trial: Experiment, moves: Sequence[Move], lacking: Collection[str]) -> Features:
    """Return changes of about half of all features, each to one of the likeliest values: a kernel may have many conditions."""
    values: dict[str, list[Any]] = {}
    for _, move in moves:
        for name, value in move.items() if len(move) == 1 else ():
            values.setdefault(name, []).append(value)
    names = [name for name in values if name not in lacking and trial.rng.random() < 0.5]
    return {name: trial.rng.choice(values[name][:LIKELIEST]) for name in names}


def _together(moves: Sequence[Move]) -> Iterator[Features]:
    """Yield two or more changes of different features at once, the likeliest first."""
    queue: list[tuple[float, tuple[int, ...]]] = [(moves[0][0], (0,))] if moves else []
    while queue:
        cost, chosen = heapq.heappop(queue)
        features = [name for k in chosen for name in moves[k][1]]
        if len(chosen) > 1 and len(features) == len({*features}):
            yield {name: value for k in chosen for name, value in moves[k][1].items()}
        last = chosen[-1] + 1
        if last < len(moves):
            heapq.heappush(queue, (cost + moves[last][0], (*chosen, last)))
            heapq.heappush(queue, (cost + moves[last][0] - moves[last - 1][0], (*chosen[:-1], last)))


def _released(trial: Experiment) -> Features:
    """Return the usual record with the sizes that calls of released models have, and options at their defaults."""
    usual = {f"option {name}": value for name, value in defaults(trial.op).items()}
    record = {name: usual.get(name, values[0]) for name, values in trial.domains.items()}
    for name in record:
        if name in ("size T", "size Q", "size K"):
            record[name] = TOKENS
        elif name == "size g":
            record[name] = 1
        elif name == "size E":
            record[name] = HEADS[0] if any("K E" in axes.shape for axes in REGISTRY[trial.op].arrays.values()) else 0
        elif name.startswith("size ") and (sizes := _of_head(trial.op, name, record)):
            record[name] = sizes[0]
    return record | ({"leading axes": _batch(trial.op, record["way"])} if "leading axes" in record else {})


def _batch(op: str, way: int) -> tuple[int, ...]:
    """Return leading axes with which the main array has four, those of a batch, heads, tokens and channels; else none."""
    name = main_array(op)
    if name is None:
        return ()
    axes = alternative(op, REGISTRY[op].arrays[name].shape, way)
    return LEADING[1] if len(axes) > FOUR - 1 and axes[0] == "*R" else LEADING[0]


def _released_lists(op: str, base: Features, stored: Sequence[Features]) -> Iterator[Features]:
    """Yield the lists of options in stored calls by which the last axis of the main array is a usual head size, each once."""
    lists = [name for name, value in base.items() if isinstance(value, tuple) and name.startswith("option ")]
    for values in dict.fromkeys(tuple(record.get(name) for name in lists) for record in stored) if lists else ():
        move = dict(zip(lists, values, strict=True))
        if all(isinstance(value, tuple) for value in values) and _head_size(op, {**base, **move}) in HEADS[:2]:
            yield move


def _head_size(op: str, record: Features) -> Any:
    """Return the size of the last axis of the main array; None where no number follows from a record."""
    main = main_array(op)
    axes = alternative(op, REGISTRY[op].arrays[main].shape, record["way"]) if main is not None else []
    try:
        return value_of(axes[-1], {**defaults(op), **part(record, "option "), **part(record, "size ")}) if axes else None
    except (TypeError, KeyError, ValueError, NameError):
        return None


def _of_head(op: str, name: str, record: Features) -> list[int]:
    """Return the sizes of an axis by which the last axis of the main array is a head size of released models."""
    main, letter = main_array(op), name.removeprefix("size ")
    axes = alternative(op, REGISTRY[op].arrays[main].shape, record["way"]) if main is not None else []
    if not axes or axes[-1].startswith(("*", "=", "~")) or letter not in names_in(axes[-1]) or letter in ("tail", "E", "H"):
        return []
    known = {**defaults(op), **part(record, "option "), **part(record, "size ")}
    try:
        solved = {value_of(axes[-1], {**known, letter: n}): n for n in range(max(HEADS), 0, -1)}
    except (TypeError, KeyError, ValueError):
        return []
    return [solved[size] for size in HEADS if size in solved]


def _moves(trial: Experiment, base: Features, stored: Sequence[Features], numbers: Collection[float]) -> list[Move]:
    """Return the changes of a record, the likeliest first."""
    moves, listed = list[Move](), trial.asker.target.scalings
    for name, values in {**trial.domains, "way": [*range(_ways(trial.op))]}.items():
        likely = _likely(trial.op, name, base, numbers)
        first, step = COSTS.get(name.partition(" ")[0], (1.0, 0.3))
        others = {repr(value): value for value in (*likely, *values) if repr(value) != repr(base[name])}
        moves += [(first + step * k, {name: value}) for k, value in enumerate(others.values())]
    whole = [int(n) for n in numbers if n > 0 and n == int(n)]
    for kind in ("option ", "size "):
        sizes = [name for name, value in base.items() if name.startswith(kind) and type(value) is int]
        sizes = [name for name in sizes if kind == "option " or not _of_head(trial.op, name, base)]
        for a, b in combinations(sizes, 2):
            for k, size in enumerate(dict.fromkeys((*whole, *COUNTS[:TIED]))):
                moves += [(0.75 + 0.1 * k + 0.2 * n, dict(zip((a, b), tie(size), strict=True))) for n, tie in enumerate(TIES)]
    squares = [{f"size {n}": side**2 for n in "TQK" if f"size {n}" in base} for side in SIDES]
    squares = squares if GRID in trial.domains.get("form", ()) else []
    moves += [(0.7 + 0.1 * k, {"form": GRID, "start": 0} | one) for k, one in enumerate(squares)]
    ways = [way for way in range(_ways(trial.op)) if way != base["way"]]
    rows = [value for value in trial.domains.get("rows", ()) if value != base["rows"]]  # one way alone may have such rows
    moves += [(0.7 + 0.1 * k, {"rows": value, "way": way}) for k, (value, way) in enumerate(product(rows, ways))]
    moves += [(0.3 + 0.05 * k, one) for k, one in enumerate(_released_lists(trial.op, base, stored))]
    of_stored = [{name: value for name, value in one.items() if name.startswith(("option ", "array "))} for one in stored]
    alike = Counter(map(key_of, of_stored))
    of_key = {key_of(one): one for one in of_stored}
    moves += [(0.8 + 0.05 * k, of_key[key]) for k, (key, _) in enumerate(alike.most_common(STORED))]

    def may_take(value: Any) -> bool:
        return not is_scaling(value) or type(value).__name__ in listed

    return sorted((one for one in moves if one[1] and all(map(may_take, one[1].values()))), key=lambda one: one[0])


def _ways(op: str) -> int:
    """Return in how many alternatives the axes of an operation's arrays are."""
    return max((len(alternatives(axes.shape)) for axes in REGISTRY[op].arrays.values()), default=1)


def _likely(op: str, name: str, base: Features, numbers: Collection[float]) -> list[Any]:
    """Return values of a feature that released models have, first those that are stated."""
    kind, _, rest = name.partition(" ")
    domain = REGISTRY[op].domains.get(rest) if kind == "option" else None
    stated = [int(n) for n in numbers if n == int(n)]
    if name == "leading axes":
        return [*LEADING]
    if kind == "size" and rest in ("T", "Q", "K"):
        return [*stated, LENGTHS[0], 1, *LENGTHS[1:]]  # a prompt, a token after it
    if kind == "size":
        return [*stated, *([1] if rest == "g" else ()), *(_of_head(op, name, base) or COUNTS)]  # a key head for each query head
    if isinstance(domain, Integer):
        widths = HEADS if "dim" in rest else (*LENGTHS, *COUNTS) if "length" in rest else (*COUNTS, *LENGTHS)
        few = (*stated, *widths[:2], domain.low, domain.low + domain.step, *widths[2:])
        return [n for n in few if domain.low <= n <= (domain.high or n) and n % domain.step == 0]
    if isinstance(domain, Integers) and isinstance(base[name], tuple):
        count = len(base[name])
        return [(n,) * count for n in (*stated, *COUNTS) if n >= domain.low and n % domain.step == 0]
    if isinstance(domain, Real) and is_number(base[name]):
        return [*numbers, *(BASES if base[name] >= min(BASES) else ())]
    return []


def likely(op: str, base: Features, numbers: Collection[float]) -> Features:
    """Return for every feature of a record the values that released models have."""
    values = {name: [value, *_likely(op, name, base, numbers)[:NEAR]] for name, value in base.items()}
    return {**values, "way": [base["way"], *range(_ways(op))]}


def _hinted(op: str, base: Features, said: str) -> list[Move]:
    """Return changes to the numbers and words that a refusal names."""
    moves: list[Move] = []
    whole = [int(n) for n in re.findall(r"\d+", said)[:4]]
    for name, value in base.items():
        kind, _, rest = name.partition(" ")
        domain = REGISTRY[op].domains.get(rest) if kind == "option" else None
        if kind == "size" or isinstance(domain, Integer):
            moves += [(0.0, {name: n}) for n in whole if n != value]
        elif isinstance(domain, OneOf):
            moves += [(0.0, {name: word}) for word in domain.words if re.search(rf"\b{word}\b", said) and word != value]
    return moves
