"""The search for a failure of one operation in one dtype: draws calls, judges them, proves what fails, and shrinks it."""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice, product
from random import Random
from typing import Any
from unittest.mock import patch
from zlib import crc32

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.internal.conjecture.providers import HypothesisProvider

from posref.backends.exact import Unproved
from posref.backends.numbers import Undecided
from posref.spec import REGISTRY, Flag, OneOf

from ..accuracy import UNIT
from ..calls import class_of_claim
from ..checks import case_run
from ..diagnosis import explanation
from ..errors import Disagreement, NotJudged, TargetError
from ..experiments.anchor_search import likely, seek
from ..experiments.asker import ANY_ANSWER, REFUSED, RIGHT, Asker
from ..experiments.cause_search import Experiment, differing
from ..experiments.inside_scope import begin_at, moved, numbers_in
from ..experiments.records import Features, domains, make, read
from ..model import BAD, Answer, Call, CaseResult, LoadedCase
from ..proof import witnesses
from ..proof.evaluation import askable
from ..suite.reader import INSTALLED, load_groups
from ..targets.base import Target
from ..targets.loader import load
from ..vocabulary.traits import defaults
from .strategies import calls

Pair = tuple[str, str]  # operation, dtype
Task = tuple[str, str, int, int]  # operation, dtype, first draw, the draw after the last
LoadOptions = Mapping[str, Any]
Seen = tuple[Answer, CaseResult]


@dataclass(frozen=True)
class Plan:
    """The plan of a run: the name of the target, and the operations and dtypes to draw calls of."""

    name: str
    reproduce: str
    pairs: tuple[Pair, ...]


