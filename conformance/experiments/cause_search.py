"""
Finds the cause of an outcome by experiment (delta debugging).

From a call with the outcome towards one that is answered rightly the features are changed, in halves and then one at a time,
while the outcome stays. What is left is the smallest change that makes the difference. Then every value of these features is
asked, numbers are bisected, and what the two calls have alike is changed too: a word without which the outcome goes away
belongs to the cause. Fresh calls say whether the cause predicts what comes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice, pairwise
from typing import Any

import numpy as np

from posref.scaling import Scaling
from posref.spec import REGISTRY, Integers

from ..calls import broadcast_axes
from ..model import Call
from ..vocabulary.traits import defaults
from .asker import ANY_ANSWER, ENDED, NO_CALL, REFUSED, RIGHT, SPENT, WRONG, Asker, key_of
from .neighbours import is_whole, near, tied
from .number_rules import Numbers, Rule, independent, is_relation
from .quantities import OF_QUERIES, SHARED, quantities
from .records import FARTHER, Features, count_of_results, domains, is_number, letters_in, make, part, tokens_of, word_of
from .rule_search import STEPS, Guess, fitting, parted

CAUSES = 20  # of an outcome of one operation
FRESH = 8  # calls that are predicted of each cause, half of them outside
AGAIN = 3  # times that a call is made with other numbers, where it was right and a cause says that it is wrong
TIED = 4  # one in so many calls that are predicted has numbers that have to do with each other
ORDERED = 3  # times as many of one that says how two numbers lie to each other: few calls are near where they are equal
FEWEST = 2  # calls that must have come as predicted, for a cause to be told
DRAWS = 60  # records that are drawn for them at most
MASKED = 0.1  # of right calls may meet the rule of wrong ones: their values are weak
NUMBERS = ("size ", "option ", "start")  # how the names of features begin that may be numbers
PARTING = 24  # calls that are asked to tell rules apart
OPTIONS, SIZES = 24, 12  # calls that passed: of so many the options are tried, and of so many all features
AROUND = 6  # calls that were answered into which a cause is put
MISSED = 6  # calls without a cause, after which no other is looked for
LENGTHS = ("size T", "size Q", "size K")
ROWS = (2,)  # leading axes without which no rows differ
ALONE = (1, 2, 3, 4, 5, 8, 16, 33, 64, 96, 129, 257, 1030)  # sizes that are changed alone
BESIDE = 1.5  # times a number is another, near it
Key = tuple[Any, ...]  # of a call: equal for the same call
VALUES = 12  # of a feature that is asked about as a word


@dataclass
class Cause:
    """
    What calls of one outcome have, and others lack: values of features, and rules of numbers.

    `shows` are the values of a feature with which the outcome was seen, `lacks` those with which it was not. `bad` and `good`
    are the last calls of the walk. Of the fresh calls `asked`, `true` came out as predicted.
    """

    kind: str
    bad: Features
    good: Features
    features: tuple[str, ...] = ()
    shows: dict[str, list[Any]] = field(default_factory=dict)
    lacks: dict[str, list[Any]] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    rough: bool = False  # whether its numbers follow no rule: it holds for the values that were seen
    told: bool = False  # whether fresh calls were asked of it
    mostly: bool = False  # whether a few calls that have it do not have the outcome
    elsewhere: bool = False  # whether other calls have the outcome too, and no cause
    asked: int = 0
    true: int = 0

    def holds(self, record: Features, numbers: Numbers) -> bool:
        """Return whether a call has the cause."""
        return all(name in record and self._shows(name, record[name]) for name in self.shows) and all(
            rule.holds(numbers) for rule in self.rules
        )

    @property
    def stands(self) -> bool:
        """Return whether fresh calls came as predicted: all, or all of many but one, since a wrong call may be right."""
        return self.true >= self.asked - (self.kind == WRONG and self.asked >= FRESH)

    def _shows(self, name: str, value: Any) -> bool:
        """Return whether the outcome comes with a value; of one that was not asked, whether it does with all of its kind."""
        text = repr(value)
        if any(text == repr(other) for other in self.shows[name]):
            return True
        if any(text == repr(other) for other in self.lacks.get(name, ())):
            return False
        kinds = [{kind_of(other) for other in values} for values in (self.shows[name], self.lacks.get(name, ()))]
        if is_number(value) and len(self.lacks.get(name, ())) == 1 and len(self.shows[name]) > 1:
            return True  # one number alone is taken
        types = is_scaling(value) and kinds[1] == {"NoneType"}  # each type that was asked shows it
        return types or kind_of(value) in kinds[0] - kinds[1]


def kind_of(value: Any) -> str:
    """Return the kind of a value: a word itself, "number", or the type of a flag, a record or a list."""
    return value if isinstance(value, str) else "number" if is_number(value) else type(value).__name__


class Experiment:
    """Experiments with one operation in one dtype; `stored` are the records of calls that the suite asks."""

    def __init__(self, asker: Asker, stored: Sequence[Features], answered: Sequence[Features], seed: int = 0) -> None:
        self.asker, self.op = asker, asker.op
        self.domains = domains(asker.op, stored)
        if asker.dtype == "float64" and len(self.domains.get("start", ())) > 1:
            self.domains["start"] += FARTHER
        self.rng = random.Random(f"{seed}/{asker.op}/{asker.dtype}")
        self.answered = [self.full(record) for record in answered]
        self.causes: list[Cause] = []
        self.unexplained: list[Features] = []  # fresh calls with an outcome that has no cause
        self.anchors: dict[bool, Features | None] = {}
        self.drawn: dict[str, Features] = {}  # what fresh calls were made from, by the id of the case
        self.numbers_of: dict[str, Numbers] = {}

    def full(self, record: Features) -> Features:
        """Return a record with all features of the operation, the usual ones where it lacks some."""
        return {name: record.get(name, values[0]) for name, values in self.domains.items()}

    def numbers(self, record: Features) -> Numbers:
        """Return the quantities of a call; none where there is no such call."""
        key = key_of(record)
        if key not in self.numbers_of:
            call = self.asker.call(record)
            self.numbers_of[key] = {} if call is None else quantities(self.op, record, call)
        return self.numbers_of[key]

    @property
    def kinds(self) -> set[str]:
        """The outcomes that have causes."""
        return {cause.kind for cause in self.causes}

    def explained(self, record: Features, kinds: Iterable[str], besides: Cause | None = None) -> list[Cause]:
        """Return the causes of some outcomes that a call has."""
        wanted, numbers = {*kinds}, self.numbers(record)
        return [one for one in self.causes if one.kind in wanted and one is not besides and one.holds(record, numbers)]

    # ---- one call to begin with, and one to end with ----------------------------------------------------------------------
    def anchor(self, *, right: bool) -> Features | None:
        """Return a call that is answered; a `right` one whose values are strong, if there is one: far positions, all bits."""
        if right not in self.anchors:
            self.anchors[right] = self._anchor(right=right)
        return self.anchors[right]

    def _anchor(self, *, right: bool) -> Features | None:
        """Return a call with the options of one that passed, if it has one, as strong as there is."""
        usual = {name: values[0] for name, values in self.domains.items()}
        words = [name for name in usual if name.startswith(("option ", "array ", "way"))]
        options = {key_of(one): one for one in ({name: record[name] for name in words} for record in self.answered)}
        bases = [{**usual, **one} for one in ({}, *[*options.values()][:OPTIONS])]
        sized = [record for record in self.answered if all(n > 1 for name, n in record.items() if name in ("size T", "size K"))]
        bases += self.rng.sample(sized, min(len(sized), SIZES)) if right else []
        for start, bits in ((1000, 24), (1000, 8), (29, 8), (0, 24), (0, 8)) if right else ((1000, 8), (0, 8)):
            strong = {name: value for name, value in (("start", start), ("bits", bits)) if value in self.domains.get(name, ())}
            for one in bases:
                record = {**one, **strong}
                if (self.asker.outcome(record) == RIGHT) if right else (self.asker.answer(record) in ANY_ANSWER):
                    return record
        ask, wanted = (self.asker.outcome, (RIGHT,)) if right else (self.asker.answer, ANY_ANSWER)
        longest = sorted(self.answered, key=lambda record: any(record.get(name) == 1 for name in LENGTHS))  # one has every form
        return next((record for record in longest[:OPTIONS] if ask(record) in wanted), None)

    def near(self, record: Features, kind: str) -> Features | None:
        """Return the record of a call that is made with an outcome: the given one, or one that differs in one feature."""
        ask = self._ask(kind)
        if ask(record) == kind:
            return record
        if kind in ENDED:
            return None
        places = ("start", "bits", "form", "rows", "queries")
        trials = ({**record, name: value} for name in places for value in self.domains.get(name, ()))
        return next((trial for trial in trials if ask(trial) == kind), None)

    def _ask(self, kind: str) -> Callable[[Features], str]:
        return self.asker.outcome if kind == WRONG else self.asker.answer

    def _is_good(self, kind: str, outcome: str) -> bool:
        return outcome == RIGHT if kind == WRONG else outcome in ANY_ANSWER

    # ---- the walk ---------------------------------------------------------------------------------------------------------
    def learn(self, kind: str, calls: Iterable[tuple[Features, Numbers]]) -> None:
        """Find causes of an outcome, until each of some calls, which have it, has a cause."""
        calls = [*calls]
        good = self.anchor(right=kind == WRONG) if calls else None
        if good is None:
            return
        missed = 0
        for record, numbers in sorted(calls, key=lambda one: (len(differing(one[0], good)), key_of(one[0]))):
            known = [one for one in self.causes if one.kind in (kind, *ENDED) and one.holds(record, numbers)]
            if known or len(self.causes) >= CAUSES or missed >= MISSED or self.asker.is_spent:
                continue
            bad = self.near(record, kind)
            if bad is not None and not self.explained(bad, (kind,)):
                self._add(self.cause(bad, good, kind))
            missed += bad is None or not self.explained(bad, (kind,))

    def alone(self, kind: str, starts: tuple[str, ...]) -> None:
        """Learn what comes of every value of some features, each of them alone."""
        good = self.anchor(right=kind == WRONG)
        names = [name for name in self.domains if name.startswith(starts)] if good is not None else []
        names.sort(key=lambda name: name.startswith(("size ", "start")))  # the many values last
        trials = [
            self._shown(good or {}, name, value) for name in names for value in self.domains[name] if self._is_few(name, value)
        ]
        enough = (self.asker.budget + self.asker.calls) // 2  # leave calls to learn and to predict
        asked = [t for t in trials if self.has_values(t) and self.asker.calls < enough and self._ask(kind)(t) == kind]
        self.learn(kind, [(trial, self.numbers(trial)) for trial in asked])

    def _shown(self, good: Features, name: str, value: Any) -> Features:
        """Return a record with another value of a feature, and with an axis for rows where that shows without it in no call."""
        trial = {**good, name: value}
        other = {**trial, "leading axes": ROWS}
        if name not in ("rows", "memory") or "leading axes" not in good:
            return trial
        calls = [self.asker.call(one) for one in (good, trial)]
        keys = [None if call is None else call_key(self.op, call) for call in calls]
        return other if keys[1] is None or (keys[0] == keys[1] and name == "rows") else trial

    def has_values(self, record: Features) -> bool:
        """Return whether a call has elements."""
        call = self.asker.call(record)
        return call is not None and not call.is_degenerate

    @staticmethod
    def _is_few(name: str, value: Any) -> bool:
        """Return whether a value is asked alone: of sizes some, on both sides of what kernels are built for."""
        return not name.startswith("size ") or value in ALONE

    def answers(self) -> list[tuple[Features, Numbers]]:
        """Return the features and the numbers of the answered calls with elements."""
        answered = [record for record, outcome in self.asker.known.values() if outcome in ANY_ANSWER]
        calls = [(record, self.asker.call(record)) for record in answered]
        return [(record, self.numbers(record)) for record, call in calls if call is not None and not call.is_degenerate]

    def hold_to(self, known: Sequence[tuple[Features, Numbers]], kind: str) -> None:
        """Mend the causes of an outcome that some known calls have, which came out otherwise, or drop them."""
        for cause in [one for one in self.causes if one.kind == kind]:
            against = [record for record, numbers in known if cause.holds(record, numbers) and self.is_visible(cause, record)]
            if not against:
                continue
            self.causes.remove(cause)
            good = next((record for record in against[:OPTIONS] if self._is_good(kind, self._ask(kind)(record))), None)
            narrower = None if good is None else self.narrower(cause, good)
            if narrower is not None and not any(narrower.holds(*one) for one in known):
                self.causes.append(narrower)

    def complete(self, kind: str, names: Sequence[str]) -> None:
        """Learn the other outcomes of a cause's features: call with each of their values alone."""
        good = self.anchor(right=kind == WRONG)
        if good is None or not any({*cause.features} & {*names} for cause in self.causes if cause.kind == kind):
            return
        trials = [{**good, name: value} for name in names for value in self.domains.get(name, ())]
        self.learn(kind, [(trial, self.numbers(trial)) for trial in trials if self._ask(kind)(trial) == kind])

    def _add(self, cause: Cause) -> None:
        if cause.features:
            self.causes.append(cause)

    def cause(self, bad: Features, good: Features, kind: str) -> Cause:
        """Return the cause of an outcome: the smallest change from the good call to the bad one that gives it."""
        bad = self._fewest(bad, good, kind) if kind in ENDED else self._nearer(self._nearer(bad, good, kind), good, kind)
        other = {**bad, "memory": "non-contiguous"}
        if bad.get("memory") == "broadcast-view" and self._ask(kind)(other) == kind and not self.explained(other, (kind,)):
            bad = other  # a broadcast view is not contiguous
        cause = Cause(kind, bad, good, tuple(differing(bad, good)))
        numbers = [name for name in cause.features if self._is_numeric(name, bad, good)]
        for name in cause.features:
            self._sweep(cause, name, self._values(name, numbers, kind))
        absent = [n for n in numbers if good[n] is None and not any(map(is_number, cause.lacks[n]))]  # any number shows it here
        needed = tuple(name for name in cause.features if cause.lacks[name])  # without the others there is no such call
        cause.features, numbers = needed, [name for name in numbers if name in needed]
        cause.shows = {name: values for name, values in cause.shows.items() if name in needed}
        if not needed:
            return cause
        for name in (name for name in needed if is_scaling(bad[name])):
            self._fields(cause, name)
        numbers = [name for name in numbers if name not in absent] + self._context(cause)
        if numbers:
            self._number(cause, [*numbers, *(name for name in absent if name in needed)])
        return self._without_way(cause, numbers)

    def _without_way(self, found: Cause, numbers: Sequence[str]) -> Cause:
        """Return a cause without an alternative of the axes, if a number that it speaks of is in no other."""
        others = [self.numbers({**found.bad, "way": way}) for way in found.lacks.get("way", ())]
        if (
            "way" not in found.shows
            or not found.rules
            or any({rule.quantity for rule in found.rules} <= {*one} for one in others)
        ):
            return found
        shows = {name: values for name, values in found.shows.items() if name != "way"}
        features = dict.fromkeys((*(name for name in found.features if name != "way"), *numbers))
        rules = [self._plainer(rule, found.kind, beside=bool(shows)) for rule in found.rules]
        return replace(found, shows=shows, features=tuple(features), rules=rules)

    def _is_numeric(self, name: str, bad: Features, good: Features) -> bool:
        if isinstance(bad[name], tuple) and isinstance(good[name], tuple):
            return True  # how many there are, and the largest of them, are numbers
        numeric = [value for value in self.domains[name] if is_number(value)]
        may_be = is_number(bad[name]) and (is_number(good[name]) or good[name] is None)
        return name.startswith(NUMBERS) and may_be and len(numeric) > 2

    def _values(self, name: str, numbers: Sequence[str], kind: str) -> list[Any]:
        """Return the values of a feature to ask: all of numbers and words, of records, lists and other numbers two a kind."""
        values = self.domains[name]
        if kind in ENDED or name in numbers or isinstance(values[0], tuple):
            return values[:6] if kind in ENDED else values
        first = {kind_of(value): value for value in reversed(values)}
        last = {kind_of(value): value for value in values}
        return [*first.values(), *last.values(), *self._default(name)]

    def _default(self, name: str) -> list[Any]:
        """Return the default of an option that is a number."""
        default = defaults(self.op).get(name.removeprefix("option "))
        return [default] if is_number(default) and name.startswith("option ") else []

    def _sweep(self, found: Cause, name: str, values: Iterable[Any]) -> None:
        """Ask values of one feature, with the others of the bad call, and keep which show the outcome."""
        shows, lacks = found.shows.setdefault(name, []), found.lacks.setdefault(name, [])
        alike = [value for value in self.domains[name] if kind_of(value) == kind_of(found.bad[name])]
        self._sort(
            found,
            name,
            [*values, *(alike[:VALUES] if is_scaling(found.bad[name]) and found.kind not in ENDED else ())],
        )
        mixed = {kind_of(value) for value in shows} & {kind_of(value) for value in lacks}
        left = [value for value in self.domains[name] if kind_of(value) in mixed]
        if left and found.kind not in ENDED and is_scaling(left[0]):
            self._sort(found, name, left)  # of a type of records some: each is asked

    def _sort(self, found: Cause, name: str, values: Iterable[Any]) -> None:
        """Ask each value of a feature once, and sort it by the outcome."""
        shows, lacks = found.shows[name], found.lacks[name]
        for value in {repr(v): v for v in (found.bad[name], found.good[name], *values)}.values():
            if repr(value) in map(repr, (*shows, *lacks)) or (found.kind == WRONG and self._is_nothing(found, name, value)):
                continue
            trial = self._as_view(found, self.changed(found.bad, name, value))
            if self.has_values(found.bad) and not self.has_values(trial):
                continue
            outcome = self._ask(found.kind)(trial)
            if outcome == found.kind and (value == found.bad[name] or not self._has_other(found, name, value)):
                shows.append(value)
            elif self._is_good(found.kind, outcome):
                lacks.append(value)

    def _as_view(self, found: Cause, record: Features) -> Features:
        """Return a record with rows, if its arrays would else be no views, and contiguous ones with rows are answered."""
        rows = {**record, "leading axes": ROWS}
        if self._memory(record) == record.get("memory", "") or "leading axes" not in record or not self.numbers(rows):
            return record
        return rows if self._is_good(found.kind, self._ask(found.kind)({**rows, "memory": ""})) else record

    def _is_nothing(self, found: Cause, name: str, value: Any) -> bool:
        """Return whether a size is 0, other than in a good call with elements: what is wrong elsewhere is right in nothing."""
        return name.startswith("size ") and value == 0 and (found.good[name] != 0 or not count_of_results(self.op, found.good))

    def changed(self, record: Features, name: str, value: Any) -> Features:
        """Return a record with another value of a feature, and lists of as many entries beside a list, where it needs them."""
        moved = {**record, name: value}
        if not isinstance(value, tuple) or name == "leading axes" or self.numbers(moved):
            return moved
        for other, values in self.domains.items():
            if other != name and isinstance(record[other], tuple) and other.startswith("option "):
                moved[other] = next((v for v in values if isinstance(v, tuple) and len(v) == len(value)), record[other])
        return moved

    def _has_other(self, found: Cause, name: str, value: Any) -> bool:
        """Return whether the outcome with a value has a cause of its own, that is known."""
        return bool(self.explained({**found.bad, name: value}, (found.kind,)))

    def _nearer(self, record: Features, to: Features, kind: str) -> Features:
        """Return a record changed towards another, in halves and one by one, as far as the outcome stays."""
        ask, size = self._ask(kind), 1 << 9
        while size:
            left = differing(record, to)
            for at in range(0, len(left), size):
                trial = {**record, **{name: to[name] for name in left[at : at + size]}}
                if ask(trial) == kind and not self.explained(trial, (kind,)):
                    record = trial
            size = min(size, max(len(differing(record, to)), 1)) // 2
        return record

    def _fewest(self, bad: Features, good: Features, kind: str) -> Features:
        """Return a record with the fewest features of a bad call, where each bad call costs a process and a good one none."""
        names = differing(bad, good)
        for count in (1, 2):
            for several in combinations(names, count):
                trial = {**good, **{name: bad[name] for name in several}}
                if self.asker.answer(trial) == kind:
                    return trial
        return bad

    def _context(self, found: Cause) -> list[str]:
        """Add words that both calls have and that must stay for the outcome; return the numbers that must."""
        varied, numbers = self._varied(found), []
        for name, values in self.domains.items():
            if (
                name in varied
                or name in found.features
                or (found.kind in ENDED and self.asker.processes > 1 and name not in ("leading axes",))
            ):
                continue
            others = [value for value in values if repr(value) != repr(found.bad[name])]
            numeric = [value for value in others if is_number(value)]
            if name == "way":
                others = [value for value in others if self._has_sizes(found, value)]
            is_list = isinstance(found.bad[name], tuple)
            is_word = not is_list and not (is_number(found.bad[name]) and len(numeric) > 2)
            few = list({kind_of(value): value for value in reversed(others)}.values())[:VALUES]
            few = few if is_word else others[:VALUES] if is_list else numeric[:1] + numeric[len(numeric) // 2 :][:1]
            few += [value for value in self._default(name) if value in others and value not in few]
            trials = [self.changed(found.bad, name, value) for value in few]
            good = [trial for trial in trials if self._is_good(found.kind, self._ask(found.kind)(trial))]
            if not any(name != "way" or self.is_visible(found, trial) for trial in good):
                continue
            self._sweep(found, name, self._values(name, () if is_word else (name,), found.kind))
            if not is_word:
                numbers.append(name)
        return numbers

    def _has_sizes(self, found: Cause, way: int) -> bool:
        """Return whether an alternative of the axes has the sizes of a cause: in another one nothing can be seen of it."""
        sizes = {name.removeprefix("size ") for name in found.features if name.startswith("size ")}
        return sizes <= set[str]().union(*map(letters_in, tokens_of(self.op, way)))

    def is_visible(self, found: Cause, record: Features) -> bool:
        """
        Return whether the features of a cause make a difference to a call: else it says nothing of them.

        It does of a rule that it has with the features of the good call.
        """
        other = {**record, **{name: found.good[name] for name in found.features}}
        if other == record:
            return True
        calls = [self.asker.call(one) for one in (record, other)]
        keys = [None if call is None else call_key(self.op, call) for call in calls]
        return None in keys or keys[0] != keys[1] or self._memory(record) != self._memory(other)

    def _memory(self, record: Features) -> str:
        """Return how the arrays of a call lie in memory: some may be views of one row, where their rows are alike."""
        call, memory = self.asker.call(record), str(record.get("memory", ""))
        is_view = call is not None and any(map(broadcast_axes, call.inputs.values()))
        return memory if memory != "broadcast-view" or is_view else ""

    def _varied(self, found: Cause) -> set[str]:
        """
        Return the features that several calls differ in, once they were answered and have the outcome with those of the cause.

        Sizes and numbers do where some calls have the smallest.
        """
        changed = {name: found.bad[name] for name in found.features}
        ask, having = self._ask(found.kind), list[Features]()
        for record in self.rng.sample(self.answered, len(self.answered)) if found.kind not in ENDED else ():
            trial = {**record, **changed}
            if self.asker.is_known(trial) or not self._is_good(found.kind, ask(record)):
                continue
            outcome = ask(trial)
            if self._is_good(found.kind, outcome) and self.is_visible(found, trial):
                return set()
            having += [trial] if outcome == found.kind else []
            if len(having) == AROUND:
                break
        few = having if len(having) == AROUND else []
        values = {name: [one[name] for one in few] for name in self.domains if not isinstance(found.bad[name], tuple)}
        least = {name: [n for n in self.domains[name] if is_number(n) and n > 0] for name in values}
        return {
            name for name, tried in values.items()
            if len(set(map(repr, tried))) > 1 and (not is_number(tried[0]) or not least[name] or min(least[name]) in tried)
        }  # fmt: skip

    # ---- numbers ----------------------------------------------------------------------------------------------------------
    def _number(self, found: Cause, numbers: list[str]) -> None:
        """Give a cause the rule of its numbers, or the values that were seen where no rule holds."""
        for name in numbers:
            if is_number(found.bad[name]):
                self._bisect(found, name)
        values = {name: found.shows.pop(name) for name in numbers if name in found.shows}
        rules = self._rules(found, numbers, {}, exact=len(numbers) > 1)
        if rules:
            found.rules += rules
            absent = [name for name in values if found.good[name] is None]
            moving = {name: self._moving(found, [name]) for name in absent}
            found.shows |= {name: values[name] for name in absent if not any(one.quantity in moving[name] for one in rules)}
            return
        for name in numbers:
            fixed = {other: [found.bad[other]] for other in numbers if other != name}
            rules = self._rules(found, [name], fixed) or self._rules(found, [name], fixed, side=name)
            found.rules += rules
            if not rules:
                found.rough = found.rough or is_number(found.bad[name])
                self._sweep(found, name, self.domains[name])

    def _fields(self, found: Cause, name: str) -> None:
        """Give a cause the rule of the fields of a scaling, where some of its type show the outcome and others do not."""
        kind = kind_of(found.bad[name])
        shows, lacks = ([value for value in values[name] if kind_of(value) == kind] for values in (found.shows, found.lacks))
        if not lacks or {kind_of(value) for value in found.shows[name]} != {kind}:
            return
        parted = found.shows.pop(name)
        rules = self._rules(found, [name], {})
        found.rules += rules
        found.shows[name] = [*shows, *lacks] if rules else parted
        found.lacks[name] = [value for value in found.lacks[name] if not rules or kind_of(value) != kind]

    def _bisect(self, found: Cause, name: str) -> None:
        """Call beside the number of the bad call, and between two neighbours if only one has the outcome."""
        ask = self._ask(found.kind)
        for number, step in ((number, step) for number in (found.bad[name], found.good[name]) for step in (-1, 1)):
            if is_number(number):  # a limit between two values alone may be two values
                ask({**found.bad, name: number + step if type(number) is int else number * BESIDE**step})
        whole = {value for value in (*found.shows[name], *found.lacks[name]) if type(value) is int}
        for ends in map(list, pairwise(sorted(whole))):
            outcomes = [ask({**found.bad, name: value}) for value in ends]
            while ends[1] - ends[0] > 1 and (outcomes[0] == found.kind) != (outcomes[1] == found.kind):
                middle = sum(ends) // 2
                outcome = ask({**found.bad, name: middle})
                if outcome not in outcomes:
                    break
                ends[outcomes.index(outcome)] = middle

    def _rules(
        self, found: Cause, numbers: Sequence[str], fixed: dict[str, list[Any]], *, exact: bool = False, side: str = ""
    ) -> tuple[Rule, ...]:  # fmt: skip
        """
        Return the rule that separates the calls, or two that both hold; while several do, make a call on which they differ.

        Of two of which either gives the outcome, it is the one that the bad call has: the other is of another cause.

        Where numbers at both ends have the outcome, each `side` of the good call's has a rule of its own.
        """
        within = Cause(found.kind, found.bad, found.good, (), {**found.shows, **fixed}, found.lacks, list(found.rules))
        names, direct = self._moving(found, numbers), {word_of(self.op, name.split(" ", 1)[-1]) for name in numbers}
        lists = [name.removeprefix("option ") for name in numbers if isinstance(found.bad[name], tuple | Scaling)]
        direct |= {name for name in names for one in lists if name.endswith(f" of {one}") or name.startswith(f"{one}[")}
        back: Features = {
            name: found.good[name] if repr(found.good[name]) != repr(found.bad[name]) else next(iter(found.lacks[name]), None)
            for name in numbers
        }
        exceptions = MASKED if found.kind == WRONG and not exact else 0.0
        seen = set[str]()  # the numbers of the calls with the outcome

        def guesses() -> list[Guess]:
            samples = []
            for record, outcome in self.asker.known.values():
                bad = outcome == found.kind
                if not (bad or self._is_good(found.kind, outcome)) or not within.holds(record, self.numbers(record)):
                    continue
                if any(kind_of(record[name]) != kind_of(value) for name, value in found.bad.items()):
                    continue  # other words may have causes of their own
                if bad and not self._is_due(found, record, back):
                    continue  # something else may be the cause
                if side and is_beyond(record[side], found.good[side], found.bad[side]):
                    continue
                if not (bad and self.explained(record, (found.kind,))):
                    samples.append((self.numbers(record), bad))
                    seen.update([repr([record[name] for name in numbers])] if bad else ())
            return fitting(samples, names, direct, exceptions, self.numbers(found.bad))

        ends = found.bad, found.good
        base = [self.changed(found.bad, name, value) for name in numbers for value in self.domains[name]]
        steps = ({**found.bad, name: found.bad[name] + n} for name in numbers if is_whole(name, ends) for n in STEPS)
        left, trials = guesses(), chain(steps, near(self.domains, ends, numbers, base, {*found.shows}, self.rng))
        asked = 0
        for trial in trials:
            record = {**trial, **{n: values[0] for n, values in fixed.items()}}
            if len(left) < 2 or asked >= PARTING:
                break
            if self.asker.is_known(record) or not parted(left, self.numbers(record)) or self.explained(record, (found.kind,)):
                continue
            asked += 1
            outcome = self._ask(found.kind)(record)
            if outcome == found.kind:
                self._ask(found.kind)({**record, **back})
            if outcome not in (NO_CALL, SPENT):
                left = guesses()
        alone = [guess for guess in left if guess.rules[0].kind == "equal" and guess.rules[0].quantity not in direct]
        left = [guess for guess in left if len(seen) > 1 or not exact or guess not in alone]
        return (
            tuple(self._plainer(rule, found.kind, beside=bool({*found.shows} - {*numbers})) for rule in left[0].rules)
            if left
            else ()
        )  # what follows from numbers that were seen once is no rule of them

    def _plainer(self, rule: Rule, kind: str, *, beside: bool) -> Rule:
        """Return a rule in plainer words: of what is refused from 2 on, 1 is left; of a list the entries differ at all."""
        sizes = {*SHARED.values(), *(word_of(self.op, one) for one in part(self.domains, "size ") if one not in ("tail", "E"))}
        if kind == REFUSED and not beside and (rule.kind, rule.numbers) == ("least", (2.0,)) and rule.quantity in sizes:
            return replace(rule, kind="other", numbers=(1.0,))
        name = rule.quantity.removeprefix("spread of ")
        domain = REGISTRY[self.op].domains.get(name)
        is_least = rule.kind == "least" and isinstance(domain, Integers) and name != rule.quantity
        return replace(rule, numbers=(1.0,)) if is_least and rule.numbers[0] <= getattr(domain, "step", 0) else rule

    def _is_due(self, found: Cause, record: Features, back: Features) -> bool:
        """Return whether the outcome of a call with elements goes away with numbers that go `back`, as far as was asked."""
        outcome = self.asker.known.get(key_of(record | back), (record, ""))[1]
        alike = all(name in back for name in differing(record, found.bad))
        tells = self.has_values(record) or not self.has_values(found.bad)
        return tells and (self._is_good(found.kind, outcome) or (alike and outcome != found.kind))

    def _moving(self, found: Cause, numbers: Sequence[str]) -> list[str]:
        """Return the quantities that change with some numbers, those of fewest parts first."""
        here = self.numbers(found.bad)
        changed = [self.numbers(self.changed(found.bad, name, value)) for name in numbers for value in self.domains[name]]
        known = [name for name in here if found.kind == WRONG or name not in OF_QUERIES]  # code refuses sizes, not such places
        return [name for name in known if any(other and other.get(name) != here[name] for other in changed)]

    # ---- predictions ------------------------------------------------------------------------------------------------------
    def predict(self, kinds: Iterable[str]) -> None:
        """Ask fresh calls inside and outside of every cause, and count what comes as predicted; mend or drop a cause else."""
        wanted = {*kinds} - {*ENDED}
        while left := [cause for cause in self.causes if cause.kind in wanted and not cause.told]:
            cause = left[0]
            cause.told = True
            against = self.predict_one(cause)
            if against is None:
                continue
            self.causes.remove(cause)
            narrower = self.narrower(cause, against)
            if narrower is not None:
                self.causes.append(narrower)
                narrower.told = True
                self.predict_one(narrower)
                if not narrower.stands:
                    self.causes.remove(narrower)

    def predict_one(self, cause: Cause) -> Features | None:
        """Ask fresh calls of one cause; return one that has it and came out otherwise, if there is one."""
        inside, outside, missed = 0, 0, None
        decks: dict[bool, list[str]] = {True: [], False: []}
        quantities = {rule.quantity for rule in cause.rules}  # limits of two may stand for how they lie to each other
        times = ORDERED if len(quantities) > 1 or any(map(is_relation, quantities)) else 1
        ends = cause.bad, cause.good
        trials = tied(self.domains, ends, [name for name in cause.features if is_whole(name, ends)])
        for draw in range(times * DRAWS):
            if inside + outside >= times * FRESH:
                break
            base = cause.bad if inside <= outside else self.rng.choice((cause.bad, cause.good))
            record = self._drawn(base, cause, decks[inside <= outside], keep=inside <= outside)
            record = next(trials, record) if draw % (2 if times > 1 else TIED) == 1 else record
            if self.asker.is_known(record) or not self.has_values(record):
                continue
            has = cause.holds(record, self.numbers(record))
            if self.explained(record, self.kinds, besides=cause) or (has and not self.is_visible(cause, record)):
                continue
            if (inside if has else outside) >= times * FRESH // 2:
                continue
            outcome = self._ask(cause.kind)(record)
            if outcome == cause.kind and not has:
                self.learn(cause.kind, [(record, self.numbers(record))])  # it may have another cause
            if not (outcome == cause.kind or self._is_good(cause.kind, outcome)) or self.explained(record, self.kinds, cause):
                continue
            inside, outside = inside + has, outside + (not has)
            if not has and outcome == cause.kind:
                self.unexplained.append(record)
                continue
            cause.asked += 1
            cause.true += (outcome == cause.kind) is has
            if has and outcome != cause.kind:
                missed = missed or record
                if cause.kind == WRONG and self.is_right_again(record):
                    return record
        return None if cause.stands else missed

    def is_right_again(self, record: Features) -> bool:
        """Return whether calls of a record are answered rightly with other numbers too: not by chance."""
        calls = [make(self.op, record, number) for number in range(1, AGAIN + 1)]
        filled = [self.asker.filled(call) for call in calls if call is not None]
        self.asker.calls += len(filled)
        return all(call is not None and self.asker.asked(call, record.get("memory", "")) == RIGHT for call in filled)

    def _drawn(self, record: Features, cause: Cause, deck: list[str], *, keep: bool) -> Features:
        """
        Return a record with some features drawn anew; to `keep` the cause, none of its own but by another value of it.

        Features come from a `deck`: all are changed once before one is changed again, so that none can hide a condition.
        """
        drawn = dict(record)
        for _ in range(self.rng.choice((1, 2, 3))):
            if not deck:
                free = [name for name in self.domains if not (keep and name in cause.features)]
                deck += self.rng.sample(free, len(free))
            name = deck.pop() if deck else cause.features[0]
            values = cause.shows[name] if keep and cause.shows.get(name) else self.domains[name]
            drawn[name] = self.rng.choice([value for value in values if repr(value) != repr(record[name])] or values)
        if keep:
            drawn |= {name: self.rng.choice(cause.shows.get(name) or self.domains[name]) for name in cause.features}
        return drawn

    def narrower(self, cause: Cause, against: Features) -> Cause | None:
        """Return a cause with what tells its own call from one that it predicted wrongly."""
        if any(is_relation(rule.quantity) for rule in cause.rules) and (within := self._within(cause, against)):
            return within
        narrower = self.cause(cause.bad, against, cause.kind)
        if not narrower.features:
            return None
        kept = {
            name: values for name, values in cause.shows.items() if name not in narrower.features
        }  # a rule says more of these
        return self._without_needless(replace(
            narrower, good=cause.good, features=tuple(dict.fromkeys((*cause.features, *narrower.features))),
            shows={**kept, **narrower.shows}, lacks={**cause.lacks, **narrower.lacks},
            rules=independent([*cause.rules, *narrower.rules]), rough=cause.rough or narrower.rough,
        ))  # fmt: skip

    def _within(self, cause: Cause, against: Features) -> Cause | None:
        """Return a cause of how numbers lie to each other with a limit of one of them; None without one."""
        ends, here, there = (cause.bad, against), self.numbers(cause.bad), self.numbers(against)
        names = [name for name, n in here.items() if not is_relation(name) and there.get(name, n) != n]
        changed = [name for name in differing(cause.bad, against) if is_whole(name, ends)]
        direct = {word_of(self.op, name.split(" ", 1)[-1]) for name in changed}

        def guesses() -> list[Guess]:
            asked = [(record, outcome == cause.kind, outcome) for record, outcome in self.asker.known.values()]
            asked = [one for one in asked if one[1] or self._is_good(cause.kind, one[2])]
            samples = [(self.numbers(record), bad) for record, bad, _ in asked if cause.holds(record, self.numbers(record))]
            return [guess for guess in fitting(samples, names, direct) if len(guess.rules) == 1 and guess.other is None]

        left, trials = guesses(), tied(self.domains, ends, changed)
        telling = (
            one for one in trials
            if len(left) > 1 and not self.asker.is_known(one) and cause.holds(one, self.numbers(one))
            and parted(left, self.numbers(one))
        )  # fmt: skip
        for record in islice(telling, PARTING):
            self._ask(cause.kind)(record)
            left = guesses()
        return replace(cause, rules=[*cause.rules, *left[0].rules], true=0, asked=0) if left else None

    def _without_needless(self, cause: Cause) -> Cause:
        """Return a cause without the rules that no answered call needs, because the others exclude it too."""
        good = [record for record, outcome in self.asker.known.values() if self._is_good(cause.kind, outcome)]
        for rule in cause.rules[:-1]:
            trial = replace(cause, rules=[one for one in cause.rules if one is not rule])
            if not any(trial.holds(record, self.numbers(record)) for record in good):
                cause = trial
        return cause

    # ---- right calls, and causes once more ---------------------------------------------------------------------------------
    def judged(self, count: int) -> list[tuple[Features, str]]:
        """Return some calls that were answered, and whether rightly: of those asked before, drawn at random."""
        answered = [record for record, outcome in self.asker.known.values() if outcome in ANY_ANSWER]
        return [(record, self.asker.outcome(record)) for record in self.rng.sample(answered, min(count, len(answered)))]

    def steady(self, causes: Sequence[Cause]) -> bool:
        """Return whether the two ends of causes come out the same in a new process, in another order."""
        ends = [(record, cause.kind, bad) for cause in causes for record, bad in ((cause.bad, True), (cause.good, False))]
        ends = [one for one in ends if one[1] not in ENDED]
        outcomes = self.asker.again([record for record, _, _ in ends]) if ends else []
        return all((outcome == kind) is bad for (_, kind, bad), outcome in zip(ends, outcomes, strict=True))


def call_key(op: str, call: Call) -> Key:
    """Return the options and the numbers of a call as a key, whatever their dtypes."""
    options = {n: float(v) if is_number(v) else v for n, v in {**defaults(op), **call.params}.items()}
    arrays = sorted(call.inputs.items())
    return repr(sorted(options.items())), *((name, x.shape, (x.astype(np.float64) + 0.0).tobytes()) for name, x in arrays)


def differing(record: Features, other: Features) -> list[str]:
    """Return the names of features in which two records differ."""
    return [name for name in record if repr(record[name]) != repr(other[name])]


def is_beyond(value: Any, good: Any, bad: Any) -> bool:
    """Return whether a number lies on the other side of a good one than a bad one does."""
    return all(map(is_number, (value, good, bad))) and (value - good) * (bad - good) < 0


def is_scaling(value: Any) -> bool:
    """Return whether a value is a record of `posref.scaling`."""
    return isinstance(value, Scaling)
