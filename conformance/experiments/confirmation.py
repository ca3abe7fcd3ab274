"""
Holds causes of wrong values to calls with other options: those with a cause must be wrong too, and those without right.

A cause is found around one call. A number in it may be that of the usual options alone, as 4 where chunks have 4 tokens. So the
calls here are stored ones, each with its own options, that are given the cause, or lose it: by other values of its features,
where numbers have to do with a number of the call's options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from .asker import RIGHT, WRONG
from .cause_search import Cause, Experiment
from .number_rules import RELATIONS
from .records import Features, is_number, part, word_of

CALLS = 12  # with a cause, and as many without it
DRAWN = 120  # records that are drawn for them at most
TIMES, BESIDE = (1, 2, 3, 5), (0, -1, 1)  # how a number is made from another
FEW = 1  # of the calls may come out otherwise: wrong code may give a right value, and calls may have another cause
SOME = 2  # so many may be right where a cause is told as that of most calls
LIMITS = ("least", "most")  # kinds of rules that say nothing of where code is wrong, if it is wrong beyond them too
BUDGET = 100  # calls for all that is done with one cause
SPLIT = re.compile("|".join(RELATIONS))
Records = Mapping[bool, Sequence[Features]]  # of stored cases, those that are answered rightly, and the wrong ones


def confirmed(trial: Experiment, causes: Sequence[Cause], records: Records) -> list[Cause]:
    """Return causes that calls with the options of some records agree with, narrower where that mends them."""
    held = list[Cause]()
    for cause in causes:
        trial.asker.budget = max(trial.asker.budget, trial.asker.calls + BUDGET)
        agreeing = _agreeing(trial, cause, records)
        if agreeing is None:
            trial.causes = [one for one in trial.causes if one is not cause]
        elif agreeing is not cause:
            trial.causes = [agreeing if one is cause else one for one in trial.causes]
        held += [agreeing] if agreeing else []
    return held


def _agreeing(trial: Experiment, cause: Cause, records: Records) -> Cause | None:
    """Return a cause, or a narrower one, that fresh calls agree with, and how far they do; None without one."""
    right, asked = _right_inside(trial, cause, records)
    if len(right) > FEW:
        narrower = trial.narrower(cause, right[0])
        if narrower is not None:
            trial.predict_one(narrower)
        if (
            narrower is not None
            and not narrower.rough
            and narrower.stands
            and len(_right_inside(trial, narrower, records)[0]) <= FEW
        ):
            cause = narrower
        elif len(right) <= SOME:
            cause = replace(cause, mostly=True, asked=cause.asked + asked, true=cause.true + asked - len(right))
        else:
            return None
    if not _are_wrong_outside(trial, cause, records):
        return cause
    says_more = cause.shows or len(cause.rules) > 1 or cause.rules[0].kind not in LIMITS
    return replace(cause, elsewhere=True) if says_more and not cause.mostly else None


def _right_inside(trial: Experiment, cause: Cause, records: Records) -> tuple[list[Features], int]:
    """Return calls that have a cause and are right, and how many were asked."""
    few = islice(_drawn(trial, cause, records, inside=True), CALLS)
    judged = [record for record in few if trial.asker.outcome(record) in (RIGHT, WRONG)]
    return [one for one in judged if trial.asker.outcome(one) == RIGHT and trial.is_right_again(one)], len(judged)


def _are_wrong_outside(trial: Experiment, cause: Cause, records: Records) -> bool:
    """Return whether more than a few calls without a cause are wrong, and have no other one."""
    few = islice(_drawn(trial, cause, records, inside=False), CALLS)
    wrong = [record for record in few if trial.asker.outcome(record) == WRONG]
    if len(wrong) > FEW:
        trial.learn(WRONG, [(record, trial.numbers(record)) for record in wrong])
    return sum(not trial.explained(record, trial.kinds, besides=cause) for record in wrong) > FEW


def _drawn(trial: Experiment, cause: Cause, records: Records, *, inside: bool) -> Iterator[Features]:
    """Yield fresh calls with the options of some records, of right ones to lose a cause, that have it or not, and no other."""
    names = [name for name in trial.domains if name in cause.features or _is_of_rule(trial, cause, name)]
    bases = [*records[True], *(records[False] if inside else ())]
    for base in trial.rng.choices(bases, k=DRAWN) if bases else ():
        record = {**base, **{n: trial.rng.choice([*_values(trial, cause, n, base, inside=inside)]) for n in names}}
        if trial.asker.is_known(record) or not trial.has_values(record):
            continue
        has = cause.holds(record, trial.numbers(record))
        may_be_seen = has is inside and (trial.is_visible(cause, record) or not inside)
        if may_be_seen and not trial.explained(record, trial.kinds, besides=cause):
            yield record


def _is_of_rule(trial: Experiment, cause: Cause, name: str) -> bool:
    """Return whether a rule of a cause speaks of a feature."""
    word = word_of(trial.op, name.split(" ", 1)[-1])
    return name.startswith(("size ", "option ")) and any(word in SPLIT.split(rule.quantity) for rule in cause.rules)


def _values(trial: Experiment, cause: Cause, name: str, record: Features, *, inside: bool) -> Iterable[Any]:
    """Return values of a feature, to have a cause or not: numbers are also near options of a call."""
    if inside and cause.shows.get(name):
        return cause.shows[name]
    values = [cause.bad[name], *trial.domains[name]]
    if not name.startswith(("size ", "start")):
        return values
    options = [n for n in part(record, "option ").values() if is_number(n) and type(n) is int]
    return [*values, *(k * n + one for n in options for k in TIMES for one in BESIDE if k * n + one > 0)]