@dataclass
class Tally:
    """The counts of draws: verdicts, reasons for calls not judged or not supported, and doubts about posref itself."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        """Return both together."""
        return Tally(self.verdicts + other.verdicts, self.reasons + other.reasons, self.doubts + other.doubts)


@dataclass
class Asking:
    """A target, opened again when it is not asked any more, as a program that crashed too often."""

    options: LoadOptions
    target: Target = field(init=False)
    trials: dict[Pair, Experiment] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Open the target."""
        self.target = load(**self.options)

    def trial(self, op: str, dtype: str) -> Experiment:
        """Return an experiment that knows some calls that a target answers, and whether it refuses any."""
        if (op, dtype) not in self.trials:
            cases = [case for group in load_groups(INSTALLED, ops=(op,)) for case in group.cases if case.kind == "value"]
            stored = [read(op, case.calls[0]) for case in cases]
            trial = Experiment(Asker(self.target, op, dtype, LEARNING), stored[:: max(1, len(cases) // STORED)], [])
            shuffled = [*stored]
            trial.rng.shuffle(shuffled)
            for record in (*map(trial.full, shuffled), *_plain(trial)):
                trial.answered += [record] if trial.asker.answer(record) in ANY_ANSWER else []
                if len(trial.answered) == ANSWERED:
                    break
            _learn(trial, stored)
            trial.asker.budget = sys.maxsize
            self.trials[op, dtype] = trial
        return self.trials[op, dtype]

    def ask(self, case: LoadedCase, dtype: str, answer: Answer) -> CaseResult:
        """Return the verdict of one case; `TargetError` if the target cannot be called at all."""
        result = case_run.ask(self.target, case, dtype, answer)
        if result.verdict == "not-run":
            self.target.close()
            self.target = load(**self.options)
            result = case_run.ask(self.target, case, dtype, answer)
        if result.verdict == "not-run":
            msg = f"{self.target.name}: no longer answers: {result.message}."
            raise TargetError(msg)
        return result


def _learn(trial: Experiment, stored: Sequence[Features]) -> None:
    """Learn what a target refuses, and a call that it answers, if it answers no stored one."""
    refused = [record for record, outcome in trial.asker.known.values() if outcome == REFUSED]
    if not trial.answered:
        trial.asker.budget += SOUGHT
        trial.domains = domains(trial.op, stored)
        searches = (seek(trial, stored, (), lambda _: True) for _ in range(SEARCHES))  # each draws other calls
        good = next((record for record in searches if record is not None), None)
        if good is None:
            return
        begin_at(trial, good, likely(trial.op, good, ()))
    trial.asker.budget = trial.asker.calls + LEARNING
    trial.learn(REFUSED, [(record, trial.numbers(record)) for record in refused])
    if refused:
        trial.alone(REFUSED, ("",))


def _plain(trial: Experiment) -> Iterator[Features]:
    """Yield records that are usual in all but words, numbers that may be at their default, and the head size."""
    usual = {name: values[0] for name, values in trial.domains.items()}
    options = {f"option {name}": value for name, value in defaults(trial.op).items()}  # of arrays too
    choices = {name: [usual[name], value] for name, value in options.items() if name in usual}
    words = [f"option {n}" for n, domain in REGISTRY[trial.op].domains.items() if isinstance(domain, OneOf | Flag)]
    choices |= {name: trial.domains[name] for name in words}
    choices |= {"size D": [usual["size D"], *HEADS]} if "size D" in usual else {}
    for values in islice(product(*choices.values()), LEARNING):
        yield usual | dict(zip(choices, values, strict=True))


def plan_of(target: Target, ops: Collection[str] | None) -> Plan:
    """Return the plan for a target: its operations, or those of `ops` that it has."""
    wanted = [name for name in REGISTRY if (ops is None or name in ops) and target.has(name)]
    if not wanted:
        msg = f"{target.name}: has no {'operation' if ops is None else ', '.join(ops)}."
        raise TargetError(msg)
    return Plan(target.name, target.reproduce, tuple((n, d) for n in wanted for d in case_run.asked_dtypes(target, n)))


def case_of(name: str, dtype: str, drawn: Call) -> LoadedCase:
    """Return a drawn call as a case of id `name` with proved values; `NotJudged` if there are none for `dtype`."""
    op = name.split("/", maxsplit=1)[0]
    try:
        expected, mid, widths = witnesses.proved(op, drawn.inputs, drawn.params)
    except Exception as error:
        raise _not_judged(op, drawn, error) from error
    if any(np.isnan(width).any() for by_output in widths.values() for width in by_output.values()):
        msg = "no tolerance: a number inside of the operation is beyond float64"
        raise NotJudged(msg)
    held = askable(op, drawn.inputs, expected)
    dtypes = tuple(d for d in held if d not in UNIT or f"low-{d}" in widths)
    call = replace(drawn, expected=expected, intermediates=mid, widths=widths)
    case = LoadedCase(name, op, "value", "core", "", dtypes, (call,))
    if not case_run.asked_in(case, dtype):
        reason = f"says nothing in {dtype}" if dtype in held else f"out of the range of {dtype}"
        raise NotJudged(reason)
    return case


def _not_judged(op: str, drawn: Call, error: Exception) -> NotJudged:
    """Return why there is nothing to compare with."""
    if isinstance(error.__cause__, Undecided):
        return NotJudged("a decision lies within the error of its class")
    if isinstance(error, Unproved):
        return NotJudged("not proved: the value lies on a rounding boundary, as a mean of three may")
    if any(value.size == 0 for value in drawn.inputs.values()):
        return NotJudged("no elements: lists do not tell the second witness their shape")
    what = "the witnesses disagree" if isinstance(error, Disagreement) else f"posref raises {type(error).__name__}"
    return NotJudged(what, doubt=f"{what} on {written(op, drawn)}: {error}")


def written(op: str, drawn: Call) -> str:
    """Return a call as one would write it."""
    arrays = {n: repr(v.tolist()) if v.size else f"empty({v.shape})" for n, v in drawn.inputs.items()}
    return f"{op}({', '.join(f'{n}={v}' for n, v in {**arrays, **{n: repr(v) for n, v in drawn.params.items()}}.items())})"


STORED = 40  # cases whose options and sizes are known
ANSWERED = 24  # calls of stored cases that are answered, into which refused draws are put
HEADS = (64, 128)  # sizes that kernels are compiled for
LEARNING = 600  # calls, to find those
SEARCHES = 3  # for a first call that is answered
SOUGHT = 2000  # more, where none of the stored ones is
LARGER = 0.25  # of the sizes of a draw that is put into a call are drawn from all that experiments know, up to 1030
NEAR = 32  # changes of a feature that are tried, until one lies in the scope
PROVED = 16  # so many draws are proved, which tries the witnesses too; later ones where they do not pass
SMALL = 1 << 8  # numbers of a draw that is proved although it passes
ENTROPY = 1 << 13  # bytes that a draw is made of
EVIDENCE = 24  # draws from the first on that a diagnosis looks at besides the failing call
STEPS = {"timeout": 0, "crash": 40, "protocol": 40}  # of shrinking: a hang costs its time again, a crash a new start
INTERRUPTED = "the shrinking was interrupted"
UNSTEADY = "the same call passes when repeated: its result depends on earlier calls"
Progress = Callable[[str], None]


class _Fails(Exception):
    """A draw on which the target fails."""


class _Enough(BaseException):
    """The end of a shrinking whose every step is expensive."""


@dataclass(frozen=True)
class Find:
    """The smallest failing call of an operation in a dtype, and the number of the draw that it was shrunk from."""

    op: str
    dtype: str
    draw: int
    call: Call
    result: CaseResult
    diagnosis: str
    note: str = ""


@dataclass
class Searched:
    """The result of a range of draws; `complete` unless time or the keyboard ended it."""

    tally: Tally
    find: Find | None = None
    complete: bool = True


def case_id(op: str, seed: int, dtype: str) -> str:
    """Return the id of the case that a seed finds."""
    return f"{op}/fuzz/seed-{seed}-{dtype}"


class Hunt:
    """The draws of one operation in one dtype; draw i of a seed is the same everywhere, whatever was drawn before it."""

    def __init__(self, asking: Asking, op: str, dtype: str, seed: int) -> None:
        self.asking, self.op, self.dtype, self.seed = asking, op, dtype, seed
        self.tally = Tally()
        self._wanted: str | None = None  # the verdict of the failure that is being shrunk
        self._last: Seen | None = None
        self._evidence: list[Seen] | None = None
        self._steps = 0  # of the shrinking
        self._trial = asking.trial(op, dtype)
        self._is_narrow = any(outcome == REFUSED for _, outcome in self._trial.asker.known.values())
        self._proves = True  # whether a draw is proved although it passes
        self._begin = 0  # which call a refused draw is put into
        settings = hypothesis.settings(
            database=InMemoryExampleDatabase(), deadline=None, phases=(Phase.reuse, Phase.shrink), derandomize=False,
            report_multiple_bugs=False, print_blob=False, verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip

        def test(drawn: Call) -> None:
            self._see(drawn)

        seeded = hypothesis.seed(int.from_bytes(self._entropy(-1)[:8], "big"))
        self._test: Any = settings(seeded(hypothesis.given(calls(op, dtype))(test)))

    def search(self, first: int, last: int, until: float | None = None, progress: Progress | None = None) -> Searched:
        """Make the draws from `first` up to `last`, not included, and return the first failure, shrunk and explained."""
        try:
            for index in range(first, last):
                if until is not None and time.monotonic() >= until:
                    return Searched(self.tally, complete=False)
                if progress:
                    progress(f"{self.op} {self.dtype}")
                try:
                    self._draw(index)
                except _Fails:
                    return self._found(index)
        except KeyboardInterrupt:
            return Searched(self.tally, complete=False)
        return Searched(self.tally)

    def _entropy(self, index: int) -> bytes:
        """Return what draw `index` is made of."""
        start = hashlib.sha256(f"{self.seed}/{self.op}/{self.dtype}/{index}".encode()).digest()
        return Random(int.from_bytes(start, "big")).randbytes(ENTROPY)

    def _draw(self, index: int) -> None:
        self._proves = index < PROVED
        self._test.hypothesis.fuzz_one_input(self._entropy(index))

    def _see(self, drawn: Call) -> None:
        """Judge one draw, in the scope of the target; raise `_Fails` if that fails on it, in the way that is being shrunk."""
        searching = self._wanted is None
        tally = self.tally if searching else Tally()
        inside = self._inside(drawn)
        if inside is None:
            tally.verdicts["unsupported"] += 1
            tally.reasons[f"unsupported: {self._trial.asker.said}"] += 1
            hypothesis.reject()
        drawn = inside
        self._proves &= sum(x.size for x in drawn.inputs.values()) <= SMALL
        if self._evidence is None and not self._proves and self._outcome(drawn, judged=True) == RIGHT:
            tally.verdicts["pass"] += 1
            return
        try:
            case = case_of(case_id(self.op, self.seed, self.dtype), self.dtype, drawn)
        except NotJudged as unknown:
            tally.reasons[str(unknown)] += 1
            tally.doubts += [unknown.doubt] if unknown.doubt else []
            hypothesis.reject()
        answer = Answer(case, self.dtype)
        result = self.asking.ask(case, self.dtype, answer)
        tally.verdicts[result.verdict] += 1
        if result.verdict == "unsupported":
            tally.reasons[f"unsupported: {result.message}"] += 1
        seen = answer, result
        if self._evidence is not None:
            self._evidence.append(seen)
        elif result.verdict in BAD and (searching or result.verdict == self._wanted):
            self._wanted, self._last = result.verdict, seen
            self._steps += not searching
            raise _Enough if self._steps > STEPS.get(result.verdict, self._steps) else _Fails

    def _inside(self, drawn: Call) -> Call | None:
        """
        Return a draw that the target answers: one that it refuses is put into a call that it answers, as far as it takes that.

        While a failure is shrunk that call stays the same. None where no call is known that it answers.
        """
        trial, asker = self._trial, self._trial.asker
        if not self._is_narrow or self._outcome(drawn) != REFUSED:
            return drawn
        if not trial.answered:
            return None
        if self._wanted is None:
            self._begin = crc32(repr(drawn).encode())
        rng, record = Random(self._begin), trial.full(read(self.op, drawn))
        inside = rng.choice(trial.answered)
        names = differing(record, inside)
        numbers = numbers_in(rule for cause in trial.causes for rule in cause.rules)
        for name in rng.sample(names, len(names)):
            is_larger = name.startswith("size ") and rng.random() < LARGER
            value = rng.choice(trial.domains[name]) if is_larger else record[name]
            changed = (one for one in islice(moved(inside, name, value, numbers), NEAR) if not trial.explained(one, (REFUSED,)))
            inside = next((one for one in changed if asker.answer(one) in ANY_ANSWER), inside)
        return make(self.op, inside, self._begin)

    def _outcome(self, drawn: Call, *, judged: bool = False) -> str:
        """Return what comes of a draw, `judged` live or not; nothing where it is no call in this dtype."""
        call = self._trial.asker.filled(drawn)
        return "" if call is None else self._trial.asker.asked(call, judged=judged)

    def _found(self, index: int) -> Searched:
        """Return the failure of draw `index`, shrunk and explained."""
        note, diagnosis = "", ""
        try:
            note = self._shrink() if STEPS.get(self._wanted or "", 1) else ""
            if not note and self._wanted == "fail":
                diagnosis = self._explained()
        except KeyboardInterrupt:
            note = INTERRUPTED
        assert self._last is not None
        answer, result = self._last
        find = Find(self.op, self.dtype, index, answer.case.calls[0], result, diagnosis, note)
        return Searched(self.tally, find, complete=note != INTERRUPTED)

    def _shrink(self) -> str:
        """Let hypothesis shrink the last failure, and return a remark on the shrinking."""
        with _no_constants(), suppress(hypothesis.errors.HypothesisException):  # it calls what does not fail again flaky
            try:
                self._test()
            except (_Fails, _Enough):
                return ""
        return UNSTEADY

    def _explained(self) -> str:
        """Return the diagnosis of the smallest failing call, in the light of the first draws."""
        assert self._last is not None
        self._evidence = []
        for index in range(EVIDENCE):
            self._draw(index)
        judged = [(a, result.verdict) for a, result in (*self._evidence, self._last) if result.verdict in ("pass", "fail")]
        answers = [(_of_draw(answer, n), verdict == "fail") for n, (answer, verdict) in enumerate(judged)]
        return str(
            explanation.diagnose(self.op, answers, class_of_claim(self.op, self.asking.target.claims[self.dtype]))["text"]
        )


def _of_draw(answer: Answer, number: int) -> Answer:
    """Return an answer with an id of its own: all draws of a seed have one id, and a diagnosis tells cases apart by it."""
    name = f"draw {number}"
    asked = answer.asked and replace(answer.asked, id=name)
    part = answer.part and _of_draw(answer.part, number)
    return replace(answer, case=replace(answer.case, id=name), asked=asked, part=part)


def _no_constants() -> AbstractContextManager[Any]:
    """
    Keep hypothesis from drawing numbers from the sources of imported modules, which it also writes to disk.

    A seed would not give the same everywhere.
    """
    return patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None)
