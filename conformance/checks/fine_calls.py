"""
Fresh calls in half precision, for a remark on roundings: passing cases with numbers that need all bits of the dtype.

Most numbers of stored cases are multiples of a power of two, and 1 + weight is exact. Here every real is smaller by a factor of
its own. Each of the options that passed comes in turn, but for those with which code rounds its result alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle

import numpy as np

from posref.backends.rounding import round_to

from ..accuracy import UNIT
from ..calls import is_wide, makes_constants, returns_reals
from ..experiments.asker import ANSWERED, RIGHT, Asker
from ..model import Answer, LoadedCase, Operation
from ..proof.evaluation import plain
from .case_run import asked_in
from .fresh_calls import fresh, is_small
from .learned_scope import Trials
from .rounding_fit import by_options

CALLS = 24
LARGEST = 1 << 12  # numbers of a call, in and out


def fine_answers(operation: Operation, answers: Sequence[Answer], trials: Trials, seed: int) -> list[Answer]:
    """Return right answers to calls of an operation that conforms in half precision, drawn from its cases."""
    op, dtype = operation.op, operation.dtype
    if dtype not in UNIT or makes_constants(op) or not returns_reals(op) or not operation.conformant:
        return []
    rng = np.random.default_rng([seed, *op.encode()])
    asker, right_answers = Asker(trials.target, op, dtype, CALLS, trials.progress), list[Answer]()
    turns = [turn for turn in _turns(operation, answers)[:CALLS] if not _rounds_once(asker, next(turn), rng)]
    for n in range(CALLS if turns else 0):
        case = next(turns[n % len(turns)])
        call = fresh(case, dtype, rng)
        if call is None or asker.asked(call, case.form) != RIGHT or asker.sample is None or asker.sample.selection:
            continue
        drawn = LoadedCase(f"{case.id}#{n}", op, "value", case.tier, "", (dtype,), (asker.sample.call,), case.form)
        right_answers.append(Answer(drawn, dtype, [dict(asker.sample.outputs)]))
    return right_answers


def _rounds_once(asker: Asker, case: LoadedCase, rng: np.random.Generator) -> bool:
    """Return whether all results of a fresh call are those of the definition, rounded once."""
    call = fresh(case, asker.dtype, rng)
    if call is None or asker.asked(call, case.form, judged=False) != ANSWERED:
        return True
    values = plain(asker.op, call.inputs, call.params)
    return all(np.array_equal(asker.outputs[n], round_to(x, asker.dtype), equal_nan=True) for n, x in values.items())


def _turns(operation: Operation, answers: Sequence[Answer]) -> list[Iterator[LoadedCase]]:
    """Return the cases of every set of options over and over, those with most numbers first."""
    passed = {one.id for one in operation.cases if one.verdict == "pass" and one.kind == "value"}
    cases = [a.case for a in answers if a.case.id in passed and len(a.case.calls) == 1 and asked_in(a.case, operation.dtype)]
    small = [case for case in cases if is_small(case.calls[0], LARGEST) and _has_reals(case)]
    small.sort(key=lambda case: sum(x.size for x in case.calls[0].expected.values()), reverse=True)
    return [cycle(cases) for cases in by_options(operation.op, small, lambda case: case.calls[0].params)]


def _has_reals(case: LoadedCase) -> bool:
    """Return whether a case has reals that are given in half precision."""
    return any(x.dtype.kind == "f" and not is_wide(case.op, name) for name, x in case.calls[0].inputs.items())
