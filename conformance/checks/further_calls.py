"""
Further calls: if several mistakes give the same values in all stored cases, posref makes fresh calls that tell them apart.

They are stored calls with other numbers, in turn with others in one option or size, then calls drawn around the failing ones,
and judged like any fresh call. The diagnosis leaves out a mistake that one refutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

import numpy as np

from ..calls import EXACT
from ..diagnosis.explanation import Judged
from ..diagnosis.tied_mistakes import Ties, parted
from ..experiments.asker import RIGHT, WRONG
from ..experiments.cause_search import Experiment
from ..model import Answer, LoadedCase, Operation
from .fresh_calls import fresh, is_near, is_small, varied
from .learned_scope import Trials, records_of
from .scope import Asked
from .scope_result import asked_cases

DRAWN = 160  # records of which calls are compared, for one operation
ASKED = 6  # calls that a target is asked
Further = Callable[[Ties], list[Judged]]


def further_calls(operation: Operation, answers: list[Answer], trials: Trials) -> Further | None:
    """Return a function that makes and judges calls on which mistakes differ; None if the target takes no further calls."""
    if not trials.can_ask():
        return None

    def ask(ties: Ties) -> list[Judged]:
        every = [one for one in asked_cases([(operation, answers)]) if one.case.kind == "value"]
        trial = trials.begin(operation.op, operation.dtype, every)
        judged_calls: list[Judged] = []
        near = zip_longest(_with_other_numbers(trial, every), _with_other_options(trial, every))
        for case in filter(None, chain(chain.from_iterable(near), _drawn(trial, every))):
            if len(judged_calls) >= ASKED:
                break
            if not parted(operation.op, case, ties, operation.claim, operation.dtype):
                continue
            outcome = trial.asker.asked(case.calls[0], case.form)
            sample = trial.asker.sample
            if outcome in (RIGHT, WRONG) and sample is not None:
                judged = replace(case, calls=(sample.call,))
                judged_calls.append((Answer(judged, operation.dtype, [sample.outputs]), outcome == WRONG))
        return judged_calls

    return ask


def _with_other_numbers(trial: Experiment, every: Sequence[Asked]) -> Iterator[LoadedCase]:
    """Yield the small calls of cases, also of refused ones, with other numbers, first those of near positions."""
    rng = np.random.default_rng(len(every))
    for one in sorted(trial.rng.sample(every, len(every)), key=lambda one: not is_near(one.case)):
        if len(one.case.calls) == 1 and is_small(one.case.calls[0]):
            call = fresh(one.case, trial.asker.dtype, rng)
            if call is not None and trial.asker.filled(call) is not None:
                yield trial.asker.case(call, one.case.form)


def _with_other_options(trial: Experiment, every: Sequence[Asked]) -> Iterator[LoadedCase]:
    """Yield small calls of cases with another number in one option or size."""
    cases = [one.case for one in every if len(one.case.calls) == 1 and is_small(one.case.calls[0])]
    rng = np.random.default_rng(len(every))
    cases = [cases[at] for at in rng.permutation(len(cases))]
    for case, call, *_ in varied(trial.asker.op, cases, trial.asker, rng, [case.calls[0] for case in cases]):
        yield trial.asker.case(call, case.form)


def _drawn(trial: Experiment, every: Sequence[Asked]) -> Iterator[LoadedCase]:
    """Yield small calls near failing ones, with some features drawn anew."""
    failing = [record for one in every if one.verdict == "fail" for record in records_of(one)]
    rng, names = trial.rng, [name for name, values in trial.domains.items() if len(values) > 1]
    for _ in range(DRAWN if failing and names else 0):
        record = trial.full(rng.choice(failing))
        for name in rng.sample(names, min(len(names), rng.choice((1, 2, 3)))):
            record[name] = rng.choice(trial.domains[name])
        if record.get("start", 0) > EXACT or trial.asker.is_known(record):
            continue
        call = trial.asker.whole(record)
        if call is not None and is_small(call):
            yield trial.asker.case(call, record.get("memory", ""))
