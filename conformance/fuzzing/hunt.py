"""The search for a failure of one operation in one dtype: calls are drawn until one fails, which is shrunk and explained."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest.mock import patch

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.internal.conjecture.providers import HypothesisProvider

from ..diagnosis import explanation
from ..errors import NotJudged
from ..model import BAD, Answer, CaseResult
from .drawn_case import Asking, Tally, case_of
from .strategies import Drawn, calls

ENTROPY = 1 << 13  # bytes that a draw is made of
EVIDENCE = 24  # draws from the first on that a diagnosis looks at besides the failing call
STEPS = {"timeout": 0, "crash": 40, "protocol": 40}  # of shrinking: a hang costs its time again, a crash a new start
INTERRUPTED = "the shrinking was interrupted"
UNSTEADY = "the same call passes when asked again: its result depends on earlier calls"
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
    call: Drawn
    result: CaseResult
    diagnosis: str
    note: str = ""


@dataclass
class Searched:
    """What a range of draws gave; `complete` unless time or the keyboard ended it."""

    tally: Tally
    find: Find | None = None
    complete: bool = True


@dataclass(frozen=True)
class _Seen:
    drawn: Drawn
    answer: Answer
    result: CaseResult


def case_id(op: str, seed: int, dtype: str) -> str:
    """Return the id of the case that a seed finds."""
    return f"{op}/fuzz/seed-{seed}-{dtype}"


class Hunt:
    """The draws of one operation in one dtype; draw i of a seed is the same everywhere, whatever was drawn before it."""

    def __init__(self, asking: Asking, op: str, dtype: str, seed: int) -> None:
        self.asking, self.op, self.dtype, self.seed = asking, op, dtype, seed
        self.tally = Tally()
        self._wanted: str | None = None  # the verdict of the failure that is being shrunk
        self._last: _Seen | None = None
        self._evidence: list[_Seen] | None = None
        self._steps = 0  # of the shrinking
        settings = hypothesis.settings(
            database=InMemoryExampleDatabase(), deadline=None, phases=(Phase.reuse, Phase.shrink), derandomize=False,
            report_multiple_bugs=False, print_blob=False, verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip

        def test(drawn: Drawn) -> None:
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
        self._test.hypothesis.fuzz_one_input(self._entropy(index))

    def _see(self, drawn: Drawn) -> None:
        """Judge one draw; raise `_Fails` if the target fails on it, in the way that is being shrunk."""
        searching = self._wanted is None
        tally = self.tally if searching else Tally()
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
        seen = _Seen(drawn, answer, result)
        if self._evidence is not None:
            self._evidence.append(seen)
        elif result.verdict in BAD and (searching or result.verdict == self._wanted):
            self._wanted, self._last = result.verdict, seen
            self._steps += not searching
            raise _Enough if self._steps > STEPS.get(result.verdict, self._steps) else _Fails

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
        smallest = self._last
        find = Find(self.op, self.dtype, index, smallest.drawn, smallest.result, diagnosis, note)
        return Searched(self.tally, find, complete=note != INTERRUPTED)

    def _shrink(self) -> str:
        """Let hypothesis shrink the failure that was just found, and return what has to be said of that."""
        try:
            with _no_constants():
                self._test()
        except (_Fails, _Enough):
            return ""
        except hypothesis.errors.HypothesisException:  # it calls this flaky
            return UNSTEADY
        return UNSTEADY

    def _explained(self) -> str:
        """Return the diagnosis of the smallest failing call, in the light of the first draws."""
        assert self._last is not None
        self._evidence = []
        for index in range(EVIDENCE):
            self._draw(index)
        seen = [s for s in (*self._evidence, self._last) if s.result.verdict in ("pass", "fail")]
        told = [(s.answer, s.result.verdict == "fail") for s in seen]
        return str(explanation.diagnose(self.op, told, self.asking.target.claims[self.dtype])["text"])


@contextmanager
def _no_constants() -> Iterator[None]:
    """
    Keep hypothesis from drawing numbers that stand in the sources of what happens to be imported, which it also writes to disk.

    A seed would not give the same everywhere.
    """

    def none(*_: Any, **__: Any) -> None:
        return None

    with patch.object(HypothesisProvider, "_maybe_draw_constant", none):
        yield
